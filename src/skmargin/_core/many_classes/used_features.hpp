// Which features the classes of a tile have: a row is scored over these alone.
//
// Where a class has few rows its vector has few features, and most words of a row occur in no class of a tile.  To find
// that out takes a bit, to add zeros to the scores of all its classes a line of memory that no cache holds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace skm {

class UsedFeatures {
  public:
    explicit UsedFeatures(int64_t d) : bits_(static_cast<size_t>(d / 64 + 1), 0) {}

    void clear() { std::fill(bits_.begin(), bits_.end(), 0); }
    void add(int64_t j) { bits_[j >> 6] |= uint64_t{1} << (j & 63); }
    bool has(int64_t j) const { return bits_[j >> 6] >> (j & 63) & 1; }

  private:
    std::vector<uint64_t> bits_;
};

// The stored numbers of a row whose features are used, one row at a time.
template <class T, class I>
class UsedNumbers {
  public:
    void take(const UsedFeatures& used, const I* features, const T* values, int64_t nnz) {
        if (static_cast<int64_t>(features_.size()) < nnz) {
            features_.resize(nnz);
            values_.resize(nnz);
        }
        I* f = features_.data();
        T* v = values_.data();
        int64_t m = 0;
        for (int64_t p = 0; p < nnz; ++p) {  // no branch: half of them would be guessed wrong
            f[m] = features[p];
            v[m] = values[p];
            m += used.has(features[p]);
        }
        size_ = m;
    }
    const I* features() const { return features_.data(); }
    const T* values() const { return values_.data(); }
    int64_t size() const { return size_; }

  private:
    std::vector<I> features_;
    std::vector<T> values_;
    int64_t size_ = 0;
};

}  // namespace skm
