// Interrupts and progress: loops report their work, and about every 50 ms the caller is told how far they are and asked
// whether to go on.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>

namespace skm {

class Poll {
  public:
    // `ask` throws to stop the computation (bindings/module.cpp: Ctrl-C).
    explicit Poll(void (*ask)(double share)) : ask_(ask) {}

    // A relative gap was reached on the way to `tol`: the share of the way, in digits.
    void reached(double gap, double tol) {
        if (gap > 0 && gap < 1 && tol < 1) share_ = std::min(1.0, std::log(gap) / std::log(tol));
    }

    // About `flops` operations were done since the last call.
    void work(double flops) {
        credit_ -= flops;
        if (credit_ > 0) return;
        credit_ = 1e6;  // well under a millisecond: reading the clock that often costs nothing
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return;
        last_ = now;
        ask_(share_);
    }

  private:
    void (*ask_)(double share);
    double credit_ = 1e6, share_ = 0;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace skm
