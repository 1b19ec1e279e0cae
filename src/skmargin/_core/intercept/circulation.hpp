// A dual point that satisfies the constraint of the free intercept exactly.
//
// Without a penalty on b the dual needs sum_i c_il = 0 for every class l.  The alpha_il of the samples of class j are a
// flow from j to l (a negative one flows the other way), and the constraint says that this flow is a circulation: what
// leaves a class enters it.  What is in excess somewhere has to be moved to where it is missing, by changes of duals
//     alpha_il smaller                     moves excess from y_i to l
//     alpha_il larger                      moves excess from l to y_i
//     alpha_il smaller, alpha_im larger    moves excess from m to l
// first by duals that are strictly inside their bounds, where the dual objective is flat (losses/loss.hpp:
// `movable_range`), each by the same share of what it may move; then also by duals of samples near their margins, and
// between rivals that are equally near, which costs next to nothing; the rest by reducing flow, which every loss
// allows.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/interrupt.hpp"
#include "base/sums.hpp"
#include "intercept/class_pairs.hpp"
#include "intercept/excess_flow.hpp"
#include "losses/loss.hpp"
#include "tuning.hpp"

namespace skm {

// Candidates for moves, by the width that admits them: none (strictly inside their bounds), then parts of near_margin.
constexpr int n_widths = 4;
constexpr double near_widths[n_widths] = {0.0, 0.1 * near_margin, 0.3 * near_margin, near_margin};
using CandidatesByWidth = std::array<std::vector<uint32_t>, n_widths>;

// The moves of excess that the duals of one sample allow.
template <BoundedDuals Loss>
class SampleMoves {
  public:
    SampleMoves(const Loss& loss, int32_t k) : loss_(loss), down_(k), up_(k), near_(k) {}

    double width = 0;  // duals at a bound may move too where the slope of the objective is smaller than this

    // Calls move(from, to, capacity, j, l): dual j may fall (j >= 0) and dual l may grow (l >= 0) by `capacity`; all
    // these moves may be made together.  `slope(j)` is that of the dual objective in the j-th dual.
    template <class Slope, class Move>
    void operator()(int64_t i, int32_t own, const int32_t* cls, const double* alpha, int32_t m, Slope slope,
                    Move move) {
        for (int32_t j = 0; j < m; ++j) near_[j] = std::abs(slope(j)) < width;
        if (loss_.movable_range(i, alpha, m, near_.data(), down_.data(), up_.data())) {
            for (int32_t j = 0; j < m; ++j) {
                if (down_[j] > 0) move(own, cls[j], down_[j], j, -1);
                if (up_[j] > 0) move(cls[j], own, up_[j], -1, j);
            }
            return;
        }
        if (m == 1 && !near_[0]) return;  // most samples: no second dual to exchange with
        bool fall = true;
        double top = slope(0);
        for (int32_t j = 0; j < m; ++j) {
            fall = fall && (alpha[j] == 0 || near_[j]);
            top = std::max(top, slope(j));
        }
        if (fall) {
            for (int32_t j = 0; j < m; ++j)
                if (down_[j] > 0) move(own, cls[j], down_[j], j, -1);
            return;
        }
        exchange(i, cls, alpha, m, top, slope, move);
    }

  private:
    // The sum of the duals is at its limit: they can only exchange, those inside their bounds or as good as the best.
    template <class Slope, class Move>
    void exchange(int64_t i, const int32_t* cls, const double* alpha, int32_t m, double top, Slope slope, Move move) {
        for (int32_t j = 0; j < m; ++j) near_[j] = slope(j) > top - width;
        loss_.movable_range(i, alpha, m, near_.data(), down_.data(), up_.data());
        tradeable_.clear();
        for (int32_t j = 0; j < m; ++j)
            if (down_[j] > 0 || up_[j] > 0) tradeable_.push_back(j);
        const size_t size = tradeable_.size();
        for (size_t a = 0; a < size && size > 1; ++a) {  // each with two others: half of its range for each
            const int32_t j = tradeable_[a], l = tradeable_[(a + 1) % size];
            move(cls[l], cls[j], 0.5 * std::min(down_[j], up_[l]), j, l);
            move(cls[j], cls[l], 0.5 * std::min(down_[l], up_[j]), l, j);
        }
    }

    const Loss& loss_;
    std::vector<double> down_, up_;
    std::vector<uint8_t> near_;
    std::vector<int32_t> tradeable_;
};

// Makes the duals of n samples a circulation that the loss allows.  `with(i, visit)` calls visit(own class, rivals,
// duals, how many) for sample i; the duals are changed in place.  `slope(i, j)` is that of the dual objective in the
// j-th of them, and `pairs` number the pairs of classes.  `outside` is the excess of other samples, whose duals stay.
template <class Pairs, BoundedDuals Loss, class With, class Slope>
class Circulation {
  public:
    Circulation(Pairs& pairs, int32_t k, int64_t n, const Loss& loss, With& with, Slope& slope, InterruptPoll& poll,
                const std::vector<double>& outside)
        : arc_(pairs), n_(n), loss_(loss), with_(with), slope_(slope), poll_(poll), outside_(outside), moves_(loss, k),
          capacity_(pairs.size()), excess_(outside), changed_(k) {}

    // Returns the samples whose duals may move.
    CandidatesByWidth make() {
        find_candidates();
        for (int width = 0; width < n_widths && !done(); ++width) use_candidates(width);
        reduce_flow();
        return std::move(candidates_);
    }

  private:
    void add_capacity(size_t pair, double limit) {
        if (pair >= capacity_.size()) capacity_.resize(pair + 1);
        capacity_[pair] += limit;
    }
    void add_up(int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
        for (int32_t j = 0; j < m; ++j) {
            excess_[own] += alpha[j], excess_[cls[j]] -= alpha[j];
            total_ += std::abs(alpha[j]);
        }
    }
    bool done() const {
        return std::all_of(excess_.begin(), excess_.end(), [&](double e) { return std::abs(e) <= 1e-15 * total_; });
    }
    template <class Move>
    void moves_of(int64_t i, int32_t own, const int32_t* cls, const double* alpha, int32_t m, Move move) {
        poll_.count_work(8.0 * m);
        moves_(i, own, cls, alpha, m, [&](int32_t j) { return slope_(i, j); }, move);
    }

    // The excess of each class, and the samples by the width that admits them.
    void find_candidates() {
        for (int64_t i = 0; i < n_; ++i)
            with_(i, [&](int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
                poll_.count_work(8.0 * m);
                add_up(own, cls, alpha, m);
                double least = infinity, top = -infinity, second = -infinity;
                for (int32_t j = 0; j < m; ++j) {
                    least = std::min(least, std::abs(slope_(i, j)));
                    second = std::max(second, std::min(top, slope_(i, j)));
                    top = std::max(top, slope_(i, j));
                }
                least = std::min(least, top - second);
                if (!loss_.at_vertex(i, alpha, m))
                    moves_of(i, own, cls, alpha, m, [&](int32_t, int32_t, double, int32_t, int32_t) { least = 0; });
                int width = 0;
                while (width < n_widths && least > 0 && least >= near_widths[width]) ++width;
                if (width < n_widths) candidates_[width].push_back(static_cast<uint32_t>(i));
            });
    }

    // Moves excess by the candidates up to a width, each by the same share of its capacity.
    void use_candidates(int width) {
        moves_.width = near_widths[width];
        std::fill(capacity_.begin(), capacity_.end(), 0.0);
        const auto each = [&](auto visit) {
            for (int q = 0; q <= width; ++q)
                for (const uint32_t i : candidates_[q]) with_(i, [&](auto... row) { visit(i, row...); });
        };
        each([&](int64_t i, int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
            moves_of(i, own, cls, alpha, m, [&](int32_t from, int32_t to, double limit, int32_t, int32_t) {
                add_capacity(arc_(from, to), limit);
            });
        });
        const std::vector<double> used = ExcessFlow(arc_, capacity_, excess_, poll_).move();
        each([&](int64_t i, int32_t own, const int32_t* cls, double* alpha, int32_t m) {
            for (int32_t j = 0; j < m; ++j) changed_[j] = alpha[j];
            moves_of(i, own, cls, alpha, m, [&](int32_t from, int32_t to, double limit, int32_t j, int32_t l) {
                const double amount = used[arc_(from, to)] * limit;
                if (j >= 0) changed_[j] -= amount;
                if (l >= 0) changed_[l] += amount;
            });
            for (int32_t j = 0; j < m; ++j) alpha[j] = changed_[j];
        });
    }

    // Moves what is left by making duals smaller.
    void reduce_flow() {
        const auto flow = [&](int32_t own, int32_t l, double alpha) { return alpha > 0 ? arc_(own, l) : arc_(l, own); };
        std::fill(capacity_.begin(), capacity_.end(), 0.0);
        excess_ = outside_;
        total_ = 0;
        for (int64_t i = 0; i < n_; ++i)
            with_(i, [&](int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
                add_up(own, cls, alpha, m);
                for (int32_t j = 0; j < m; ++j) add_capacity(flow(own, cls[j], alpha[j]), std::abs(alpha[j]));
            });
        if (done()) return;
        const std::vector<double> used = ExcessFlow(arc_, capacity_, excess_, poll_).move();
        for (int64_t i = 0; i < n_; ++i)
            with_(i, [&](int32_t own, const int32_t* cls, double* alpha, int32_t m) {
                for (int32_t j = 0; j < m; ++j) alpha[j] *= 1 - used[flow(own, cls[j], alpha[j])];
            });
    }

    Pairs& arc_;
    const int64_t n_;
    const Loss& loss_;
    With& with_;
    Slope& slope_;
    InterruptPoll& poll_;
    const std::vector<double>& outside_;
    SampleMoves<Loss> moves_;
    CandidatesByWidth candidates_;
    std::vector<double> capacity_, excess_, changed_;
    double total_ = 0;  // of all duals
};

template <BoundedDuals Loss, class With, class Slope>
CandidatesByWidth make_circulation(int32_t k, int64_t n, const Loss& loss, With&& with, Slope&& slope,
                                   InterruptPoll& poll, const std::vector<double>& outside) {
    return with_pairs(k,
                      [&](auto& pairs) { return Circulation(pairs, k, n, loss, with, slope, poll, outside).make(); });
}
template <BoundedDuals Loss, class With, class Slope>
CandidatesByWidth make_circulation(int32_t k, int64_t n, const Loss& loss, With&& with, Slope&& slope,
                                   InterruptPoll& poll) {
    return make_circulation(k, n, loss, with, slope, poll, std::vector<double>(k));
}

}  // namespace skm
