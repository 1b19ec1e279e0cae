// Interrupts and progress: loops count their work, and about every 50 ms a callback is told how far they are; it throws
// to stop them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>

namespace skm {

class InterruptPoll {
  public:
    // `callback(progress)`, progress in 0..1, throws to stop the computation (base/arrays.hpp: Ctrl-C).
    explicit InterruptPoll(void (*callback)(double progress)) : callback_(callback) {}

    // The relative gap has fallen to `gap` on its way to `tol`: progress is the share of the digits.
    void report_gap(double gap, double tol) {
        if (gap > 0 && gap < 1 && tol < 1) progress_ = std::min(1.0, std::log(gap) / std::log(tol));
    }

    // About `flops` operations were done since the last call.
    void count_work(double flops) {
        flops_left_ -= flops;
        if (flops_left_ > 0) return;
        flops_left_ = 1e6;  // well under a millisecond: reading the clock that often costs nothing
        const auto now = std::chrono::steady_clock::now();
        if (now - last_call_ < std::chrono::milliseconds(50)) return;
        last_call_ = now;
        callback_(progress_);
    }

  private:
    void (*callback_)(double progress);
    double flops_left_ = 1e6, progress_ = 0;
    std::chrono::steady_clock::time_point last_call_ = std::chrono::steady_clock::now();
};

}  // namespace skm
