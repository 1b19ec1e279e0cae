// Threads that share the loops of one solve.
//
// A loop is cut into parts that do not depend on the number of threads, and the sums of the parts are added in their
// order: every number of threads gives the same bits.  Threads are started by the first loop that is long enough for
// two of them and joined when the solve ends, so that none is left when a process is forked.
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

class ThreadTeam {
  public:
    ThreadTeam(InterruptPoll& poll, int threads) : poll(poll), n_threads_(std::max(1, threads)) {}
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;
    ~ThreadTeam() {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            closing_ = true;
        }
        round_started_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }

    int threads() const { return n_threads_; }

    // Calls part(0), .., part(parts - 1), in any order; the first exception ends the others and is thrown.
    template <class Part>
    void for_each_part(int parts, const Part& part) {
        if (n_threads_ == 1 || parts <= 1) {
            for (int p = 0; p < parts; ++p) part(p);
            return;
        }
        start();
        call_ = [](const void* f, int p) { (*static_cast<const Part*>(f))(p); };
        part_ = &part;
        failed_ = false;
        parts_unfinished_ = parts;
        {
            const std::lock_guard<std::mutex> guard(lock_);
            parts_left_ = parts;
            ++round_;
        }
        round_started_.notify_all();
        take_parts();
        while (parts_unfinished_ > 0) std::this_thread::yield();  // for at most as long as one part takes
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    // To be called inside a part: about `flops` operations were done.  Throws when the loop has to end.
    void count_work(double flops) {
        if (std::this_thread::get_id() == owner_) poll.count_work(flops);
        else if (failed_.load(std::memory_order_relaxed)) throw Cancelled();
    }

    InterruptPoll& poll;  // only the thread that owns the team may call it

  private:
    struct Cancelled {};

    void start() {
        try {
            while (static_cast<int>(workers_.size()) + 1 < n_threads_) workers_.emplace_back([this] { run_worker(); });
        } catch (const std::system_error&) {  // the system has no more threads: go on with those that started
            n_threads_ = static_cast<int>(workers_.size()) + 1;
        }
    }

    void run_worker() {
        for (uint64_t seen = 0;;) {
            // Spin for a moment: the next loop often begins sooner than a sleeping thread could wake up.
            const auto spin_until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
            while (round_ == seen && !closing_ && std::chrono::steady_clock::now() < spin_until)
                std::this_thread::yield();
            if (round_ == seen && !closing_) {
                std::unique_lock<std::mutex> guard(lock_);
                round_started_.wait(guard, [&] { return closing_ || round_ != seen; });
            }
            if (closing_) return;
            seen = round_;
            take_parts();
        }
    }

    // Takes parts until none is left.  A worker that comes late finds none and touches nothing else, so nobody waits
    // for it.
    void take_parts() {
        for (int64_t remaining; (remaining = parts_left_.fetch_sub(1)) > 0; --parts_unfinished_) {
            if (failed_) continue;
            try {
                call_(part_, static_cast<int>(remaining - 1));
            } catch (const Cancelled&) {
            } catch (...) {
                const std::lock_guard<std::mutex> guard(lock_);
                if (!error_) error_ = std::current_exception();
                failed_ = true;
            }
        }
    }

    int n_threads_;
    const std::thread::id owner_ = std::this_thread::get_id();
    std::vector<std::thread> workers_;
    std::mutex lock_;
    std::condition_variable round_started_;
    std::atomic<uint64_t> round_ = 0;
    std::atomic<bool> closing_ = false;
    // The present loop: parts that nobody has taken, parts that are not finished.
    std::atomic<int64_t> parts_left_ = 0, parts_unfinished_ = 0;
    void (*call_)(const void*, int) = nullptr;
    const void* part_ = nullptr;
    std::atomic<bool> failed_ = false;
    std::exception_ptr error_;
};

}  // namespace skm
