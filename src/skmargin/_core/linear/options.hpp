// What a run of block ascent is asked for, and what it reports.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/sums.hpp"

namespace skm {

struct Options {
    double tol = 1e-3;           // relative duality gap to reach
    int64_t max_iter = 10'000;   // passes, full or shrunk
    double max_work = infinity;  // flops; the driver may change its method after that
    bool stop_on_stall = false;  // give up where float32 cannot go on
    bool face_steps = false;     // conjugate gradients on the face of the dual between passes
    double majorizer_share = 0;  // a majoriser of an objective of majorizer_value need not be solved further than
    double majorizer_value = 0;  // to this share of what it has gained already
    uint64_t seed = 0;
    int32_t threads = 1;

    // The gap at which a run may end.
    double target_gap(double primal) const {
        return std::max(tol * primal, majorizer_share * (majorizer_value - primal));
    }
};

struct Outcome {
    double objective = 0, gap = infinity;  // of the primal; the duality gap
    int64_t n_iter = 0;                    // passes, or Newton steps
    double work = 0;                       // flops
    bool converged = false;
    double score_size = infinity;  // of the terms of a score, where all was computed in double precision
};

}  // namespace skm
