// Interrupts: loops report their work, and about every 50 ms the caller is asked whether to go on.
#pragma once
#include <chrono>

namespace skm {

class Poll {
  public:
    // `ask` throws to stop the computation (bindings.cpp: Ctrl-C).
    explicit Poll(void (*ask)()) : ask_(ask) {}

    // About `flops` operations were done since the last call.
    void work(double flops) {
        credit_ -= flops;
        if (credit_ > 0) return;
        credit_ = 1e6;  // well under a millisecond: reading the clock that often costs nothing
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return;
        last_ = now;
        ask_();
    }

  private:
    void (*ask_)();
    double credit_ = 1e6;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace skm
