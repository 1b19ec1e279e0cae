// Loops over rows of a kernel matrix: added to scores, copied, mirrored; rows of X centred for it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/interrupt.hpp"
#include "simd/simd.hpp"

namespace skm {

// F[l, :] += sum_r coef[r, l] store[slot[r], :], by strips of columns that stay in the cache.  `careful`: T sums up a
// few rows at a time, and float64 these sums, since long sums of large numbers of both signs lose more than the rows
// did.
template <class T>
void kernel_add(T* F, int64_t n, int32_t k, const T* store, const int64_t* slot, int64_t rows, const double* coef,
                bool careful, InterruptPoll& poll) {
    constexpr int64_t strip = 4096, rows_per_sum = 128;
    const Simd<T>& vector = simd<T>();
    std::vector<int32_t> cls;
    std::vector<double> value;
    std::vector<int64_t> first{0};
    for (int64_t r = 0; r < rows; ++r) {
        for (int32_t l = 0; l < k; ++l)
            if (coef[r * k + l] != 0) {
                cls.push_back(l);
                value.push_back(coef[r * k + l]);
            }
        first.push_back(static_cast<int64_t>(cls.size()));
    }
    std::vector<double> sums(careful ? k * strip : 0);
    for (int64_t j = 0; j < n; j += strip) {
        const int64_t width = std::min(strip, n - j);
        if (careful) std::fill(sums.begin(), sums.end(), 0.0);
        // F is added to the sums and begins again at zero, or (`back`) takes their values.
        const auto exchange = [&](bool back) {
            for (int32_t l = 0; l < k; ++l) {
                T* f = F + l * n + j;
                double* sum = sums.data() + l * strip;
                for (int64_t c = 0; c < width; ++c) {
                    sum[c] += f[c];
                    f[c] = back ? static_cast<T>(sum[c]) : T{0};
                }
            }
        };
        for (int64_t r = 0; r < rows; ++r) {
            if (careful && r % rows_per_sum == 0) exchange(false);
            const int32_t m = static_cast<int32_t>(first[r + 1] - first[r]);
            vector.axpys(store + slot[r] * n + j, width, F + j, n, cls.data() + first[r], m, value.data() + first[r]);
            poll.count_work(2.0 * m * static_cast<double>(width));
        }
        if (careful) exchange(true);
    }
}

// out[a, c] = store[slot[a], column[c]], zero in the padding up to ld
template <class T>
void kernel_gather(const T* store, int64_t n, const int64_t* slot, const int64_t* column, int64_t rows, int64_t columns,
                   T* out, int64_t ld, InterruptPoll& poll) {
    for (int64_t a = 0; a < rows; ++a) {
        const T* row = store + slot[a] * n;
        T* to = out + a * ld;
        for (int64_t c = 0; c < columns; ++c) to[c] = row[column[c]];
        std::fill(to + columns, to + ld, T{0});
        poll.count_work(4.0 * static_cast<double>(ld));
    }
}

// out[a, column[c]] = values[a, c]; out has n columns
template <class T>
void kernel_scatter(const T* values, const int64_t* column, int64_t rows, int64_t columns, T* out, int64_t n,
                    InterruptPoll& poll) {
    for (int64_t a = 0; a < rows; ++a, values += columns, out += n) {
        for (int64_t c = 0; c < columns; ++c) out[column[c]] = values[c];
        poll.count_work(4.0 * static_cast<double>(columns));
    }
}

// out[a, kept[c]] = store[slot[c], sample[a]]: entries of other rows of a symmetric matrix of n columns, read from rows
// that are kept; by strips of kept rows, of which a cache line each stays in the cache.
template <class T>
void kernel_mirror(const T* store, int64_t n, const int64_t* slot, const int64_t* kept, int64_t columns,
                   const int64_t* sample, int64_t rows, T* out, InterruptPoll& poll) {
    constexpr int64_t strip = 16;
    for (int64_t first = 0; first < columns; first += strip) {
        const int64_t last = std::min(columns, first + strip);
        for (int64_t a = 0; a < rows; ++a) {
            T* to = out + a * n;
            const T* from = store + sample[a];
            for (int64_t c = first; c < last; ++c) to[kept[c]] = from[slot[c] * n];
            poll.count_work(4.0 * strip);
        }
    }
}

// Rows `row` of X in the number type T after the centre was taken away in float64, and their squared norms.
template <class S, class T>
void kernel_centre(const S* X, int64_t d, const int64_t* row, int64_t rows, const double* centre, T* out, T* norms,
                   InterruptPoll& poll) {
    const int32_t self = 0;
    for (int64_t a = 0; a < rows; ++a, out += d) {
        const S* x = X + row[a] * d;
        for (int64_t j = 0; j < d; ++j) out[j] = static_cast<T>(x[j] - centre[j]);
        double norm = 0;
        simd<T>().dots(out, d, out, d, &self, 1, &norm);
        norms[a] = static_cast<T>(norm);
        poll.count_work(3.0 * static_cast<double>(d));
    }
}

}  // namespace skm
