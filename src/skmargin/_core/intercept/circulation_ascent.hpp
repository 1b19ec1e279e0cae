// A step of ascent on the dual of a hinge that leaves every sum_i c_il what it is (intercept/circulation.hpp).
//
// What one sample moves from class p to class q another one moves back.  The way from p to q has a price, which the way
// back is paid; moves that gain something after that are made, and at the right price both ways carry the same.  This
// is a step of projected gradients, with the room that a move has as its measure.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "linear/dual_lists.hpp"
#include "losses/hinge.hpp"

namespace skm {

struct Move {
    uint32_t i;
    int32_t j, l;      // dual j falls, dual l grows; -1: none
    int32_t from, to;  // classes between which excess is moved
    double room;       // the most that may be moved
    double gain;       // of the dual objective, for each unit
    double amount = 0;
};

// The moves between two classes p and q.
class Exchange {
  public:
    Exchange(Move* begin, Move* end, Poll& poll) : begin_(begin), end_(end), p_(begin->from), poll_(poll) {
        bool back = false;
        each([&](const Move& m) {
            least_ = std::min(least_, price_of(m));
            most_ = std::max(most_, price_of(m));
            back = back || m.from != p_;
        });
        if (!back) least_ = most_;  // nobody moves
        price_ = 0.5 * (least_ + most_);
    }

    // Each takes `scale` times its gain beyond the price as a share of its room, at most `share` of it.
    void settle(double scale, double share) {
        // Newton steps on a piecewise linear function that falls, kept inside a bracket.
        double lo = least_, hi = most_;
        for (int trial = 0; trial < 50 && lo < hi; ++trial) {
            const double surplus = take(scale, share);
            if (std::abs(surplus) <= 1e-12 * (out_ + back_)) break;
            (surplus > 0 ? lo : hi) = price_;
            price_ = free_ > 0 ? price_ + surplus / (scale * free_) : lo;
            if (!(price_ > lo && price_ < hi)) price_ = 0.5 * (lo + hi);
        }
        take(scale, share);
        const double less = std::min(out_, back_);  // rounding: make both ways exactly alike
        const double there = out_ > less ? less / out_ : 1, again = back_ > less ? less / back_ : 1;
        each([&](Move& m) { m.amount *= m.from == p_ ? there : again; });
    }

  private:
    template <class Visit>
    void each(Visit visit) {
        for (Move* m = begin_; m != end_; ++m) visit(*m);
    }
    // Where a move is worth nothing.
    double price_of(const Move& m) const { return m.from == p_ ? m.gain : -m.gain; }
    double take(double scale, double most) {
        poll_.work(8.0 * static_cast<double>(end_ - begin_));
        out_ = back_ = free_ = 0;
        each([&](Move& m) {
            const double share = scale * (m.from == p_ ? m.gain - price_ : m.gain + price_);
            m.amount = m.room * std::clamp(share, 0.0, most);
            (m.from == p_ ? out_ : back_) += m.amount;
            if (share > 0 && share < most) free_ += m.room;
        });
        return out_ - back_;
    }

    Move *begin_, *end_;
    const int32_t p_;
    Poll& poll_;
    double price_, least_ = infinity, most_ = -infinity;
    double out_ = 0, back_ = 0, free_ = 0;  // moved from p to q and back; room of the moves that follow the price
};

// Changes the duals row(i) and `model`, which is theirs; returns by how much the dual objective rises.  `slope(i, j)`
// is what the slope in the j-th dual was before the balance: who is near its margins.
template <class Ascent, class Row, class Slope>
double balanced_step(Ascent& ascent, typename Ascent::Model& model, const Players& players, Row row, Slope slope) {
    constexpr int last = 2;  // stage whose players still move
    const int32_t k = ascent.k;
    Plays plays(ascent.loss, k);
    plays.width = stage_width[last];
    const auto each = [&](auto visit) {
        for (int p = 0; p <= last; ++p)
            for (const uint32_t i : players[p]) {
                const Duals::Row r = row(i);
                ascent.team.poll.work(8.0 * r.size);
                plays(
                    i, ascent.y[i], r.cls, r.alpha, r.size, [&](int32_t j) { return slope(i, j); },
                    [&](int32_t from, int32_t to, double room, int32_t j, int32_t l) {
                        const int32_t low = std::min(from, to), high = std::max(from, to);
                        if (room > 0) visit(static_cast<size_t>(low) * k + high, Move{i, j, l, from, to, room, 0});
                    });
            }
    };
    // Moves between the same two classes stand together.
    std::vector<uint32_t> place(static_cast<size_t>(k) * k + 1);
    each([&](size_t pair, const Move&) { ++place[pair]; });
    uint32_t before = 0;
    for (uint32_t& p : place) before += std::exchange(p, before);
    std::vector<Move> moves(before);
    each([&](size_t pair, Move m) {
        const int32_t cls[] = {m.from, m.to};
        double f[2];
        model.scores(m.i, cls, 2, f);
        ascent.spend(2 * ascent.geo.rows.cost(m.i));
        m.gain = f[0] - f[1] + (m.l >= 0) - (m.j >= 0);
        moves[place[pair]++] = m;
    });
    std::vector<Exchange> exchanges;
    uint32_t begin = 0;
    for (const uint32_t end : place) {
        if (begin < end) exchanges.emplace_back(moves.data() + begin, moves.data() + end, ascent.team.poll);
        begin = end;
    }

    typename Ascent::Model along(ascent.geo);
    double gain = 0, square = 0;
    const auto search = [&](double scale, double most) {
        along.clear();
        gain = 0;
        for (Exchange& exchange : exchanges) exchange.settle(scale, most);
        for (const Move& m : moves) {
            if (m.amount == 0) continue;
            gain += m.gain * m.amount;
            const int32_t cls[] = {m.from, m.to};
            const double step[] = {-m.amount, m.amount};
            along.add(m.i, cls, 2, step);
            ascent.spend(2 * ascent.geo.rows.cost(m.i));
        }
        square = along.squared_norm();
    };
    search(1, infinity);
    if (!(gain > 0 && square > 0)) return 0;
    double length = gain / square;
    if (std::any_of(moves.begin(), moves.end(), [&](const Move& m) { return length * m.amount > m.room; })) {
        search(length, 1);
        if (!(gain > 0 && square > 0)) return 0;
        length = std::min(1.0, gain / square);
    }
    for (const Move& m : moves) {
        const Duals::Row r = row(m.i);
        if (m.j >= 0) r.alpha[m.j] -= length * m.amount;
        if (m.l >= 0) r.alpha[m.l] += length * m.amount;
    }
    model.add_scaled(along, length);
    return length * (gain - 0.5 * length * square);
}

}  // namespace skm
