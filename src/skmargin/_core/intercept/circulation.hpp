// A dual point that satisfies the constraint of the free intercept exactly.
//
// Without a penalty on b the dual needs sum_i c_il = 0 for every class l.  The alpha_il of the samples of class j are a
// flow from j to l (a negative one flows the other way), and the constraint says that this flow is a circulation: what
// leaves a class enters it.  What is in excess somewhere has to be moved to where it is missing, by changes of duals
//     alpha_il smaller                     moves excess from y_i to l
//     alpha_il larger                      moves excess from l to y_i
//     alpha_il smaller, alpha_im larger    moves excess from m to l
// first by duals that are strictly inside their bounds, where the dual objective is flat (losses/hinge.hpp:
// `movable_range`), each by the same share of what it may move; then also by duals of samples near their margins, and
// between rivals that are equally near, which costs next to nothing; the rest by reducing flow, which every loss
// allows.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/interrupt.hpp"

namespace skm {

// Moves excess (positive: too much) along arcs of limited capacity, by shortest paths (Dinic's maximum flow).  `excess`
// becomes what could not be moved; returned is the share of each capacity (k x k, from row to column) that was used.
inline std::vector<double> move_excess(const std::vector<double>& capacity, std::vector<double>& excess,
                                       InterruptPoll& poll) {
    const int32_t k = static_cast<int32_t>(excess.size());
    const auto arc = [k](int32_t from, int32_t to) { return static_cast<size_t>(from) * k + to; };
    std::vector<double> residual = capacity;
    std::vector<std::vector<int32_t>> neighbours(k);  // lists: with many classes few pairs carry flow
    double largest = 0;
    for (int32_t j = 0; j < k; ++j) {
        largest = std::max(largest, std::abs(excess[j]));
        for (int32_t l = 0; l < k; ++l)
            if (capacity[arc(j, l)] > 0) neighbours[j].push_back(l);
        poll.count_work(2.0 * k);
    }
    const double rounding = 1e-15 * largest;
    std::vector<int32_t> level(k), queue, path;
    std::vector<size_t> next_arc(k);  // arcs before this one are exhausted
    for (bool moved = true; moved;) {
        moved = false;
        std::fill(level.begin(), level.end(), -1);
        std::fill(next_arc.begin(), next_arc.end(), 0);
        queue.clear();
        for (int32_t j = 0; j < k; ++j)
            if (excess[j] > rounding) level[j] = 0, queue.push_back(j);
        const size_t n_sources = queue.size();
        for (size_t q = 0; q < queue.size(); ++q) {
            for (const int32_t l : neighbours[queue[q]])
                if (level[l] < 0 && residual[arc(queue[q], l)] > 0) level[l] = level[queue[q]] + 1, queue.push_back(l);
            poll.count_work(2.0 * static_cast<double>(neighbours[queue[q]].size()));
        }
        for (size_t q = 0; q < n_sources; ++q) {  // along arcs from a level to the next: every path is a shortest one
            const int32_t source = queue[q];
            path.assign(1, source);
            while (!path.empty() && excess[source] > rounding) {
                poll.count_work(10.0);
                const int32_t j = path.back();
                if (excess[j] < -rounding) {
                    double amount = std::min(excess[source], -excess[j]);
                    for (size_t p = 1; p < path.size(); ++p)
                        amount = std::min(amount, residual[arc(path[p - 1], path[p])]);
                    for (size_t p = 1; p < path.size(); ++p) residual[arc(path[p - 1], path[p])] -= amount;
                    excess[source] -= amount;
                    excess[j] += amount;
                    path.assign(1, source);
                    moved = true;
                    continue;
                }
                while (next_arc[j] < neighbours[j].size() && (residual[arc(j, neighbours[j][next_arc[j]])] <= 0 ||
                                                              level[neighbours[j][next_arc[j]]] != level[j] + 1))
                    ++next_arc[j];
                if (next_arc[j] < neighbours[j].size()) {
                    path.push_back(neighbours[j][next_arc[j]]);
                } else {
                    path.pop_back();
                    if (!path.empty()) ++next_arc[path.back()];
                }
            }
        }
    }
    for (size_t a = 0; a < residual.size(); ++a)  // a residual of rounding counts as none
        residual[a] = residual[a] > 1e-13 * capacity[a] ? 1 - residual[a] / capacity[a] : capacity[a] > 0 ? 1.0 : 0.0;
    return residual;
}

constexpr double near_margin = 0.1;  // slope, in units of the margin, below which a dual counts as near its margin
// Candidates for moves, by the width that admits them: none (strictly inside their bounds), then parts of near_margin.
constexpr int n_widths = 4;
constexpr double near_widths[n_widths] = {0.0, 0.1 * near_margin, 0.3 * near_margin, near_margin};
using CandidatesByWidth = std::array<std::vector<uint32_t>, n_widths>;

// The moves of excess that the duals of one sample allow.
template <class Loss>
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
        for (int32_t j = 0; j < m; ++j) near_[j] = slope(j) > top - width;  // as good as the best: they can exchange
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

  private:
    const Loss& loss_;
    std::vector<double> down_, up_;
    std::vector<uint8_t> near_;
    std::vector<int32_t> tradeable_;
};

// Makes the duals of n samples a circulation that the loss allows.  `with(i, visit)` calls visit(own class, rivals,
// duals, how many) for sample i; the duals are changed in place.  `slope(i, j)` is that of the dual objective in the
// j-th of them.  Returns the samples whose duals may move.
template <class Loss, class With, class Slope>
CandidatesByWidth make_circulation(int32_t k, int64_t n, const Loss& loss, With&& with, Slope&& slope,
                                   InterruptPoll& poll) {
    const auto arc = [k](int32_t from, int32_t to) { return static_cast<size_t>(from) * k + to; };
    std::vector<double> capacity(static_cast<size_t>(k) * k), excess(k), used, changed(k);
    SampleMoves<Loss> moves(loss, k);
    const auto moves_of = [&](int64_t i, int32_t own, const int32_t* cls, const double* alpha, int32_t m, auto move) {
        poll.count_work(8.0 * m);
        moves(i, own, cls, alpha, m, [&](int32_t j) { return slope(i, j); }, move);
    };
    double total = 0;
    const auto add_up = [&](int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
        for (int32_t j = 0; j < m; ++j) {
            excess[own] += alpha[j], excess[cls[j]] -= alpha[j];
            total += std::abs(alpha[j]);
        }
    };
    const auto is_circulation = [&] {
        return std::all_of(excess.begin(), excess.end(), [&](double e) { return std::abs(e) <= 1e-15 * total; });
    };
    CandidatesByWidth candidates;
    for (int64_t i = 0; i < n; ++i)
        with(i, [&](int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
            poll.count_work(8.0 * m);
            add_up(own, cls, alpha, m);
            double least = std::numeric_limits<double>::infinity(), top = -least, second = -least;
            for (int32_t j = 0; j < m; ++j) {
                least = std::min(least, std::abs(slope(i, j)));
                second = std::max(second, std::min(top, slope(i, j)));
                top = std::max(top, slope(i, j));
            }
            least = std::min(least, top - second);
            if (!loss.at_vertex(i, alpha, m))
                moves_of(i, own, cls, alpha, m, [&](int32_t, int32_t, double, int32_t, int32_t) { least = 0; });
            int p = 0;
            while (p < n_widths && least > 0 && least >= near_widths[p]) ++p;
            if (p < n_widths) candidates[p].push_back(static_cast<uint32_t>(i));
        });
    for (int p = 0; p < n_widths && !is_circulation(); ++p) {
        moves.width = near_widths[p];
        std::fill(capacity.begin(), capacity.end(), 0.0);
        const auto each = [&](auto visit) {
            for (int q = 0; q <= p; ++q)
                for (const uint32_t i : candidates[q]) with(i, [&](auto... row) { visit(i, row...); });
        };
        each([&](int64_t i, int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
            moves_of(i, own, cls, alpha, m, [&](int32_t from, int32_t to, double limit, int32_t, int32_t) {
                capacity[arc(from, to)] += limit;
            });
        });
        used = move_excess(capacity, excess, poll);
        each([&](int64_t i, int32_t own, const int32_t* cls, double* alpha, int32_t m) {
            for (int32_t j = 0; j < m; ++j) changed[j] = alpha[j];
            moves_of(i, own, cls, alpha, m, [&](int32_t from, int32_t to, double limit, int32_t j, int32_t l) {
                const double amount = used[arc(from, to)] * limit;
                if (j >= 0) changed[j] -= amount;
                if (l >= 0) changed[l] += amount;
            });
            for (int32_t j = 0; j < m; ++j) alpha[j] = changed[j];
        });
    }
    const auto flow = [&](int32_t own, int32_t l, double alpha) { return alpha > 0 ? arc(own, l) : arc(l, own); };
    std::fill(capacity.begin(), capacity.end(), 0.0);
    std::fill(excess.begin(), excess.end(), 0.0);
    total = 0;
    for (int64_t i = 0; i < n; ++i)
        with(i, [&](int32_t own, const int32_t* cls, const double* alpha, int32_t m) {
            add_up(own, cls, alpha, m);
            for (int32_t j = 0; j < m; ++j) capacity[flow(own, cls[j], alpha[j])] += std::abs(alpha[j]);
        });
    if (is_circulation()) return candidates;
    used = move_excess(capacity, excess, poll);
    for (int64_t i = 0; i < n; ++i)
        with(i, [&](int32_t own, const int32_t* cls, double* alpha, int32_t m) {
            for (int32_t j = 0; j < m; ++j) alpha[j] *= 1 - used[flow(own, cls[j], alpha[j])];
        });
    return candidates;
}

}  // namespace skm
