// The dual numbers of all samples, as short lists: nearly all of the n x k numbers of a many-class problem are zero.
//
// Row i holds rivals in two parts: [0, active) may move now, [active, size) have a non-zero dual but are shrunk (not
// visited until the next full check).
// A rival in neither part is zero.  Memory comes from an arena with free lists, since rows grow and shrink all the
// time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace skm {

class DualLists {
  public:
    struct Row {
        double* alpha = nullptr;
        int32_t* cls = nullptr;
        int32_t size = 0, active = 0, capacity = 0;
    };

    DualLists(int64_t n) : rows_(n) {}

    Row& operator[](int64_t i) { return rows_[i]; }
    const Row& operator[](int64_t i) const { return rows_[i]; }
    int64_t size() const { return static_cast<int64_t>(rows_.size()); }

    // Replace row i.  The memory fits the new size, so that a row that became short is short in memory too.
    void assign(int64_t i, const int32_t* cls, const double* alpha, int32_t size, int32_t active) {
        Row& r = rows_[i];
        const int32_t capacity = rounded(size);
        if (capacity != r.capacity) {
            release(r);
            acquire(r, capacity);
        }
        if (size > 0) {
            std::memcpy(r.alpha, alpha, sizeof(double) * size);
            std::memcpy(r.cls, cls, sizeof(int32_t) * size);
        }
        r.size = size;
        r.active = active;
    }

  private:
    static constexpr int64_t min_chunk = 1 << 12,
                             max_chunk = 1 << 18;  // bytes of a chunk: small problems touch little memory

    static int32_t rounded(int32_t size) {  // 0, 2, 4, 6, 8, 12, 16, 24, 32, ...
        if (size == 0) return 0;
        if (size <= 8) return (size + 1) / 2 * 2;
        int32_t c = 8;
        while (c < size) c = (c & (c - 1)) == 0 ? c + c / 2 : c / 3 * 4;
        return c;
    }
    static size_t slot(int32_t capacity) {  // position of a capacity in the list above
        if (capacity <= 8) return capacity / 2;
        size_t s = 4;
        for (int32_t c = 8; c < capacity; ++s) c = (c & (c - 1)) == 0 ? c + c / 2 : c / 3 * 4;
        return s;
    }
    void release(Row& r) {
        if (r.capacity == 0) return;
        const size_t s = slot(r.capacity);
        if (free_.size() <= s) free_.resize(s + 1);
        free_[s].push_back(reinterpret_cast<char*>(r.alpha));
        r = Row{};
    }
    void acquire(Row& r, int32_t capacity) {
        if (capacity == 0) return;
        const size_t s = slot(capacity);
        const int64_t bytes = static_cast<int64_t>(capacity) * 12;  // a multiple of 8: capacities are even
        char* p;
        if (s < free_.size() && !free_[s].empty()) {
            p = free_[s].back();
            free_[s].pop_back();
        } else {
            if (left_ < bytes) {
                chunk_ = std::min(max_chunk, 2 * chunk_);
                left_ = std::max(chunk_, bytes);
                chunks_.push_back(std::make_unique_for_overwrite<double[]>(static_cast<size_t>(left_ / 8 + 1)));
                top_ = reinterpret_cast<char*>(chunks_.back().get());
            }
            p = top_;
            top_ += bytes;
            left_ -= bytes;
        }
        r.alpha = reinterpret_cast<double*>(p);
        r.cls = reinterpret_cast<int32_t*>(p + 8 * static_cast<int64_t>(capacity));
        r.capacity = capacity;
    }

    std::vector<Row> rows_;
    std::vector<std::vector<char*>> free_;
    std::vector<std::unique_ptr<double[]>> chunks_;
    char* top_ = nullptr;
    int64_t left_ = 0, chunk_ = min_chunk;
};

}  // namespace skm
