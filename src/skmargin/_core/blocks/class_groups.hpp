// The second derivative of the losses as a sum over groups of classes: rows are gathered by what they couple.
//
// A row in the band couples classes with one weight: all pairs of a set (those between which the projection of its
// scores lies), or one class with each of a set (its own class with the rivals at the kink).  Many rows couple the same
// classes, so that rows are gathered by group, multiplied once, and the product is added to every pair of the group:
// where k classes tie that is one product in place of k (k - 1) / 2.  Groups that few rows share are split into pairs.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "blocks/block_blas.hpp"
#include "rows/rows.hpp"

namespace skm {

// `count` classes from `first` on in a list of classes: each coupled with `centre`, or with each other (centre < 0).
struct ClassGroup {
    int32_t centre, first, count;
    double weight;
    int64_t pairs() const { return centre < 0 ? static_cast<int64_t>(count) * (count - 1) / 2 : count; }
};

// Sums of weight x x' for each pair of classes a < b, at place b (b - 1) / 2 + a; one triangle of each is filled.
template <class T>
class PairSums {
  public:
    PairSums(int32_t k, int64_t D) : k_(k), D_(static_cast<int>(D)) {
        const int64_t pairs = static_cast<int64_t>(k) * (k - 1) / 2;
        held_ = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 21) / (pairs * D), 8, most_held));
        filled_.assign(static_cast<size_t>(pairs), 0);
        rows_.reset(new T[static_cast<size_t>(pairs * held_ * D)]);  // uninitialised: what is read was written
        while (slots_ * 2 * most_held * D <= int64_t{1} << 20) slots_ *= 2;
        shared_.reset(new T[static_cast<size_t>(slots_ * most_held * D)]);
        groups_.resize(static_cast<size_t>(slots_));
        product_.resize(static_cast<size_t>(D * D));
    }

    // A row that couples the classes of a group, which are a part of `list`.
    void add(const ClassGroup& g, const int32_t* list, const T* x, double* to) {
        const T root = static_cast<T>(std::sqrt(g.weight));
        const int32_t* classes = list + g.first;
        if (g.pairs() == 1) {
            push(g.centre < 0 ? classes[1] : g.centre, classes[0], x, root, to);
        } else if (k_ > 64) {
            each_pair(g.centre, classes, g.count, [&](int32_t a, int32_t b) { push(a, b, x, root, to); });
        } else {
            uint64_t mask = 0;
            for (int32_t s = 0; s < g.count; ++s) mask |= uint64_t{1} << classes[s];
            share(mask, g.centre, x, root, to);
        }
    }

    void flush(double* to) {
        for (Slot& slot : groups_) empty(slot, to);
        for (size_t p = 0; p < filled_.size(); ++p) flush_pair(p, to);
    }

  private:
    static constexpr int most_held = 128;  // rows of one product
    static constexpr int few_rows = 6;     // of a group, below which it costs less to treat its pairs one by one

    struct Slot {
        uint64_t mask = 0;
        int32_t centre = -1;
        int filled = 0;
    };

    template <class See>
    void each_pair(int32_t centre, const int32_t* classes, int32_t count, See see) const {
        for (int32_t s = 0; s < count; ++s) {
            if (centre >= 0) see(centre, classes[s]);
            else
                for (int32_t r = 0; r < s; ++r) see(classes[s], classes[r]);
        }
    }

    static size_t place(int32_t a, int32_t b) {
        const size_t low = std::min(a, b), high = std::max(a, b);
        return high * (high - 1) / 2 + low;
    }

    void push(int32_t a, int32_t b, const T* x, T root, double* to) {
        const size_t p = place(a, b);
        T* row = &rows_[(p * held_ + filled_[p]) * D_];
        for (int j = 0; j < D_; ++j) row[j] = root * x[j];
        if (++filled_[p] == held_) flush_pair(p, to);
    }

    void share(uint64_t mask, int32_t centre, const T* x, T root, double* to) {
        const uint64_t hash = (mask + (static_cast<uint64_t>(centre + 1) << 57)) * 0x9E3779B97F4A7C15u;
        const size_t at = static_cast<size_t>((hash >> 32) & static_cast<uint64_t>(slots_ - 1));
        Slot& slot = groups_[at];
        if (slot.filled > 0 && (slot.mask != mask || slot.centre != centre)) empty(slot, to);
        slot.mask = mask, slot.centre = centre;
        T* row = &shared_[(at * most_held + slot.filled) * D_];
        for (int j = 0; j < D_; ++j) row[j] = root * x[j];
        if (++slot.filled == most_held) empty(slot, to);
    }

    void empty(Slot& slot, double* to) {
        if (slot.filled == 0) return;
        int32_t classes[64], count = 0;
        for (int32_t l = 0; l < k_; ++l)
            if (slot.mask >> l & 1) classes[count++] = l;
        const T* rows = &shared_[static_cast<size_t>(&slot - groups_.data()) * most_held * D_];
        const int filled = slot.filled;
        slot.filled = 0;
        if (filled < few_rows) {
            each_pair(slot.centre, classes, count, [&](int32_t a, int32_t b) {
                for (int r = 0; r < filled; ++r) push(a, b, rows + static_cast<int64_t>(r) * D_, T(1), to);
            });
            return;
        }
        multiply(rows, filled);
        each_pair(slot.centre, classes, count, [&](int32_t a, int32_t b) { add_product(place(a, b), to); });
    }

    void flush_pair(size_t p, double* to) {
        if (filled_[p] == 0) return;
        multiply(&rows_[p * held_ * D_], filled_[p]);
        filled_[p] = 0;
        add_product(p, to);
    }

    void multiply(const T* rows, int count) {
        const T one = 1, zero = 0;
        block_blas<T>.syrk("L", "N", &D_, &count, &one, rows, &D_, &zero, product_.data(), &D_);
    }

    void add_product(size_t p, double* to) const {
        to += p * D_ * D_;
        for (int q = 0; q < D_; ++q)
            for (int r = q; r < D_; ++r) to[q * D_ + r] += static_cast<double>(product_[q * D_ + r]);
    }

    const int32_t k_;
    const int D_;
    int held_ = 0;
    int64_t slots_ = 1;
    std::unique_ptr<T[]> rows_, shared_;
    std::vector<int> filled_;
    std::vector<Slot> groups_;
    std::vector<T> product_;
};

}  // namespace skm
