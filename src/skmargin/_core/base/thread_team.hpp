// Threads that share the loops of one solve.
//
// A loop is cut into parts that do not depend on the number of threads, and what the parts sum up is added in their
// order: the same bits for every number.  Threads begin with the first loop that is long enough for two, and end with
// the solve: none is left when a process is forked.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"

namespace skm {

class Team {
  public:
    static constexpr double least = 5e5;  // flops of a part: many times what it takes to wake a thread

    Team(Poll& poll, int threads) : poll(poll), wanted_(std::max(1, threads)) {}
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() {
        {
            const std::lock_guard<std::mutex> hold(lock_);
            over_ = true;
        }
        begin_.notify_all();
        for (std::thread& helper : helpers_) helper.join();
    }

    int threads() const { return wanted_; }

    // Calls part(0), .., part(parts - 1), in any order; the first exception ends the others and is thrown.
    template <class Part>
    void each(int parts, const Part& part) {
        if (wanted_ == 1 || parts <= 1) {
            for (int p = 0; p < parts; ++p) part(p);
            return;
        }
        hire();
        call_ = [](const void* f, int p) { (*static_cast<const Part*>(f))(p); };
        part_ = &part;
        failed_ = false;
        undone_ = parts;
        {
            const std::lock_guard<std::mutex> hold(lock_);
            left_ = parts;
            ++round_;
        }
        begin_.notify_all();
        take_parts();
        while (undone_ > 0) std::this_thread::yield();  // not longer than a part takes
        if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
    }

    // To be called in a part: about `flops` operations were done.
    void work(double flops) {
        if (std::this_thread::get_id() == owner_) poll.work(flops);
        else if (failed_.load(std::memory_order_relaxed)) throw Stopped();
    }

    Poll& poll;  // of the thread that has the team

  private:
    struct Stopped {};

    void hire() {
        try {
            while (static_cast<int>(helpers_.size()) + 1 < wanted_) helpers_.emplace_back([this] { help(); });
        } catch (const std::system_error&) {  // no more threads to be had: those that are there do it all
            wanted_ = static_cast<int>(helpers_.size()) + 1;
        }
    }

    void help() {
        for (uint64_t seen = 0;;) {
            // The next loop often begins at once, before a sleeping thread would be awake.
            const auto patience = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
            while (round_ == seen && !over_ && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
            if (round_ == seen && !over_) {
                std::unique_lock<std::mutex> hold(lock_);
                begin_.wait(hold, [&] { return over_ || round_ != seen; });
            }
            if (over_) return;
            seen = round_;
            take_parts();
        }
    }

    // A helper that comes late finds nothing left and touches nothing else: nobody waits for it.
    void take_parts() {
        for (int64_t left; (left = left_.fetch_sub(1)) > 0; --undone_) {
            if (failed_) continue;
            try {
                call_(part_, static_cast<int>(left - 1));
            } catch (const Stopped&) {
            } catch (...) {
                const std::lock_guard<std::mutex> hold(lock_);
                if (!problem_) problem_ = std::current_exception();
                failed_ = true;
            }
        }
    }

    int wanted_;
    const std::thread::id owner_ = std::this_thread::get_id();
    std::vector<std::thread> helpers_;
    std::mutex lock_;
    std::condition_variable begin_;
    std::atomic<uint64_t> round_ = 0;
    std::atomic<bool> over_ = false;
    // The loop at hand: the part after next to be taken, parts that are not done.
    std::atomic<int64_t> left_ = 0, undone_ = 0;
    void (*call_)(const void*, int) = nullptr;
    const void* part_ = nullptr;
    std::atomic<bool> failed_ = false;
    std::exception_ptr problem_;
};

}  // namespace skm
