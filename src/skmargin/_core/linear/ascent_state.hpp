// The point of block ascent: duals, the class vectors they give, and the work done so far.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/thread_team.hpp"
#include "linear/class_vectors.hpp"
#include "linear/dual_lists.hpp"
#include "losses/loss.hpp"
#include "tuning.hpp"

namespace skm {

template <MarginLoss Loss, class Vectors>
struct AscentState {
    using Model = Vectors;
    // Whether the primal point may be stretched and the dual is quadratic: screening and circulation steps are
    // possible.
    static constexpr bool plain_hinge = Loss::can_stretch && !Model::weighted;

    AscentState(const RowGeometry& geo, const Loss& loss, const int32_t* y, DualLists& duals, ThreadTeam& team,
                const BlockAscentTuning& tuning)
        : AscentState(geo, loss, y, duals, team, tuning, Model(geo)) {
        for (int64_t i = 0; i < n; ++i)
            if (duals[i].size > 0) add_sample(model, i, duals[i]);
    }
    // With class vectors that hold more than these rows.
    AscentState(const RowGeometry& geo, const Loss& loss, const int32_t* y, DualLists& duals, ThreadTeam& team,
                const BlockAscentTuning& tuning, Model&& model)
        : geo(geo), loss(loss), y(y), duals(duals), model(std::move(model)), team(team), tuning(tuning), n(geo.rows.n),
          k(geo.rows.k), curvature(geo.curvature), cls_(k + 1), coef_(k + 1), product_(k + 1) {
        // A row of (nearly) no length: a larger curvature is still an ascent step and keeps the arithmetic sound.
        for (int64_t i = 0; i < n; ++i) curvature[i] = std::max(curvature[i], 1e-7 / loss.dual_scale(i));
    }

    // Adds sample i with the given duals of its rivals to class vectors.
    void add_sample(Model& to, int64_t i, const DualLists::Row& r) {
        const int32_t m = coefficients(i, r);
        to.add(i, cls_.data(), m, coef_.data());
        spend(geo.rows.cost(i) * m);
    }

    // Squared norms of the class vectors, v_l'v_l = sum_i c_il v_l'x_i, where the norm weighs the classes
    // (block_norm/class_vectors.hpp); row(i) are the duals of sample i.
    template <class Row>
    void update_norms(Model& of, Row row) {
        if constexpr (Model::weighted) {
            double* squares = of.squares();
            std::fill(squares, squares + k, 0.0);
            for (int64_t i = 0; i < n; ++i) {
                const DualLists::Row r = row(i);
                if (r.size == 0) continue;
                const int32_t m = coefficients(i, r);
                of.products(i, cls_.data(), m, product_.data());
                spend(geo.rows.cost(i) * m);
                for (int32_t j = 0; j < m; ++j) squares[cls_[j]] += coef_[j] * product_[j];
            }
            of.update_weights(norm_floor);
        }
    }
    void update_norms() {
        update_norms(model, [this](int64_t i) { return duals[i]; });
    }

    // Calls see(classes, how many, coefficients) of sample i with the given duals.
    template <class See>
    void with_coefficients(int64_t i, const DualLists::Row& r, See see) {
        const int32_t m = coefficients(i, r);
        spend(geo.rows.cost(i) * m);
        see(cls_.data(), m, coef_.data());
    }

    // Multiply-adds, counted and told to the interrupt poll.
    void spend(double multiply_adds) {
        work += 2 * multiply_adds;
        team.poll.count_work(2 * multiply_adds);
    }
    // The same of a loop that told the team itself.
    void count_work(double multiply_adds) { work += 2 * multiply_adds; }

    // A row so short that its block step uses a larger curvature than its own.
    bool has_raised_curvature(int64_t i) const { return curvature[i] > geo.curvature[i]; }

    const RowGeometry& geo;
    const Loss& loss;
    const int32_t* y;
    DualLists& duals;
    Model model;
    ThreadTeam& team;
    const BlockAscentTuning& tuning;
    const int64_t n;
    const int32_t k;
    std::vector<double> curvature;  // of the block steps
    std::vector<uint32_t> active;   // samples that passes visit
    std::vector<double> buffer;     // memory for W in double precision, kept for the next one that needs it
    int64_t passes = 0;
    double work = 0;           // flops
    double norm_floor = 1e-6;  // least norm of a class vector that the weights see, relative to the largest

  private:
    // The coefficients of a sample, in cls_ and coef_; returns how many.
    int32_t coefficients(int64_t i, const DualLists::Row& r) {
        int32_t m = 0;
        double S = 0;
        for (int32_t j = 0; j < r.size; ++j) {
            if (r.alpha[j] == 0) continue;
            S += r.alpha[j];
            cls_[m] = r.cls[j];
            coef_[m++] = -r.alpha[j];
        }
        cls_[m] = y[i];
        coef_[m++] = S;
        return m;
    }

    std::vector<int32_t> cls_;
    std::vector<double> coef_, product_;
};

}  // namespace skm
