// Sums and extremes of short arrays.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace skm {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Four numbers at a time: one after the other they would wait for each other.
inline double sum_of(const double* x, int32_t m) {
    double s[4] = {};
    int32_t j = 0;
    for (; j + 4 <= m; j += 4)
        for (int32_t r = 0; r < 4; ++r) s[r] += x[j + r];
    for (; j < m; ++j) s[0] += x[j];
    return (s[0] + s[1]) + (s[2] + s[3]);
}
inline double min_of(const double* x, int32_t m) {
    double s[4] = {infinity, infinity, infinity, infinity};
    int32_t j = 0;
    for (; j + 4 <= m; j += 4)
        for (int32_t r = 0; r < 4; ++r) s[r] = x[j + r] < s[r] ? x[j + r] : s[r];
    for (; j < m; ++j) s[0] = x[j] < s[0] ? x[j] : s[0];
    return std::min(std::min(s[0], s[1]), std::min(s[2], s[3]));
}
inline double max_of(const double* x, int32_t m) {
    double s[4] = {-infinity, -infinity, -infinity, -infinity};
    int32_t j = 0;
    for (; j + 4 <= m; j += 4)
        for (int32_t r = 0; r < 4; ++r) s[r] = x[j + r] > s[r] ? x[j + r] : s[r];
    for (; j < m; ++j) s[0] = x[j] > s[0] ? x[j] : s[0];
    return std::max(std::max(s[0], s[1]), std::max(s[2], s[3]));
}

}  // namespace skm
