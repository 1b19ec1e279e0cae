// What a dual solver must know of the loss of one sample.
//
// A sample i of class y has one dual number alpha_l for each rival l != y; its row of coefficients is
//     c_l = -alpha_l (l != y),   c_y = sum_l alpha_l,      W = sum_i x_i c_i'.
// With score differences d_l = f_y - f_l every machine here is
//     primal  P = 1/2 ||W||^2 + sum_i value_i(d_i)          dual  D = sum_i dual_i(alpha_i) - 1/2 ||W||^2
// and the duality gap is a sum over samples:  gap_i = value_i(d_i) - dual_i(alpha_i) + alpha_i'd_i >= 0.
//
// A loss gives, for a list of m rivals (the rest is fixed at zero):
//     value(i, d, m)                      loss of the sample (`can_stretch`: also for longer class vectors)
//     dual(i, alpha, m)                   minus the conjugate
//     block(i, A, d, alpha, m, out)       argmin_a  A/2 [(sum a - sum alpha)^2 + ||a - alpha||^2] + d'a - dual_i(a)
//     bounds(i, d, alpha, m), idle(...)   which rivals cannot move now (shrinking)
//     cannot_move(i, d, alpha, m)         true if no rival of the list can move
//     dual_scale(i)                       the size of the largest possible step of a dual
//     movable_range(i, alpha, m, near_margin, down, up)
//                                         how far duals inside their bounds may move (intercept/circulation.hpp)
//     at_vertex(i, alpha, m)              true if no rival is strictly inside its bounds
//     fixed_rival(i)                      a rival that must stand first in its list; -1: none
// and for the Newton method (newton/):
//     prox(i, sigma, d, alpha, m, out)    argmax_a  dual_i(a) - d'a - sigma/2 squared_distance(a, alpha)
//     squared_distance(a, alpha, m)       that the proximal map measures between duals
//     pairs(i, sigma, a, m, emit)         -da/dd as weighted pairs of rivals (-1 is the own class): emit(j, l, weight)
//     stability_radius(i, sigma, d, alpha, a, m)
//                                         a = prox(..) stays as it is while the d move by less; 0 unless a is a vertex
//     bounded                             whether the duals have upper bounds
// and, where the dual is a function of the sum of the alpha_l alone, for norms that weigh the classes (block_norm/):
//     best_sum(i, h, c)                   argmax_{S >= 0}  dual_i(S) - h/2 (S - c)^2
//     sum_limit(i), sum_is_free(i, S)     the largest sum that the dual allows; whether S may change both ways
//     dual_slope(i, S), dual_curvature(i, S)
//                                         dual_i'(S) and -dual_i''(S); curved_dual: whether that is not zero
// and says what solvers may use: has_faces (linear/face_cg.hpp knows the constraints), only_largest_hinge (the value
// depends on one rival), can_stretch (value takes a stretch), slack (safety margin of `idle` between visits).
#pragma once
#include <concepts>
#include <cstdint>

namespace skm {

// Duals that can be made a circulation between the classes (intercept/circulation.hpp).
template <class Loss>
concept BoundedDuals =
    requires(const Loss loss, int64_t i, const double* in, double* out, int32_t m, const uint8_t* near) {
        { loss.movable_range(i, in, m, near, out, out) } -> std::same_as<bool>;
        { loss.at_vertex(i, in, m) } -> std::same_as<bool>;
    };

// Duals in lists of rivals, as block ascent keeps them.
template <class Loss>
concept MarginLoss = BoundedDuals<Loss> && requires(const Loss loss, int64_t i, double A, const double* in, int32_t m) {
    { loss.value(i, in, m) } -> std::same_as<double>;
    { loss.dual(i, in, m) } -> std::same_as<double>;
    { loss.idle(loss.bounds(i, in, in, m), i, m, A, A, A) } -> std::same_as<bool>;
    { loss.cannot_move(i, in, in, m) } -> std::same_as<bool>;
    { loss.dual_scale(i) } -> std::same_as<double>;
    { loss.fixed_rival(i) } -> std::same_as<int32_t>;
    { Loss::has_faces } -> std::convertible_to<bool>;
    { Loss::only_largest_hinge } -> std::convertible_to<bool>;
    { Loss::can_stretch } -> std::convertible_to<bool>;
    { Loss::slack } -> std::convertible_to<double>;
};

// The same with a block that is solved where all classes have one curvature.
template <class Loss>
concept BlockLoss = MarginLoss<Loss> && requires(const Loss loss, int64_t i, double A, const double* in, double* out,
                                                 int32_t m) { loss.block(i, A, in, in, m, out); };

// Duals of which only the sum counts: the block is solved whatever the curvatures are.
template <class Loss>
concept SumLoss = MarginLoss<Loss> && requires(const Loss loss, int64_t i, double h) {
    { loss.best_sum(i, h, h) } -> std::same_as<double>;
    { loss.sum_limit(i) } -> std::same_as<double>;
    { loss.sum_is_free(i, h) } -> std::same_as<bool>;
    { loss.dual_slope(i, h) } -> std::same_as<double>;
    { loss.dual_curvature(i, h) } -> std::same_as<double>;
    { Loss::curved_dual } -> std::convertible_to<bool>;
};

// Duals with a proximal map whose derivative is a Laplacian of class pairs.
template <class Loss>
concept ProximalLoss = BlockLoss<Loss> && requires(const Loss loss, int64_t i, double sigma, const double* in,
                                                   double* out, int32_t m, void (*emit)(int32_t, int32_t, double)) {
    loss.prox(i, sigma, in, in, m, out);
    { loss.squared_distance(in, in, m) } -> std::same_as<double>;
    loss.pairs(i, sigma, in, m, emit);
    { loss.stability_radius(i, sigma, in, in, in, m) } -> std::same_as<double>;
    { Loss::bounded } -> std::convertible_to<bool>;
};

}  // namespace skm
