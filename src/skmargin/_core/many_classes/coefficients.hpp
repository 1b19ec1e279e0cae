// The class vectors v_l = sum_i c_il x_i, made one after the other from the coefficients of the samples.
//
// No array of classes times features is needed for what looks at all classes: each vector is the sum of a few rows.
#pragma once
#include <cstdint>
#include <vector>

#include "base/thread_team.hpp"
#include "many_classes/sparse_rows.hpp"

namespace skm {

// The coefficients of the samples by class: c_il = -alpha_il for the rivals, c_{i,y_i} = sum_l alpha_il.
class Coefficients {
  public:
    struct Entry {
        int32_t row;
        double coef;
        int64_t place;  // in the lists; of the own class ~row
    };

    // `own` replaces the coefficients of the own classes where it is given.
    Coefficients(const RivalLists& lists, const int32_t* y, const double* own, int64_t n, int32_t k)
        : k(k), start_(k + 1, 0), entries_(static_cast<size_t>(lists.start[n] + n)) {
        for (int64_t i = 0; i < n; ++i) ++start_[y[i] + 1];
        for (int64_t e = 0; e < lists.start[n]; ++e) ++start_[lists.cls[e] + 1];
        for (int32_t l = 0; l < k; ++l) start_[l + 1] += start_[l];
        std::vector<int64_t> at(start_.begin(), start_.end() - 1);
        for (int64_t i = 0; i < n; ++i) {
            double sum = 0;
            for (int64_t e = lists.start[i]; e < lists.start[i + 1]; ++e) {
                sum += lists.alpha[e];
                entries_[at[lists.cls[e]]++] = {static_cast<int32_t>(i), -lists.alpha[e], e};
            }
            entries_[at[y[i]]++] = {static_cast<int32_t>(i), own != nullptr ? own[i] : sum, ~i};
        }
    }

    const Entry* begin(int32_t l) const { return entries_.data() + start_[l]; }
    const Entry* end(int32_t l) const { return entries_.data() + start_[l + 1]; }
    double total(int32_t l) const {
        double sum = 0;
        for (const Entry* e = begin(l); e != end(l); ++e) sum += e->coef;
        return sum;
    }

    // Ranges of classes with about as many entries each, for the threads of a team.
    std::vector<int32_t> ranges(int parts) const {
        std::vector<int32_t> cut(1, 0);
        const int64_t size = start_[k] / parts + 1;
        for (int32_t l = 0; l < k; ++l)
            if (start_[l + 1] > size * static_cast<int64_t>(cut.size())) cut.push_back(l + 1);
        if (cut.back() < k) cut.push_back(k);
        return cut;
    }

    const int32_t k;

  private:
    std::vector<int64_t> start_;
    std::vector<Entry> entries_;
};

// One class vector at a time in double precision: a number a feature, and which of them were touched.
template <class T>
class ClassVector {
  public:
    ClassVector(const RowsByFrequency<T>& rows, const Coefficients& coefficients, ThreadTeam& team)
        : rows_(rows), coefficients_(coefficients), team_(team), v_(rows.d, 0.0), seen_(rows.d, 0) {}

    // Makes the vector of class l, in place of the last one.
    void make(int32_t l) {
        for (const int32_t j : touched_) v_[j] = 0, seen_[j] = 0;
        touched_.clear();
        for (const auto* e = coefficients_.begin(l); e != coefficients_.end(l); ++e) {
            if (e->coef == 0) continue;
            for (int64_t p = rows_.start[e->row]; p < rows_.start[e->row + 1]; ++p) {
                const int32_t j = rows_.features[p];
                if (!seen_[j]) seen_[j] = 1, touched_.push_back(j);
                v_[j] += e->coef * rows_.values[p];
            }
            team_.count_work(4.0 * static_cast<double>(rows_.nnz(e->row)));
        }
    }
    // As it is published: times the weight of its class, perhaps in single precision.
    void weigh(double weight, bool single) {
        if (weight == 1 && !single) return;
        for (const int32_t j : touched_) v_[j] = single ? static_cast<float>(weight * v_[j]) : weight * v_[j];
    }
    double square() const {
        double sum = 0;
        for (const int32_t j : touched_) sum += v_[j] * v_[j];
        return sum;
    }
    double inner(int32_t i) const {
        double sum = 0;
        for (int64_t p = rows_.start[i]; p < rows_.start[i + 1]; ++p) sum += rows_.values[p] * v_[rows_.features[p]];
        team_.count_work(2.0 * static_cast<double>(rows_.nnz(i)));
        return sum;
    }
    double operator[](int32_t feature) const { return v_[feature]; }
    const std::vector<int32_t>& features() const { return touched_; }

  private:
    const RowsByFrequency<T>& rows_;
    const Coefficients& coefficients_;
    ThreadTeam& team_;
    std::vector<double> v_;
    std::vector<uint8_t> seen_;
    std::vector<int32_t> touched_;
};

}  // namespace skm
