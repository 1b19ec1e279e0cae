// What the bindings of linear block ascent share: the arguments of a solve, their check, the solve, its result.
#pragma once
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <vector>

#include "base/arrays.hpp"
#include "linear/face_cg.hpp"

namespace skm {

struct Problem {
    Vector<int32_t> y;
    Vector<double> cap;
    int32_t k;
    std::string loss;
    int32_t top_k;
    std::optional<Vector<double>> mean;  // of the features
    Vector<double> b;
    Vector<int64_t> start;
    Vector<int32_t> cls;
    Vector<double> alpha;
    Limits limits;
    bool face;
    uint64_t seed;
    int32_t threads;
    bool intercept = true;      // a free one, with features centred at `mean`; else only its direction is set apart
    bool near_optimum = false;  // the duals are nearly optimal already
};

template <class Rows, class Loss>
nb::dict solve(const Rows& rows, const Loss& loss, const Problem& problem) {
    const int64_t n = rows.n, d = rows.d;
    const int32_t k = rows.k;
    std::vector<double> W(static_cast<size_t>(k * d)), b(problem.b.data(), problem.b.data() + k), multipliers;
    DualLists duals(n);
    Outcome out;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        ThreadTeam team(poll, problem.threads);
        RowGeometry<Rows> geo(rows);
        double total_cap = 0;
        for (int64_t i = 0; i < n; ++i) total_cap += loss.dual_scale(i);
        if (problem.mean && problem.intercept) geo.centre(problem.mean->data(), total_cap, problem.near_optimum);
        else if (problem.mean) geo.deflate(problem.mean->data());
        read_duals(duals, problem.start, problem.cls, problem.alpha);
        BlockAscent<Rows, Loss> ascent(geo, loss, problem.y.data(), duals, b.data(), team, problem.seed);
        const auto nothing = [] {};
        if constexpr (Loss::has_faces) {
            FaceSteps<Rows, Loss> face(ascent);
            if (problem.face) ascent.enable_screening();
            else ascent.enable_skipping();
            out = problem.face ? ascent.run(problem.limits, face) : ascent.run(problem.limits, nothing);
        } else {
            out = ascent.run(problem.limits, nothing);
        }
        multipliers = b;
        ascent.model.publish(W.data(), b.data());
        for (double& w : W) w *= ascent.stretch();
        for (double& v : b) v *= ascent.stretch();
    }
    nb::dict result;
    result["W"] = to_numpy(std::move(W), {static_cast<size_t>(k), static_cast<size_t>(d)});
    result["b"] = to_numpy(std::move(b), {static_cast<size_t>(k)});
    result["multipliers"] = to_numpy(std::move(multipliers), {static_cast<size_t>(k)});
    result["duals"] = write_duals(duals);
    result["primal"] = out.primal;
    result["gap"] = out.gap;
    result["passes"] = out.passes;
    result["work"] = out.work;
    result["converged"] = out.converged;
    return result;
}

inline void check_lengths(const Problem& t, size_t n, size_t d) {
    const size_t k = static_cast<size_t>(t.k);
    if (t.y.size() != n || t.cap.size() != n || t.b.size() != k || t.start.size() != n + 1 ||
        t.cls.size() != t.alpha.size() || (t.mean && t.mean->size() != d))
        throw nb::value_error("the arrays given to the core do not fit each other");
    for (size_t i = 0; i < n; ++i)
        if (t.y.data()[i] < 0 || t.y.data()[i] >= t.k) throw nb::value_error("a class code lies outside 0..k-1");
    if (t.start.data()[0] != 0 || t.start.data()[n] != static_cast<int64_t>(t.cls.size()))
        throw nb::value_error("the starts of the dual rows do not fit their numbers");
    for (size_t i = 0; i < n; ++i)
        if (t.start.data()[i + 1] < t.start.data()[i])
            throw nb::value_error("the starts of the dual rows must not fall");
    for (size_t j = 0; j < t.cls.size(); ++j)
        if (t.cls.data()[j] < 0 || t.cls.data()[j] >= t.k) throw nb::value_error("a rival lies outside 0..k-1");
}

}  // namespace skm
