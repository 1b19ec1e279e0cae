// A scan: the scores of all samples for all classes, in tiles of classes, with bounded memory.
//
// The vectors of `width` classes are written to a dense tile, feature after feature; then every row is scored against
// it, with its sums in registers and over the features that these classes have.  (Bounds that would leave out classes
// do not pay: too many scores lie close to the largest.)  What a scan finds, for a loss of losses/hinge.hpp:
//   - the sum of the losses, and the duality gap of each sample;
//   - new lists: the rivals that hold a dual, and the closest of the others that could move the dual objective.
// The scores of the rivals that are known already come from the class vectors in double precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "losses/hinge.hpp"
#include "many_classes/coefficients.hpp"
#include "many_classes/used_features.hpp"
#include "rows/rows.hpp"
#include "simd/simd.hpp"

namespace skm {

// What a scan is asked for.
struct ScanTask {
    const double* b;       // intercepts
    int32_t most;          // new rivals of a sample
    double slack;          // how far below the closest useful rival others are noted too
    double q;              // norm of the dual: 2, or that of Lei et al.
    double floor;          // least norm of a class vector that the weights see, relative to the largest
    const double* weight;  // of each class where it is given
    bool single;           // class vectors as they are published in single precision
};

struct ScanResult {
    double losses = 0, gap = 0, inner = 0, duals = 0;  // sums over the samples; inner = sum_il c_il f_il
    double unlisted = 0;                               // part of the losses that no list of before knew
    std::vector<double> squares, weight, total;        // ||v_l||^2, w_l = weight_l v_l, sum_i c_il
    std::vector<double> published;                     // ||w_l||^2 as the scores saw it
    std::vector<int64_t> start;                        // the new lists
    std::vector<int32_t> cls;
    std::vector<double> alpha, slope;
};

// w_l = (||v_l|| / ||V||_{2,q})^(q-2) v_l, with the square of `floor` added to the squared norms.
inline std::vector<double> link_weights(const std::vector<double>& squares, double q, double floor) {
    std::vector<double> weight(squares.size(), 1.0);
    const double top = *std::max_element(squares.begin(), squares.end());
    if (q == 2 || !(top > 0)) return weight;
    double sum = 0;
    for (size_t l = 0; l < squares.size(); ++l) {
        const double u2 = squares[l] / top + floor * floor;
        weight[l] = std::pow(u2, 0.5 * q - 1);
        sum += weight[l] * u2;
    }
    for (double& w : weight) w *= std::pow(sum, (2 - q) / q);
    return weight;
}

template <class T, class Loss>
class ClassScan {
  public:
    ClassScan(const RowsByFrequency<T>& rows, const Loss& loss, const int32_t* y, const RivalLists& lists,
              const Coefficients& coefficients, const ScanTask& task, ThreadTeam& team)
        : rows_(rows), loss_(loss), y_(y), lists_(lists), coefficients_(coefficients), task_(task), team_(team),
          k_(coefficients.k), own_(rows.n), known_(static_cast<size_t>(lists.start[rows.n])), floor_(rows.n),
          beyond_(rows.n, 0.0), found_(static_cast<size_t>(rows.n) * task.most), count_(rows.n, 0),
          tile_(rows.d * width), touched_(width), used_(rows.d) {
        for (int part = 0; part < groups; ++part)
            makers_.push_back(std::make_unique<ClassVector<T>>(rows, coefficients, team));
    }

    // Without lists (`first`) the closest rivals of all samples are looked for, however far they are.
    ScanResult run(bool first) {
        ScanResult out;
        known_scores(out);
        thresholds(first);
        for (int32_t from = 0; from < k_; from += width) scan_tile(from, out);
        collect(out);
        return out;
    }

  private:
    static constexpr int32_t width = 256 / sizeof(T);  // classes of a tile: four wide vectors a feature
    static constexpr int groups = 4;                   // parts in which a tile is made
    static constexpr int64_t chunk = 2048;             // rows of a part that is scored
    using Found = std::pair<T, int32_t>;               // score and class

    static bool farther(const Found& a, const Found& b) { return a.first > b.first; }  // the least stands first

    // Norms of the class vectors, and the scores of the own class and of the rivals in the lists.
    void known_scores(ScanResult& out) {
        out.squares.assign(k_, 0.0);
        out.total.assign(k_, 0.0);
        out.published.assign(k_, 0.0);
        const std::vector<int32_t> cut = coefficients_.ranges(64);
        const bool weighed = task_.weight != nullptr;
        team_.for_each_part(static_cast<int>(cut.size()) - 1, [&](int part) {
            ClassVector<T> v(rows_, coefficients_, team_);
            for (int32_t l = cut[part]; l < cut[part + 1]; ++l) {
                v.make(l);
                out.total[l] = coefficients_.total(l);
                out.squares[l] = v.square();
                if (weighed) v.weigh(task_.weight[l], task_.single);
                for (const auto* e = coefficients_.begin(l); e != coefficients_.end(l); ++e)
                    (e->place < 0 ? own_[~e->place] : known_[e->place]) = v.inner(e->row);
            }
        });
        if (weighed) out.weight.assign(task_.weight, task_.weight + k_);
        else out.weight = link_weights(out.squares, task_.q, task_.floor);
        const auto score = [&](double product, int32_t l) {
            return (weighed ? product : out.weight[l] * product) + task_.b[l];
        };
        for (int64_t i = 0; i < rows_.n; ++i) {
            own_[i] = score(own_[i], y_[i]);
            for (int64_t e = lists_.start[i]; e < lists_.start[i + 1]; ++e) known_[e] = score(known_[e], lists_.cls[e]);
        }
    }

    // From which score on another rival is of use to a sample.
    void thresholds(bool first) {
        std::vector<double> d;
        for (int64_t i = 0; i < rows_.n; ++i) {
            const int64_t s = lists_.start[i];
            const int32_t m = static_cast<int32_t>(lists_.start[i + 1] - s);
            d.resize(std::max<size_t>(m, 1));
            for (int32_t j = 0; j < m; ++j) d[j] = own_[i] - known_[s + j];
            const double low = m > 0 ? std::max(0.0, loss_.bounds(i, d.data(), lists_.alpha + s, m).lo) : 0.0;
            floor_[i] = first ? -std::numeric_limits<T>::infinity() : static_cast<T>(own_[i] - 1 + low - task_.slack);
        }
    }

    void scan_tile(int32_t from, ScanResult& out) {
        const int32_t size = std::min(width, k_ - from);
        team_.for_each_part(groups, [&](int part) {
            ClassVector<T>& v = *makers_[part];
            for (int32_t c = width * part / groups; c < width * (part + 1) / groups; ++c) {
                for (const int32_t j : touched_[c]) tile_.data()[static_cast<int64_t>(j) * width + c] = 0;
                touched_[c].clear();
                if (c >= size) continue;
                v.make(from + c);
                v.weigh(out.weight[from + c], task_.single);
                out.published[from + c] = v.square();
                touched_[c] = v.features();
                for (const int32_t j : touched_[c])
                    tile_.data()[static_cast<int64_t>(j) * width + c] = static_cast<T>(v[j]);
            }
        });
        used_.clear();
        for (int32_t c = 0; c < size; ++c)
            for (const int32_t j : touched_[c]) used_.add(j);
        T base[width];
        for (int32_t c = 0; c < width; ++c)
            base[c] = c < size ? static_cast<T>(task_.b[from + c]) : -std::numeric_limits<T>::infinity();
        const SparseSimd<T, int32_t>& simd = sparse_simd<T, int32_t>();
        const int parts = static_cast<int>((rows_.n + chunk - 1) / chunk);
        team_.for_each_part(parts, [&](int part) {
            alignas(64) T f[width];
            UsedNumbers<T, int32_t> row;
            const int64_t last = std::min(rows_.n, (part + 1) * chunk);
            for (int64_t i = part * chunk; i < last; ++i) {
                const int64_t s = rows_.start[i];
                row.take(used_, rows_.features + s, rows_.values + s, rows_.nnz(i));
                simd.scores_all(row.features(), row.values(), row.size(), tile_.data(), width, f);
                team_.count_work(2.0 * width * static_cast<double>(row.size() + rows_.nnz(i) / 16 + 4));
                const T least = floor_[i];
                int above = 0;
                for (int32_t c = 0; c < width; ++c) {
                    f[c] += base[c];
                    above |= f[c] > least;
                }
                if (above) note(i, from, size, f);
            }
        });
    }

    // Some scores of sample i lie above its threshold.
    void note(int64_t i, int32_t from, int32_t size, const T* f) {
        const int32_t *begin = lists_.cls + lists_.start[i], *end = lists_.cls + lists_.start[i + 1];
        Found* heap = found_.data() + i * task_.most;
        const T margin = static_cast<T>(own_[i] - 1);
        for (int32_t c = 0; c < size; ++c) {
            const int32_t l = from + c;
            if (!(f[c] > floor_[i]) || l == y_[i] || std::find(begin, end, l) != end) continue;
            if (loss_.all_count() && f[c] > margin) beyond_[i] += static_cast<double>(f[c]) - (own_[i] - 1);
            int32_t& held = count_[i];
            if (held == task_.most) {
                if (!(f[c] > heap[0].first)) continue;
                std::pop_heap(heap, heap + held, farther);
                --held;
            }
            heap[held++] = {f[c], l};
            std::push_heap(heap, heap + held, farther);
            // Where farther rivals do not count either the next ones must be closer than these.
            if (held == task_.most && !loss_.all_count()) floor_[i] = std::max(floor_[i], heap[0].first);
        }
    }

    void collect(ScanResult& out) {
        out.start.assign(1, 0);
        std::vector<double> d, alpha;
        for (int64_t i = 0; i < rows_.n; ++i) {
            d.clear();
            alpha.clear();
            Found* heap = found_.data() + i * task_.most;
            std::sort(heap, heap + count_[i], [](const Found& a, const Found& b) { return a.second < b.second; });
            const auto add = [&](int32_t l, double dual, double f) {
                out.cls.push_back(l);
                alpha.push_back(dual);
                d.push_back(own_[i] - f);
            };
            for (int64_t e = lists_.start[i]; e < lists_.start[i + 1]; ++e)
                add(lists_.cls[e], lists_.alpha[e], known_[e]);
            const double known = d.empty() ? 0.0 : loss_.value(i, d.data(), static_cast<int32_t>(d.size()));
            double listed = 0;  // hinges of the new rivals, which `beyond_` has already
            for (int32_t j = 0; j < count_[i]; ++j) {
                add(heap[j].second, 0.0, heap[j].first);
                if (loss_.all_count()) listed += std::max(0.0, 1 - d.back());
            }
            const int32_t m = static_cast<int32_t>(d.size());
            double value = m > 0 ? loss_.value(i, d.data(), m) : 0.0, inner = 0;
            if (loss_.all_count()) value += loss_.dual_limit(i) * std::max(0.0, beyond_[i] - listed);
            for (int32_t j = 0; j < m; ++j) inner += alpha[j] * d[j];
            const double dual = loss_.dual(i, alpha.data(), m);
            out.losses += value;
            out.unlisted += value - known;
            out.inner += inner;
            out.duals += dual;
            out.gap += value - dual + inner;
            out.alpha.insert(out.alpha.end(), alpha.begin(), alpha.end());
            for (const double margin : d) out.slope.push_back(1 - margin);
            out.start.push_back(static_cast<int64_t>(out.cls.size()));
        }
    }

    const RowsByFrequency<T>& rows_;
    const Loss& loss_;
    const int32_t* y_;
    const RivalLists& lists_;
    const Coefficients& coefficients_;
    const ScanTask& task_;
    ThreadTeam& team_;
    const int32_t k_;
    std::vector<double> own_, known_;
    std::vector<T> floor_;
    std::vector<double> beyond_;  // sum of the hinges of rivals that are in no list
    std::vector<Found> found_;
    std::vector<int32_t> count_;
    Buffer<T> tile_;
    std::vector<std::unique_ptr<ClassVector<T>>> makers_;
    std::vector<std::vector<int32_t>> touched_;  // features of each column of the tile
    UsedFeatures used_;                          // of all columns
};

}  // namespace skm
