// Moves excess between classes along arcs of limited capacity: a maximum flow by shortest paths (Dinic).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/interrupt.hpp"
#include "intercept/class_pairs.hpp"

namespace skm {

class ExcessFlow {
  public:
    // `capacity` has a number for each of the pairs; `excess` (positive: too much) becomes what could not be moved.
    template <class Pairs>
    ExcessFlow(const Pairs& pairs, const std::vector<double>& capacity, std::vector<double>& excess,
               InterruptPoll& poll)
        : k_(static_cast<int32_t>(excess.size())), capacity_(capacity), excess_(excess), residual_(capacity), arcs_(k_),
          level_(k_), next_arc_(k_), poll_(poll) {
        double largest = 0;
        for (const double e : excess) largest = std::max(largest, std::abs(e));
        pairs.each([&](int32_t j, int32_t l, size_t pair) {
            if (capacity[pair] > 0) arcs_[j].push_back({l, pair});
            poll.count_work(2.0);
        });
        rounding_ = 1e-15 * largest;
    }

    // Returns the share of each capacity that was used.
    std::vector<double> move() {
        for (bool moved = true; moved;) {
            set_levels();
            moved = false;
            for (size_t q = 0; q < n_sources_; ++q) moved = drain(queue_[q]) || moved;
        }
        for (size_t a = 0; a < residual_.size(); ++a)  // a residual of rounding counts as none
            residual_[a] = residual_[a] > 1e-13 * capacity_[a] ? 1 - residual_[a] / capacity_[a]
                           : capacity_[a] > 0                  ? 1.0
                                                               : 0.0;
        return std::move(residual_);
    }

  private:
    struct Arc {
        int32_t to;
        size_t pair;
    };

    // Distances from the classes with excess, by breadth-first search; these stand first in the queue.
    void set_levels() {
        std::fill(level_.begin(), level_.end(), -1);
        std::fill(next_arc_.begin(), next_arc_.end(), 0);
        queue_.clear();
        for (int32_t j = 0; j < k_; ++j)
            if (excess_[j] > rounding_) level_[j] = 0, queue_.push_back(j);
        n_sources_ = queue_.size();
        for (size_t q = 0; q < queue_.size(); ++q) {
            const int32_t j = queue_[q];
            for (const Arc& arc : arcs_[j])
                if (level_[arc.to] < 0 && residual_[arc.pair] > 0) {
                    level_[arc.to] = level_[j] + 1;
                    queue_.push_back(arc.to);
                }
            poll_.count_work(2.0 * static_cast<double>(arcs_[j].size()));
        }
    }

    // Moves the excess of one class along arcs from a level to the next, so that every path is a shortest one; returns
    // whether any was moved.
    bool drain(int32_t source) {
        bool moved = false;
        path_.assign(1, {source, 0});
        while (!path_.empty() && excess_[source] > rounding_) {
            poll_.count_work(10.0);
            const int32_t j = path_.back().to;
            if (excess_[j] < -rounding_) {
                push_along_path(source, j);
                path_.resize(1);
                moved = true;
                continue;
            }
            const std::vector<Arc>& next = arcs_[j];
            size_t& at = next_arc_[j];  // arcs before this one are exhausted
            while (at < next.size() && (residual_[next[at].pair] <= 0 || level_[next[at].to] != level_[j] + 1)) ++at;
            if (at < next.size()) {
                path_.push_back(next[at]);
            } else {
                path_.pop_back();
                if (!path_.empty()) ++next_arc_[path_.back().to];
            }
        }
        return moved;
    }
    void push_along_path(int32_t source, int32_t sink) {
        double amount = std::min(excess_[source], -excess_[sink]);
        for (size_t p = 1; p < path_.size(); ++p) amount = std::min(amount, residual_[path_[p].pair]);
        for (size_t p = 1; p < path_.size(); ++p) residual_[path_[p].pair] -= amount;
        excess_[source] -= amount;
        excess_[sink] += amount;
    }

    const int32_t k_;
    const std::vector<double>& capacity_;
    std::vector<double>& excess_;
    std::vector<double> residual_;
    std::vector<std::vector<Arc>> arcs_;  // lists: with many classes few pairs carry flow
    std::vector<int32_t> level_, queue_;
    std::vector<Arc> path_;
    std::vector<size_t> next_arc_;
    size_t n_sources_ = 0;
    double rounding_ = 0;
    InterruptPoll& poll_;
};

}  // namespace skm
