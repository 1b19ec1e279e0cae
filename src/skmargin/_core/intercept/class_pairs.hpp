// A number for each ordered pair of classes: a k x k table for few classes, for many only the pairs that occur.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace skm {

// Pairs are numbered; who keeps numbers for them keeps an array over these.
class AllPairs {
  public:
    explicit AllPairs(int32_t k) : k_(k) {}
    size_t operator()(int32_t from, int32_t to) { return static_cast<size_t>(from) * k_ + to; }
    size_t size() const { return static_cast<size_t>(k_) * k_; }
    // Calls visit(from, to, number) with `from` rising, and `to` rising for each of them.
    template <class Visit>
    void each(Visit visit) const {
        size_t number = 0;
        for (int32_t j = 0; j < k_; ++j)
            for (int32_t l = 0; l < k_; ++l) visit(j, l, number++);
    }

  private:
    const int32_t k_;
};

// The same with a hash table (linear probing): a pair gets its number when it is asked for.
class SeenPairs {
  public:
    explicit SeenPairs(int32_t k) : k_(k), number_(1 << 12, none) {}

    size_t operator()(int32_t from, int32_t to) {
        const uint64_t key = static_cast<uint64_t>(from) * k_ + to;
        size_t at = place(key);
        if (number_[at] == none) {
            number_[at] = static_cast<uint32_t>(keys_.size());
            keys_.push_back(key);
            if (2 * keys_.size() > number_.size()) {
                grow();
                return keys_.size() - 1;
            }
        }
        return number_[at];
    }
    size_t size() const { return keys_.size(); }
    template <class Visit>
    void each(Visit visit) const {
        std::vector<std::pair<uint64_t, uint32_t>> order;
        order.reserve(keys_.size());
        for (size_t number = 0; number < keys_.size(); ++number) order.emplace_back(keys_[number], number);
        std::sort(order.begin(), order.end());
        for (const auto& [key, number] : order)
            visit(static_cast<int32_t>(key / k_), static_cast<int32_t>(key % k_), number);
    }

  private:
    static constexpr uint32_t none = ~0u;

    size_t place(uint64_t key) const {
        const size_t mask = number_.size() - 1;
        size_t at = static_cast<size_t>((key * 0x9E3779B97F4A7C15ULL) >> 32) & mask;
        while (number_[at] != none && keys_[number_[at]] != key) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        number_.assign(2 * number_.size(), none);
        for (size_t number = 0; number < keys_.size(); ++number)
            number_[place(keys_[number])] = static_cast<uint32_t>(number);
    }

    const uint64_t k_;
    std::vector<uint64_t> keys_;
    std::vector<uint32_t> number_;
};

// Classes up to which a table of all pairs takes no longer than a hash table of those that occur (measured).
constexpr int32_t few_classes = 1000;

// Calls use(pairs) with what suits so many classes.
template <class Use>
auto with_pairs(int32_t k, Use use) {
    if (k > few_classes) {
        SeenPairs pairs(k);
        return use(pairs);
    }
    AllPairs pairs(k);
    return use(pairs);
}

}  // namespace skm
