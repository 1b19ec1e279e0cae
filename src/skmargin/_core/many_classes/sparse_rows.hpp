// Sparse rows with features numbered by how often they occur, and the rows of each feature.
//
// Words of a text follow a power law: with the frequent ones first, the few thousand features that most of the stored
// numbers belong to lie together in memory, whatever is kept for each feature.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/interrupt.hpp"

namespace skm {

// What a solve looks at; the arrays belong to the caller.
template <class T>
struct RowsByFrequency {
    const int64_t* start;     // of each row, n + 1
    const int32_t* features;  // in the new numbering, rising in each row
    const T* values;
    const int64_t* feature_start;  // d + 1
    const int32_t* feature_rows;   // rows that hold a feature, rising
    int64_t n, d;

    int64_t nnz(int64_t i) const { return start[i + 1] - start[i]; }
};

// Their arrays, from CSR rows.
template <class T>
struct RowArrays {
    std::vector<int64_t> start, feature_start;
    std::vector<int32_t> features, feature_rows, original;  // number that a feature had before
    std::vector<T> values;

    template <class I, class U>
    RowArrays(const I* indptr, const I* indices, const U* data, int64_t n, int64_t d, InterruptPoll& poll)
        : start(n + 1), feature_start(d + 1), original(d) {
        const int64_t stored = static_cast<int64_t>(indptr[n]);
        std::vector<int64_t> count(d, 0);
        for (int64_t p = 0; p < stored; ++p) ++count[indices[p]];
        poll.count_work(2.0 * static_cast<double>(stored));
        std::iota(original.begin(), original.end(), 0);
        std::stable_sort(original.begin(), original.end(), [&](int32_t a, int32_t b) { return count[a] > count[b]; });
        std::vector<int64_t> at(d);  // where the next row of a feature, by its old number, goes
        for (int64_t j = 0; j < d; ++j) {
            at[original[j]] = feature_start[j];
            feature_start[j + 1] = feature_start[j] + count[original[j]];
        }
        feature_rows.resize(stored);
        std::vector<T> by_feature(stored);
        for (int64_t i = 0; i < n; ++i) {
            start[i + 1] = static_cast<int64_t>(indptr[i + 1]);
            for (I p = indptr[i]; p < indptr[i + 1]; ++p) {
                const int64_t place = at[indices[p]]++;
                feature_rows[place] = static_cast<int32_t>(i);
                by_feature[place] = static_cast<T>(data[p]);
            }
            poll.count_work(20.0 * static_cast<double>(indptr[i + 1] - indptr[i]));
        }
        features.resize(stored);
        values.resize(stored);
        std::vector<int64_t> next(start.begin(), start.end() - 1);
        for (int64_t j = 0; j < d; ++j) {
            for (int64_t p = feature_start[j]; p < feature_start[j + 1]; ++p) {
                const int64_t place = next[feature_rows[p]]++;
                features[place] = static_cast<int32_t>(j);
                values[place] = by_feature[p];
            }
            poll.count_work(20.0 * static_cast<double>(count[original[j]]));
        }
    }
};

// Rivals of each sample with a number, as CSR arrays.
struct RivalLists {
    const int64_t* start;
    const int32_t* cls;
    const double* alpha;
};

}  // namespace skm
