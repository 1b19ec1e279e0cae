// Margin losses, smoothed: the duals of a row as a function of its scores and of a width.
//
// With z = f but z_y smaller by the margin, and u_l = z_l - z_y, the losses are
//     max   cap max_l z_l - z_y                                     Crammer-Singer
//     sum   cap sum_l (u_l)_+                                       Weston-Watkins
//     top   cap/K times the sum of the K largest (u_l)_+            top-K
//     odm   cap [ (max_l u_l)_+^2 + mu (f_y - f_r - 1 - theta)_+^2 ]  r the closest rival, margin 1 - theta
// Each is a maximum over duals; less w times a strictly convex function of them it is smooth, its maximiser is unique,
// and the smaller the width w, the closer both are.  The maximiser is centred on the kink: a rival whose hinge bends at
// zero has half of its bound there, and what is lost is a quarter of what a ramp on one side would lose.
//     max   q = projection of z/w onto the simplex, c = cap (e_y - q)
//     sum   a_l = cap clip(1/2 + u_l/2w, 0, 1)
//     top   a_l = cap clip((u_l + w - nu)/2wK, 0, 1/K), nu >= 0 so that their sum is at most cap
//     odm   q = projection of u/w onto the simplex of the rivals, m = its maximum, a = 2 cap (m)_+ q
// Each row yields its loss, the smoothed loss, the residual (loss minus the value of its duals at these scores, never
// negative: the sum of all, with 1/2 ||W - W(a)||^2, is the duality gap), the coefficients c, and the second derivative
// as weighted groups of classes (class_groups.hpp).  The latter may be taken at another, larger width.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "blocks/class_groups.hpp"

namespace skm {

struct SmoothLoss {
    enum class Kind { max, sum, top, odm } kind;
    int32_t top_k;
    double mu, theta;
};

struct RowSums {
    double loss = 0, smooth = 0, residual = 0, pairs = 0;
};

// The map of one row.  `T` is the type of its scores and coefficients; what lies between is double.
template <class T>
class RowMap {
  public:
    RowMap(const SmoothLoss& loss, int32_t k) : loss_(loss), k_(k), u_(k), t_(k), list_(k + 1) {}

    std::vector<ClassGroup> groups;  // of the last row, parts of the list `members`
    std::vector<int32_t> members;

    // f: k scores, which may be changed; c: k coefficients, of which W(a) = sum_i c_i x_i' is made.  `hessian` > 0 is
    // the width of the pairs. Returns whether c is other than zero.
    bool operator()(T* f, int32_t y, double cap, double width, double hessian, T* c, RowSums& sums) {
        groups.clear();
        members.clear();
        switch (loss_.kind) {
            case SmoothLoss::Kind::max: return largest(f, y, cap, width, hessian, c, sums);
            case SmoothLoss::Kind::sum: return all(f, y, cap, width, hessian, c, sums);
            case SmoothLoss::Kind::top: return some(f, y, cap, width, hessian, c, sums);
            default: return squared(f, y, cap, width, hessian, c, sums);
        }
    }

  private:
    static double square(double v) { return v * v; }
    // Couples the classes first[0], .., first[count - 1] with `centre`, or, where that is negative, with each other.
    double couple(int32_t centre, const int32_t* first, int32_t count, double weight) {
        const ClassGroup group{centre, static_cast<int32_t>(members.size()), count, weight};
        if (!(weight > 0) || group.pairs() == 0) return 0;
        members.insert(members.end(), first, first + count);
        groups.push_back(group);
        return static_cast<double>(group.pairs());
    }

    // The `count` candidates list_, whose numbers u_ are at most zero and one of them zero, in decreasing order.
    void sort(int32_t count) {
        if (count > 32) {
            std::stable_sort(list_.begin(), list_.begin() + count, [&](int32_t a, int32_t b) { return u_[a] > u_[b]; });
            return;
        }
        for (int32_t s = 1; s < count; ++s) {
            const int32_t l = list_[s];
            int32_t p = s;
            for (; p > 0 && u_[list_[p - 1]] < u_[l]; --p) list_[p] = list_[p - 1];
            list_[p] = l;
        }
    }

    // Projection of u_/w onto the simplex of the sorted candidates.  The first ones stay positive, with values t_;
    // returns how many.
    int32_t project(int32_t count, double w) {
        double sum = 0, tau = -w;
        int32_t support = 0;
        while (support < count && u_[list_[support]] > tau) {
            sum += u_[list_[support++]];
            tau = (sum - w) / support;
        }
        if (support == 1) {
            t_[0] = 1;
            return 1;
        }
        double total = 0;
        for (int32_t s = 0; s < support; ++s) total += t_[s] = (u_[list_[s]] - tau) / w;
        for (int32_t s = 0; s < support; ++s) t_[s] /= total;
        return support;
    }

    // The largest of k numbers, four at a time: one after the other they would wait for each other.
    T top_of(const T* f) const {
        T m[4] = {f[0], f[0], f[0], f[0]};
        int32_t l = 0;
        for (; l + 4 <= k_; l += 4)
            for (int s = 0; s < 4; ++s) m[s] = f[l + s] > m[s] ? f[l + s] : m[s];
        for (; l < k_; ++l) m[0] = f[l] > m[0] ? f[l] : m[0];
        const T a = m[0] > m[1] ? m[0] : m[1], b = m[2] > m[3] ? m[2] : m[3];
        return a > b ? a : b;
    }

    bool largest(T* f, int32_t y, double cap, double w, double wide, T* c, RowSums& sums) {
        f[y] -= 1;  // not the others plus 1: float32 keeps their differences
        const T high = top_of(f);
        const double top = high, reach = std::max(w, wide);
        // Only numbers above the largest minus the width can be positive in a projection.
        const T least = static_cast<T>(top - reach);
        int32_t count = 0;
        for (int32_t l = 0; l < k_; ++l) {
            list_[count] = l;
            count += f[l] > least;
        }
        if (count <= 1 && f[y] == high) return false;
        const double own = f[y];
        sums.loss += cap * (top - own);
        for (int32_t s = 0; s < count; ++s) u_[list_[s]] = static_cast<double>(f[list_[s]]) - top;
        std::fill(c, c + k_, T(0));
        if (count <= 1) {  // far from every kink
            sums.smooth += cap * (top - own);
            c[list_[0]] = -(c[y] = static_cast<T>(cap));
            return true;
        }
        sort(count);
        if (wide > 0) {
            const int32_t support = project(count, wide);
            sums.pairs += couple(-1, list_.data(), support, cap / (wide * support));
        }
        const int32_t support = project(count, w);
        double inner = 0, squares = 0;
        T others = 0;
        for (int32_t s = 0; s < support; ++s) {
            inner += t_[s] * u_[list_[s]];
            squares += t_[s] * t_[s];
            const T here = static_cast<T>(-cap * t_[s]);
            if (list_[s] != y) c[list_[s]] = here, others += here;
        }
        c[y] = -others;  // so that the coefficients sum to zero
        sums.residual -= cap * inner;
        sums.smooth += cap * (top - own + inner + 0.5 * w * (1 - squares));
        return others != 0 || !groups.empty();
    }

    bool all(const T* f, int32_t y, double cap, double w, double wide, T* c, RowSums& sums) {
        const double own = static_cast<double>(f[y]) - 1, reach = std::max(w, wide);
        T total = 0;
        bool any = false;
        int32_t bent = 0;
        for (int32_t l = 0; l < k_; ++l) {
            const double u = f[l] - own;
            c[l] = 0;
            if (l == y || u <= -reach) continue;
            any = true;
            if (std::abs(u) < wide) list_[bent++] = l;
            if (u <= -w) continue;
            const double t = std::min(1.0, 0.5 + 0.5 * u / w), loss = std::max(u, 0.0);
            sums.loss += cap * loss;
            sums.residual += cap * (loss - u * t);
            sums.smooth += cap * (u >= w ? u : square(u + w) / (4 * w));
            c[l] = -static_cast<T>(cap * t);
            total -= c[l];
        }
        c[y] = total;
        if (wide > 0) sums.pairs += couple(y, list_.data(), bent, cap / (2 * wide));
        return any;
    }

    // nu >= 0 so that the sum of clip((u + w - nu)/2wK, 0, 1/K) is at most 1; the clipped numbers to t_.
    double level(double w) {
        const double K = loss_.top_k, step = 2 * w * K;
        const auto held = [&](double nu, double* free, int32_t* n) {
            double sum = 0;
            *free = 0, *n = 0;
            for (int32_t l = 0; l < k_; ++l) {
                const double v = u_[l] + w - nu;
                t_[l] = std::min(std::max(v / step, 0.0), 1 / K);
                sum += t_[l];
                if (v > 0 && v < 2 * w) *free += 1 / step, *n += 1;
            }
            return sum;
        };
        double free, lo = 0, hi = 0;
        int32_t n;
        if (held(0, &free, &n) <= 1) return 0;
        for (int32_t l = 0; l < k_; ++l) hi = std::max(hi, u_[l] + w);
        double nu = 0;
        for (int trial = 0; trial < 100; ++trial) {  // Newton steps on a piecewise linear function, inside a bracket
            const double sum = held(nu, &free, &n);
            if (std::abs(sum - 1) <= 1e-15) break;
            (sum > 1 ? lo : hi) = nu;
            double next = n > 0 ? nu + (sum - 1) / free : 0.5 * (lo + hi);
            if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
            if (next == nu || !(hi - lo > 1e-16 * hi)) break;
            nu = next;
        }
        return nu;
    }

    bool some(const T* f, int32_t y, double cap, double w, double wide, T* c, RowSums& sums) {
        const double own = static_cast<double>(f[y]) - 1, K = loss_.top_k, reach = std::max(w, wide);
        double top = -std::numeric_limits<double>::infinity();
        for (int32_t l = 0; l < k_; ++l) {
            u_[l] = l == y ? -std::numeric_limits<double>::infinity() : f[l] - own;
            top = std::max(top, u_[l]);
        }
        if (top <= -reach) return false;
        if (wide > 0) {
            const double nu = level(wide);
            int32_t n = 0;
            for (int32_t l = 0; l < k_; ++l)
                if (t_[l] > 0 && t_[l] < 1 / K) list_[n++] = l;
            sums.pairs += nu > 0 ? couple(-1, list_.data(), n, cap / (2 * wide * K * n))
                                 : couple(y, list_.data(), n, cap / (2 * wide * K));
        }
        level(w);
        T total = 0;
        double hinge = 0, inner = 0, smooth = 0;
        for (int32_t l = 0; l < k_; ++l) {
            c[l] = 0;
            if (l == y) continue;
            inner += t_[l] * (t_[l] > 0 ? u_[l] : 0);
            smooth += w / (4 * K) - w * K * square(t_[l] - 0.5 / K);
            c[l] = -static_cast<T>(cap * t_[l]);
            total -= c[l];
        }
        c[y] = total;
        const int32_t largest = std::min(loss_.top_k, k_ - 1);
        std::nth_element(u_.begin(), u_.begin() + largest - 1, u_.end(), [](double a, double b) { return a > b; });
        for (int32_t s = 0; s < largest; ++s) hinge += std::max(u_[s], 0.0);
        sums.loss += cap * hinge / K;
        sums.residual += cap * std::max(0.0, hinge / K - inner);
        sums.smooth += cap * (inner + smooth);
        return true;
    }

    bool squared(const T* f, int32_t y, double cap, double w, double wide, T* c, RowSums& sums) {
        const double own = f[y];
        int32_t closest = y == 0 ? 1 : 0;
        for (int32_t l = 0; l < k_; ++l)
            if (l != y && f[l] > f[closest]) closest = l;
        const double margin = own - f[closest], top = 1 - loss_.theta - margin, far = margin - 1 - loss_.theta;
        const double curve = 2 * cap;  // of the squared losses
        bool any = false;
        std::fill(c, c + k_, T(0));
        const double reach = std::max(w, wide);
        if (top > -reach) {
            int32_t count = 0;
            for (int32_t l = 0; l < k_; ++l)
                if (l != y && f[l] - f[closest] > -reach) {
                    u_[l] = static_cast<double>(f[l]) - f[closest];
                    list_[count++] = l;
                }
            sort(count);
            if (wide > 0) {
                const int32_t support = project(count, wide);
                const double m = top + soft_top(support, wide);
                if (m > 0) sums.pairs += couple_support(y, support, curve, m / (wide * support));
            }
            const double m = add_square(count, top, y, cap, w, c, sums);
            any = m > 0 || !groups.empty();
        }
        if (loss_.mu > 0 && far > 0) {
            const T beta = static_cast<T>(loss_.mu * curve * far);
            c[closest] += beta;
            c[y] -= beta;
            sums.loss += loss_.mu * cap * far * far;
            sums.smooth += loss_.mu * cap * far * far;
            if (wide > 0) sums.pairs += couple(y, &closest, 1, loss_.mu * curve);
            any = true;
        }
        return any;
    }

    // The own class with each rival of the support, and these with each other; returns how many pairs.
    double couple_support(int32_t y, int32_t support, double curve, double equal) {
        double pairs = 0;
        for (int32_t s = 0; s < support; ++s) {
            pairs += couple(y, &list_[s], 1, curve * t_[s]);
            for (int32_t r = 0; r < s; ++r) pairs += couple(list_[s], &list_[r], 1, curve * (equal - t_[s] * t_[r]));
        }
        return pairs;
    }

    // The square of the smoothed maximum m over `count` rivals, its duals in c; returns m.
    double add_square(int32_t count, double top, int32_t y, double cap, double w, T* c, RowSums& sums) {
        const int32_t support = project(count, w);
        const double m = std::max(0.0, top + soft_top(support, w)), S = 2 * cap * m;
        const double loss = cap * square(std::max(0.0, top));
        double inner = 0;
        T total = 0;
        for (int32_t s = 0; s < support; ++s) {
            inner += t_[s] * u_[list_[s]];
            c[list_[s]] = -static_cast<T>(S * t_[s]);
            total -= c[list_[s]];
        }
        c[y] = total;
        sums.loss += loss;
        sums.smooth += cap * m * m;
        sums.residual += std::max(0.0, loss - (S * (top + inner) - 0.5 * S * m));
        return m;
    }

    // How much higher than the largest number the smoothed maximum of a projection is.
    double soft_top(int32_t support, double w) const {
        double inner = 0, squares = 0;
        for (int32_t s = 0; s < support; ++s) inner += t_[s] * u_[list_[s]], squares += t_[s] * t_[s];
        return inner + 0.5 * w * (1 - squares);
    }

    const SmoothLoss loss_;
    const int32_t k_;
    std::vector<double> u_, t_;
    std::vector<int32_t> list_;
};

}  // namespace skm
