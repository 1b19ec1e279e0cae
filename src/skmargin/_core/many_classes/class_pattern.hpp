// Sparse class vectors for the visits of block ascent: which pairs (feature, class) can be touched is known beforehand.
//
// Between two scans a sample only meets the rivals of its list.  So the class vectors can differ from zero only where a
// row with the feature has the class in its list or as its own; these pairs get a slot.  A feature that is filled above
// a quarter has a slot for every class; the others have a hash table of their own (linear probing, never changed after
// it was made).  The numbers themselves are an array over all slots, owned by the model (linear/class_vectors.hpp).
#pragma once
#include <cstdint>
#include <vector>

#include "base/thread_team.hpp"
#include "many_classes/sparse_rows.hpp"
#include "rows/rows.hpp"

#if defined(__GNUC__) || defined(__clang__)
#define SKMARGIN_FETCH(p) __builtin_prefetch(p)
#else
#define SKMARGIN_FETCH(p) (void)(p)
#endif

namespace skm {

class ClassPattern {
  public:
    static constexpr int64_t absent = -1;

    template <class T>
    ClassPattern(const RowsByFrequency<T>& rows, const int32_t* y, const RivalLists& lists, int32_t k, ThreadTeam& team)
        : k_(k), start_(rows.d + 1) {
        const auto each_class = [&](int64_t j, auto visit) {
            for (int64_t p = rows.feature_start[j]; p < rows.feature_start[j + 1]; ++p) {
                const int32_t i = rows.feature_rows[p];
                visit(y[i]);
                for (int64_t e = lists.start[i]; e < lists.start[i + 1]; ++e) visit(lists.cls[e]);
            }
        };
        // Parts with as many stored numbers as each other; a feature belongs to one of them.
        std::vector<int64_t> cut(1, 0);
        const int64_t stored = rows.feature_start[rows.d];
        for (int64_t j = 0; j < rows.d; ++j)
            if (rows.feature_start[j + 1] > (stored / parts + 1) * static_cast<int64_t>(cut.size()))
                cut.push_back(j + 1);
        if (cut.back() < rows.d) cut.push_back(rows.d);
        const int ranges = static_cast<int>(cut.size()) - 1;
        const double rivals = 1 + static_cast<double>(lists.start[rows.n]) / static_cast<double>(rows.n);
        const auto told = [&](int64_t j) {
            team.count_work(4 * rivals * static_cast<double>(rows.feature_start[j + 1] - rows.feature_start[j]));
        };
        team.for_each_part(ranges, [&](int range) {
            std::vector<int64_t> seen(k, -1);
            for (int64_t j = cut[range]; j < cut[range + 1]; ++j) {
                int64_t count = 0;
                each_class(j, [&](int32_t l) {
                    count += seen[l] != j;
                    seen[l] = j;
                });
                start_[j + 1] = 4 * count > k ? k : count > 0 ? count + count / 2 + 1 : 0;
                told(j);
            }
        });
        for (int64_t j = 0; j < rows.d; ++j) start_[j + 1] += start_[j];
        keys_.assign(static_cast<size_t>(slots()), empty);
        team.for_each_part(ranges, [&](int range) {
            for (int64_t j = cut[range]; j < cut[range + 1]; ++j) {
                if (dense(j)) continue;
                each_class(j, [&](int32_t l) { keys_[probe(j, l, hash(l))] = l; });
                told(j);
            }
        });
    }

    int64_t slots() const { return start_.back(); }

    static uint32_t hash(int32_t l) { return static_cast<uint32_t>(l) * 0x9E3779B1u; }
    // The slot of a pair, or `absent`.
    int64_t find(int64_t j, int32_t l, uint32_t hashed) const {
        if (dense(j)) return start_[j] + l;
        if (start_[j + 1] == start_[j]) return absent;
        const int64_t slot = probe(j, l, hashed);
        return keys_[slot] == l ? slot : absent;
    }
    // Where the search for a pair begins.
    int64_t first(int64_t j, int32_t l, uint32_t hashed) const {
        const int64_t size = start_[j + 1] - start_[j];
        return start_[j] + (size == k_ ? l : static_cast<int64_t>((static_cast<uint64_t>(hashed) * size) >> 32));
    }
    const int32_t* key(int64_t slot) const { return keys_.data() + slot; }

  private:
    static constexpr int parts = 64;
    static constexpr int32_t empty = -1;

    bool dense(int64_t j) const { return start_[j + 1] - start_[j] == k_; }
    // Each table has at least one empty slot, where every search ends.
    int64_t probe(int64_t j, int32_t l, uint32_t hashed) const {
        int64_t slot = first(j, l, hashed);
        while (keys_[slot] != l && keys_[slot] != empty)
            if (++slot == start_[j + 1]) slot = start_[j];
        return slot;
    }

    const int32_t k_;
    std::vector<int64_t> start_;
    std::vector<int32_t> keys_;
};

// Rows over such class vectors, as block ascent sees them (rows/rows.hpp).
template <class Number>
class PatternRows {
  public:
    using T = Number;
    PatternRows(const RowsByFrequency<T>& rows, const ClassPattern& pattern, int32_t k)
        : n(rows.n), d(rows.d), k(k), rows_(rows), pattern_(pattern) {}

    int64_t weights_size() const { return pattern_.slots(); }
    // A pair is looked for: as long as several multiply-adds take.
    double cost(int64_t i) const { return 8.0 * static_cast<double>(rows_.nnz(i)) + visit_overhead; }

    void scores(const T* V, int64_t i, const int32_t* cls, int32_t m, double* f) const {
        std::fill(f, f + m, 0.0);
        each_slot(V, i, cls, m, [&](int32_t j, int64_t slot, T x) { f[j] += static_cast<double>(x * V[slot]); });
    }
    void add(T* V, int64_t i, const int32_t* cls, int32_t m, const double* coef) const {
        each_slot(V, i, cls, m, [&](int32_t j, int64_t slot, T x) { V[slot] += x * static_cast<T>(coef[j]); });
    }
    void scores_all(const T* V, int64_t i, double* f) const {
        for (int32_t l = 0; l < k; ++l) scores(V, i, &l, 1, f + l);
    }
    void prefetch(int64_t i) const {
        for (int64_t p = rows_.start[i]; p < rows_.start[i + 1] && p < rows_.start[i] + 128; p += 16) {
            SKMARGIN_FETCH(rows_.features + p);
            SKMARGIN_FETCH(rows_.values + p);
        }
    }
    double squared_norm(int64_t i) const { return product(i, i); }
    double inner(int64_t i, const double* v) const {
        double s = 0;
        for (int64_t p = rows_.start[i]; p < rows_.start[i + 1]; ++p) s += rows_.values[p] * v[rows_.features[p]];
        return s;
    }
    double product(int64_t i, int64_t j) const {
        double s = 0;
        for (int64_t p = rows_.start[i], q = rows_.start[j]; p < rows_.start[i + 1] && q < rows_.start[j + 1];) {
            const int32_t a = rows_.features[p], b = rows_.features[q];
            if (a == b) s += static_cast<double>(rows_.values[p]) * rows_.values[q];
            p += a <= b;
            q += b <= a;
        }
        return s;
    }

    const int64_t n, d;
    const int32_t k;

  private:
    // Calls see(j, slot, x_ip) for the classes cls[j] and the stored numbers of the row.
    template <class See>
    void each_slot(const T* V, int64_t i, const int32_t* cls, int32_t m, See see) const {
        constexpr int64_t ahead = 3;
        thread_local std::vector<uint32_t> large;
        uint32_t small[64], *hashed = small;
        if (m > 64) {
            large.resize(m);
            hashed = large.data();
        }
        for (int32_t j = 0; j < m; ++j) hashed[j] = ClassPattern::hash(cls[j]);
        const int64_t end = rows_.start[i + 1];
        const auto fetch = [&](int64_t p) {
            for (int32_t j = 0; j < m; ++j) {
                const int64_t slot = pattern_.first(rows_.features[p], cls[j], hashed[j]);
                SKMARGIN_FETCH(pattern_.key(slot));
                SKMARGIN_FETCH(V + slot);
            }
        };
        for (int64_t p = rows_.start[i]; p < end && p < rows_.start[i] + ahead; ++p) fetch(p);
        for (int64_t p = rows_.start[i]; p < end; ++p) {
            if (p + ahead < end) fetch(p + ahead);
            for (int32_t j = 0; j < m; ++j) {
                const int64_t slot = pattern_.find(rows_.features[p], cls[j], hashed[j]);
                if (slot != ClassPattern::absent) see(j, slot, rows_.values[p]);
            }
        }
    }

    const RowsByFrequency<T>& rows_;
    const ClassPattern& pattern_;
};

}  // namespace skm
