// A step of ascent on the dual of a hinge that leaves every sum_i c_il what it is (intercept/circulation.hpp).
//
// What one sample moves from class p to class q another one must move back.  A Lagrange multiplier for each pair of
// classes, the price of a unit from p to q, decides which moves are made: those that gain more than the price.  At the
// right price both directions carry the same amount.  The result is a projected-gradient step in a metric where every
// move is measured by its capacity.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "linear/dual_lists.hpp"

namespace skm {

struct Move {
    uint32_t i;
    int32_t j, l;      // dual j falls, dual l grows; -1: none
    int32_t from, to;  // classes between which excess is moved
    double capacity;   // the most that may be moved
    double gain;       // of the dual objective, for each unit
    double amount = 0;
};

// The moves between two classes p and q.
class ClassPairMoves {
  public:
    ClassPairMoves(Move* begin, Move* end, InterruptPoll& poll)
        : begin_(begin), end_(end), p_(begin->from), poll_(poll) {
        bool back = false;
        each([&](const Move& m) {
            min_price_ = std::min(min_price_, indifference_price(m));
            max_price_ = std::max(max_price_, indifference_price(m));
            back = back || m.from != p_;
        });
        if (!back) min_price_ = max_price_;  // one direction only: nothing can move
        price_ = 0.5 * (min_price_ + max_price_);
    }

    // Finds the price at which both directions carry the same.  A move uses `scale` times its gain beyond the price as
    // a share of its capacity, at most `share`.
    void solve_price(double scale, double share) {
        // Newton steps on a piecewise linear function that falls, kept inside a bracket.
        double lo = min_price_, hi = max_price_;
        for (int trial = 0; trial < 50 && lo < hi; ++trial) {
            const double surplus = take(scale, share);
            if (std::abs(surplus) <= 1e-12 * (forward_ + backward_)) break;
            (surplus > 0 ? lo : hi) = price_;
            price_ = interior_capacity_ > 0 ? price_ + surplus / (scale * interior_capacity_) : lo;
            if (!(price_ > lo && price_ < hi)) price_ = 0.5 * (lo + hi);
        }
        take(scale, share);
        const double less = std::min(forward_, backward_);  // rounding: make both ways exactly alike
        const double there = forward_ > less ? less / forward_ : 1, again = backward_ > less ? less / backward_ : 1;
        each([&](Move& m) { m.amount *= m.from == p_ ? there : again; });
    }

  private:
    template <class Visit>
    void each(Visit visit) {
        for (Move* m = begin_; m != end_; ++m) visit(*m);
    }
    // The price at which a move gains nothing.
    double indifference_price(const Move& m) const { return m.from == p_ ? m.gain : -m.gain; }
    double take(double scale, double max_share) {
        poll_.count_work(8.0 * static_cast<double>(end_ - begin_));
        forward_ = backward_ = interior_capacity_ = 0;
        each([&](Move& m) {
            const double share = scale * (m.from == p_ ? m.gain - price_ : m.gain + price_);
            m.amount = m.capacity * std::clamp(share, 0.0, max_share);
            (m.from == p_ ? forward_ : backward_) += m.amount;
            if (share > 0 && share < max_share) interior_capacity_ += m.capacity;
        });
        return forward_ - backward_;
    }

    Move *begin_, *end_;
    const int32_t p_;
    InterruptPoll& poll_;
    double price_, min_price_ = infinity, max_price_ = -infinity;
    double forward_ = 0, backward_ = 0,
           interior_capacity_ = 0;  // moved from p to q and back; capacity of moves strictly inside
};

// One step of ascent on the dual that keeps every sum_i c_il.  `row(i)` are the duals of sample i; `slope(i, j)` is the
// slope in the j-th dual before the circulation was made: it tells which duals are near their margins.
template <class State, class Row, class Slope>
class CirculationStep {
  public:
    using Model = typename State::Model;

    CirculationStep(State& state, Model& model, const CandidatesByWidth& candidates, Row row, Slope slope)
        : state_(state), model_(model), candidates_(candidates), row_(row), slope_(slope),
          moves_of_(state.loss, state.k), along_(state.geo) {
        moves_of_.width = near_widths[n_widths - 1];
    }

    // Changes the duals and `model`, which is theirs; returns by how much the dual objective rises.
    double take() {
        with_pairs(state_.k, [this](auto& pair_of) { collect_moves(pair_of); });
        search(1, infinity);
        if (!(gain_ > 0 && square_ > 0)) return 0;
        double length = gain_ / square_;
        if (std::any_of(moves_.begin(), moves_.end(), [&](const Move& m) { return length * m.amount > m.capacity; })) {
            search(length, 1);
            if (!(gain_ > 0 && square_ > 0)) return 0;
            length = std::min(1.0, gain_ / square_);
        }
        for (const Move& m : moves_) {
            const DualLists::Row r = row_(m.i);
            if (m.j >= 0) r.alpha[m.j] -= length * m.amount;
            if (m.l >= 0) r.alpha[m.l] += length * m.amount;
        }
        model_.add_scaled(along_, length);
        return length * (gain_ - 0.5 * length * square_);
    }

  private:
    // Calls visit(pair of classes, move) for every move of the candidates.
    template <class Pairs, class Visit>
    void each_move(Pairs& pair_of, Visit visit) {
        for (const std::vector<uint32_t>& some : candidates_)
            for (const uint32_t i : some) {
                const DualLists::Row r = row_(i);
                state_.team.poll.count_work(8.0 * r.size);
                moves_of_(
                    i, state_.y[i], r.cls, r.alpha, r.size, [&](int32_t j) { return slope_(i, j); },
                    [&](int32_t from, int32_t to, double capacity, int32_t j, int32_t l) {
                        const int32_t low = std::min(from, to), high = std::max(from, to);
                        if (capacity > 0) visit(pair_of(low, high), Move{i, j, l, from, to, capacity, 0});
                    });
            }
    }

    // All moves with their gains, those between the same two classes together: count, then fill.
    template <class Pairs>
    void collect_moves(Pairs& pair_of) {
        std::vector<uint32_t> place(pair_of.size() + 1);
        each_move(pair_of, [&](size_t pair, const Move&) {
            if (pair + 1 >= place.size()) place.resize(pair + 2);
            ++place[pair];
        });
        uint32_t before = 0;
        for (uint32_t& p : place) before += std::exchange(p, before);
        moves_.resize(before);
        each_move(pair_of, [&](size_t pair, Move m) {
            const int32_t cls[] = {m.from, m.to};
            double f[2];
            model_.scores(m.i, cls, 2, f);
            state_.spend(2 * state_.geo.rows.cost(m.i));
            m.gain = f[0] - f[1] + (m.l >= 0) - (m.j >= 0);
            moves_[place[pair]++] = m;
        });
        uint32_t begin = 0;
        for (const uint32_t end : place) {
            if (begin < end) pairs_.emplace_back(moves_.data() + begin, moves_.data() + end, state_.team.poll);
            begin = end;
        }
    }

    // Amounts of all moves, and the change of the class vectors with its gain and square.
    void search(double scale, double max_share) {
        along_.clear();
        gain_ = 0;
        for (ClassPairMoves& pair : pairs_) pair.solve_price(scale, max_share);
        for (const Move& m : moves_) {
            if (m.amount == 0) continue;
            gain_ += m.gain * m.amount;
            const int32_t cls[] = {m.from, m.to};
            const double step[] = {-m.amount, m.amount};
            along_.add(m.i, cls, 2, step);
            state_.spend(2 * state_.geo.rows.cost(m.i));
        }
        square_ = along_.squared_norm();
    }

    State& state_;
    Model& model_;
    const CandidatesByWidth& candidates_;
    Row row_;
    Slope slope_;
    SampleMoves<std::remove_cvref_t<decltype(state_.loss)>> moves_of_;
    std::vector<Move> moves_;
    std::vector<ClassPairMoves> pairs_;
    Model along_;
    double gain_ = 0, square_ = 0;
};

}  // namespace skm
