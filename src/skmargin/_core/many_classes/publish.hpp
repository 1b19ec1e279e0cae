// Class vectors as a user sees them, in CSR arrays: features in their old numbers, rising.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "many_classes/coefficients.hpp"

namespace skm {

template <class Number>
struct SparseVectors {
    std::vector<int64_t> start;
    std::unique_ptr<int32_t[]> features;
    std::unique_ptr<Number[]> values;
};

// `weight` of each class; `original` the old numbers of the features.
template <class Number, class T>
SparseVectors<Number> sparse_vectors(const RowsByFrequency<T>& rows, const Coefficients& coefficients,
                                     const double* weight, const int32_t* original, ThreadTeam& team) {
    const int32_t k = coefficients.k;
    SparseVectors<Number> out;
    out.start.assign(k + 1, 0);
    const std::vector<int32_t> cut = coefficients.ranges(64);
    const auto each_class = [&](auto see) {
        team.for_each_part(static_cast<int>(cut.size()) - 1, [&](int part) {
            ClassVector<T> v(rows, coefficients, team);
            for (int32_t l = cut[part]; l < cut[part + 1]; ++l) {
                v.make(l);
                see(l, v);
            }
        });
    };
    each_class(
        [&](int32_t l, const ClassVector<T>& v) { out.start[l + 1] = static_cast<int64_t>(v.features().size()); });
    for (int32_t l = 0; l < k; ++l) out.start[l + 1] += out.start[l];
    out.features.reset(new int32_t[out.start[k]]);
    out.values.reset(new Number[out.start[k]]);
    each_class([&](int32_t l, const ClassVector<T>& v) {
        thread_local std::vector<std::pair<int32_t, int32_t>> order;
        order.clear();
        for (const int32_t j : v.features()) order.emplace_back(original[j], j);
        std::sort(order.begin(), order.end());
        int64_t at = out.start[l];
        for (const auto& [old, j] : order) {
            out.features[at] = old;
            out.values[at++] = static_cast<Number>(weight[l] * v[j]);
        }
        team.count_work(20.0 * static_cast<double>(order.size()));
    });
    return out;
}

}  // namespace skm
