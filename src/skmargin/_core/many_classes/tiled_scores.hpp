// Scores of rows for very many classes: the largest of each row, or all of them, one tile of classes at a time.
//
// The vectors of the classes of a tile lie feature after feature, whatever form they come in, and every row is scored
// against the tile with its sums in registers.  Memory: one tile and what is asked for, never rows times classes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/thread_team.hpp"
#include "many_classes/used_features.hpp"
#include "rows/rows.hpp"
#include "simd/simd.hpp"

namespace skm {

template <class T> constexpr int32_t tile_width = 256 / sizeof(T);  // classes: four wide vectors a feature

// Class vectors that can write some of them to a tile (d, tile_width).
template <class T>
class TileSource {
  public:
    virtual ~TileSource() = default;
    virtual void fill(int32_t from, int32_t size, T* tile, ThreadTeam& team) = 0;
    // Features of the classes in the tile; null where all may be.
    virtual const UsedFeatures* used() const { return nullptr; }
};

// A dense matrix (k, d) with one feature after the other in memory.
template <class T, class Number>
class DenseVectors : public TileSource<T> {
  public:
    DenseVectors(const Number* W, int64_t k, int64_t d) : W_(W), k_(k), d_(d) {}
    void fill(int32_t from, int32_t size, T* tile, ThreadTeam& team) override {
        constexpr int64_t chunk = 4096;
        team.for_each_part(static_cast<int>((d_ + chunk - 1) / chunk), [&](int part) {
            for (int64_t j = part * chunk; j < std::min(d_, (part + 1) * chunk); ++j)
                for (int32_t c = 0; c < size; ++c) tile[j * tile_width<T> + c] = static_cast<T>(W_[j * k_ + from + c]);
            team.count_work(static_cast<double>(chunk * size));
        });
    }

  private:
    const Number* W_;
    const int64_t k_, d_;
};

// CSR arrays with one row a class.
template <class T, class Number, class I>
class SparseClassVectors : public TileSource<T> {
  public:
    SparseClassVectors(const I* start, const I* features, const Number* values, int64_t d)
        : start_(start), features_(features), values_(values), used_(d) {}
    void fill(int32_t from, int32_t size, T* tile, ThreadTeam& team) override {
        constexpr int groups = 4;
        team.for_each_part(groups, [&](int part) {
            for (int32_t c = tile_width<T> * part / groups; c < tile_width<T> * (part + 1) / groups; ++c) {
                if (c < held_)
                    put(held_from_ + c, [&](I j, Number) { tile[static_cast<int64_t>(j) * tile_width<T> + c] = 0; });
                if (c >= size) continue;
                put(from + c,
                    [&](I j, Number w) { tile[static_cast<int64_t>(j) * tile_width<T> + c] = static_cast<T>(w); });
                team.count_work(4.0 * static_cast<double>(start_[from + c + 1] - start_[from + c]));
            }
        });
        held_from_ = from;
        held_ = size;
        used_.clear();
        for (I p = start_[from]; p < start_[from + size]; ++p) used_.add(features_[p]);
    }
    const UsedFeatures* used() const override { return &used_; }

  private:
    template <class Put>
    void put(int32_t l, Put put_at) const {
        for (I p = start_[l]; p < start_[l + 1]; ++p) put_at(features_[p], values_[p]);
    }
    const I *start_, *features_;
    const Number* values_;
    int32_t held_from_ = 0, held_ = 0;  // classes that the tile has now
    UsedFeatures used_;
};

// Dense rows: score(first, rows, tile, out) writes (rows, tile_width) scores.
template <class T>
struct DenseRowScores {
    const T* X;
    int64_t n, d;
    double cost() const { return static_cast<double>(d); }
    void score(int64_t first, int64_t rows, const T* tile, const UsedFeatures*, const T* b, T* out) const {
        simd<T>().products(X + first * d, rows, d, tile, tile_width<T>, b, out, tile_width<T>);
    }
};

template <class T, class I>
struct SparseRowScores {
    const I *start, *features;
    const T* values;
    int64_t n, d;
    double cost() const { return static_cast<double>(start[n]) / static_cast<double>(std::max<int64_t>(n, 1)) + 1; }
    void score(int64_t first, int64_t rows, const T* tile, const UsedFeatures* used, const T* b, T* out) const {
        const auto& loops = sparse_simd<T, I>();
        UsedNumbers<T, I> some;
        for (int64_t i = first; i < first + rows; ++i, out += tile_width<T>) {
            const I s = start[i];
            const int64_t nnz = static_cast<int64_t>(start[i + 1] - s);
            if (used != nullptr) {
                some.take(*used, features + s, values + s, nnz);
                loops.scores_all(some.features(), some.values(), some.size(), tile, tile_width<T>, out);
            } else {
                loops.scores_all(features + s, values + s, nnz, tile, tile_width<T>, out);
            }
            for (int32_t c = 0; c < tile_width<T>; ++c) out[c] += b[c];
        }
    }
};

// Calls see(row, first class of the tile, how many, scores) for all rows and tiles; the tiles of a row come in order.
template <class T, class Rows, class See>
void each_score(const Rows& rows, TileSource<T>& vectors, const T* b, int32_t k, ThreadTeam& team, See see) {
    constexpr int32_t width = tile_width<T>;
    constexpr int64_t chunk = 1024, strip = 16;
    Buffer<T> tile(rows.d * width), base(width);
    for (int32_t from = 0; from < k; from += width) {
        const int32_t size = std::min(width, k - from);
        vectors.fill(from, size, tile.data(), team);
        std::copy(b + from, b + from + size, base.data());
        team.for_each_part(static_cast<int>((rows.n + chunk - 1) / chunk), [&](int part) {
            alignas(64) T f[strip * width];
            const int64_t end = std::min(rows.n, (part + 1) * chunk);
            for (int64_t i = part * chunk; i < end; i += strip) {
                const int64_t some = std::min(strip, end - i);
                rows.score(i, some, tile.data(), vectors.used(), base.data(), f);
                for (int64_t r = 0; r < some; ++r) see(i + r, from, size, f + r * width);
                team.count_work(2.0 * static_cast<double>(some * width) * rows.cost());
            }
        });
    }
}

// The `top` largest scores of each row and their classes, the largest first, the first class of equals first.
// Rows whose numbers are not finite have minus infinity among them.
template <class T, class Rows>
void top_scores(const Rows& rows, TileSource<T>& vectors, const T* b, int32_t k, int32_t top, ThreadTeam& team,
                T* scores, int32_t* classes) {
    using Found = std::pair<T, int32_t>;
    const auto better = [](const Found& a, const Found& c) {
        return a.first > c.first || (a.first == c.first && a.second < c.second);
    };
    std::vector<Found> best(static_cast<size_t>(rows.n) * top, Found(-std::numeric_limits<T>::infinity(), k));
    each_score<T>(rows, vectors, b, k, team, [&](int64_t i, int32_t from, int32_t size, const T* f) {
        Found* heap = best.data() + i * top;  // the worst of them stands first
        int above = 0;
        const T least = heap[0].first;
        for (int32_t c = 0; c < size; ++c) above |= f[c] > least;
        if (!above) return;
        for (int32_t c = 0; c < size; ++c) {
            if (!(f[c] > heap[0].first)) continue;
            std::pop_heap(heap, heap + top, better);
            heap[top - 1] = {f[c], from + c};
            std::push_heap(heap, heap + top, better);
        }
    });
    for (int64_t i = 0; i < rows.n; ++i) {
        std::sort(best.begin() + i * top, best.begin() + (i + 1) * top, better);
        for (int32_t j = 0; j < top; ++j) {
            scores[i * top + j] = best[i * top + j].first;
            classes[i * top + j] = std::min(best[i * top + j].second, k - 1);
        }
    }
}

}  // namespace skm
