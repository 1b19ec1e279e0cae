// Counter-based random numbers: the n-th number is a function of (seed, n), the same on every machine and thread.
#pragma once
#include <cstdint>
#include <utility>

namespace skm {

class Random {
  public:
    explicit Random(uint64_t seed) : key_(mix(seed + 0x9E3779B97F4A7C15ULL)) {}

    uint64_t next() { return mix(key_ + 0x9E3779B97F4A7C15ULL * ++counter_); }

    // Uniform in 0..n-1 (n < 2^32; the bias of at most n/2^64 does not matter for an order of visits).
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(((next() >> 32) * n) >> 32); }

    template <class It>
    void shuffle(It first, uint32_t n) {
        for (uint32_t i = n; i > 1; --i) std::swap(first[i - 1], first[below(i)]);
    }

  private:
    static uint64_t mix(uint64_t z) {  // the finaliser of SplitMix64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    uint64_t key_, counter_ = 0;
};

}  // namespace skm
