// One pass over a block of rows: everything that a step of the smoothed Newton method needs is a sum over rows.
//
// Given     rows x_i (block_rows.hpp), classes y_i, caps C s_i, a point V = (W, b), a width w, and for the curvature a
//           width of its own; rows of a larger reach r_i have the widths w r_i
// Added up  the losses, the smoothed losses, the residuals, the number of pairs in the band (values);
//           sum_i c_i x_i' (gradient, k x D); for each pair of classes l < m the sum of weight x x' over the rows that
//           couple them (laplacian, k (k - 1) / 2 x D x D, of which one triangle is filled)
//
// Products are made for some hundred rows at a time, in the number type of the pass, and added up in double precision.
// Rows with c = 0 and no pair, which are most of them where classes are well apart, leave after the scores.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/interrupt.hpp"
#include "blocks/block_blas.hpp"
#include "blocks/block_rows.hpp"
#include "blocks/class_groups.hpp"
#include "blocks/smooth_losses.hpp"
#include "rows/rows.hpp"

namespace skm {

struct PassSettings {
    SmoothLoss loss;
    int32_t k;
    double width, hessian;  // the latter 0: no pairs
};

// Sums of a pass: loss, smooth, residual, pairs, rows.
constexpr int n_values = 5;

template <class T>
class BlockPass {
  public:
    // W: k x D, class after class.
    BlockPass(const PassSettings& settings, const double* W, int64_t D)
        : s_(settings), k_(settings.k), D_(static_cast<int>(D)), ld_(rounded_up(k_, simd_.few)), W_(D * ld_ + 64),
          bias_(ld_), X_(piece * D + 64), F_(piece * ld_ + 64), c_(static_cast<int64_t>(piece) * k_),
          part_(static_cast<int64_t>(k_) * D), at_(piece), reach_(piece), map_(s_.loss, k_) {
        for (int32_t l = 0; l < k_; ++l)
            for (int64_t j = 0; j < D; ++j) W_.data()[j * ld_ + l] = static_cast<T>(W[l * D + j]);
        if (s_.hessian > 0) curvature_.emplace(k_, D);
    }

    // `base` (n x k) is added to the scores, if there is one.
    void add(const BlockReader<T>& rows, const int32_t* y, const double* cap, const double* base, double* values,
             double* gradient, double* laplacian, InterruptPoll& poll) {
        RowSums sums;
        int64_t seen = 0;
        for (int64_t i = 0; i < rows.n;) {
            const int64_t count = next_rows(i, rows.n);
            rows.read(at_.data(), count, X_.data(), reach_.data());
            simd_.products(X_.data(), count, D_, W_.data(), ld_, bias_.data(), F_.data(), ld_);
            if (base != nullptr)
                for (int64_t r = 0; r < count; ++r)
                    for (int32_t l = 0; l < k_; ++l) F_.data()[r * ld_ + l] += static_cast<T>(base[at_[r] * k_ + l]);
            int active = 0;
            RowSums some;
            for (int64_t r = 0; r < count; ++r) {
                const int64_t row = at_[r];
                T* c = &c_[static_cast<int64_t>(active) * k_];
                if (!map_(F_.data() + r * ld_, y[row], cap[row], s_.width * reach_[r], s_.hessian * reach_[r], c, some))
                    continue;
                T* x = X_.data() + static_cast<int64_t>(active) * D_;
                if (active != r) std::copy_n(X_.data() + r * D_, D_, x);
                for (const ClassGroup& g : map_.groups) curvature_->add(g, map_.members.data(), x, laplacian);
                ++active;
            }
            sums.loss += some.loss, sums.smooth += some.smooth;
            sums.residual += some.residual, sums.pairs += some.pairs;
            seen += count;
            gather(active, gradient);
            poll.count_work(4.0 * static_cast<double>(count) * D_ * k_);
        }
        if (curvature_) curvature_->flush(laplacian);
        values[0] += sums.loss;
        values[1] += sums.smooth;
        values[2] += sums.residual;
        values[3] += sums.pairs;
        values[4] += static_cast<double>(seen);
    }

    // Calls see(row, its coefficients) for each row: the duals of the point.
    template <class See>
    void visit(const BlockReader<T>& rows, const int32_t* y, const double* cap, InterruptPoll& poll, See see) {
        RowSums sums;
        for (int64_t i = 0; i < rows.n;) {
            const int64_t count = next_rows(i, rows.n);
            rows.read(at_.data(), count, X_.data(), reach_.data());
            simd_.products(X_.data(), count, D_, W_.data(), ld_, bias_.data(), F_.data(), ld_);
            for (int64_t r = 0; r < count; ++r) {
                const int64_t row = at_[r];
                const bool any = map_(F_.data() + r * ld_, y[row], cap[row], s_.width * reach_[r], 0, c_.data(), sums);
                if (!any) std::fill_n(c_.begin(), k_, T(0));
                see(row, c_.data());
            }
            poll.count_work(2.0 * static_cast<double>(count) * D_ * k_);
        }
    }

  private:
    // The next rows from i on, in at_; i becomes the row behind them.  Returns how many.
    int64_t next_rows(int64_t& i, int64_t n) {
        int64_t count = 0;
        for (; i < n && count < piece; ++i) at_[count++] = i;
        return count;
    }

    static constexpr int piece = 512;  // rows at a time: they stay in the cache

    void gather(int active, double* gradient) {
        if (active == 0) return;
        const T one = 1, zero = 0;
        block_blas<T>.gemm("N", "T", &D_, &k_, &active, &one, X_.data(), &D_, c_.data(), &k_, &zero, part_.data(), &D_);
        for (int64_t e = 0; e < static_cast<int64_t>(k_) * D_; ++e) gradient[e] += static_cast<double>(part_[e]);
    }

    const Simd<T>& simd_ = simd<T>();
    const PassSettings s_;
    const int k_, D_;
    const int64_t ld_;
    Buffer<T> W_, bias_, X_, F_;
    std::vector<T> c_, part_;
    std::vector<int64_t> at_;
    std::vector<double> reach_;
    RowMap<T> map_;
    std::optional<PairSums<T>> curvature_;
};

}  // namespace skm
