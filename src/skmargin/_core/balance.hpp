// A dual point that satisfies the constraint of the free intercept exactly.
//
// Without a penalty on b the dual needs sum_i c_il = 0 for every class l.  T[j, l] = sum of alpha_il over the samples
// of class j is a flow from j to l, and the constraint says that it is a circulation: what leaves a class enters it.
// Scaling alpha_il by d_{y_i}/d_l (a diagonal similarity of T) makes any flow inside strongly connected components a
// circulation; flow between components cannot be part of one and is dropped.  d = 1 at an optimum, so nothing is lost
// there.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace skm {

struct Circulation {
    std::vector<double> d;
    std::vector<int32_t> component;
    double factor(int32_t y, int32_t l) const { return component[y] == component[l] ? d[y] / d[l] : 0.0; }
};

// Strongly connected components of {T > 0} (Tarjan's algorithm with an explicit stack).
inline std::vector<int32_t> strong_components(const std::vector<double>& T, int32_t k) {
    std::vector<int32_t> order(k, -1), low(k, 0), component(k, -1), stack, next(k, 0), path;
    int32_t visits = 0, parts = 0;
    for (int32_t root = 0; root < k; ++root) {
        if (order[root] >= 0) continue;
        path.push_back(root);
        while (!path.empty()) {
            const int32_t v = path.back();
            if (order[v] < 0) {
                order[v] = low[v] = visits++;
                stack.push_back(v);
            }
            bool deeper = false;
            for (int32_t& w = next[v]; w < k; ++w) {
                if (w == v || T[static_cast<int64_t>(v) * k + w] <= 0) continue;
                if (order[w] < 0) {
                    path.push_back(w);
                    deeper = true;
                    break;
                }
                if (component[w] < 0) low[v] = std::min(low[v], low[w]);
            }
            if (deeper) continue;
            if (low[v] == order[v]) {
                for (int32_t w = -1; w != v;) {
                    w = stack.back();
                    stack.pop_back();
                    component[w] = parts;
                }
                ++parts;
            }
            path.pop_back();
        }
    }
    return component;
}

// T: k x k, row-major, T[j, l] >= 0.  Sweeps d_j *= sqrt(inflow_j / outflow_j) until the flow balances to rounding.
inline Circulation circulate(std::vector<double> T, int32_t k) {
    Circulation c{std::vector<double>(k, 1.0), strong_components(T, k)};
    struct Edge {
        int32_t to;
        double flow;
    };
    std::vector<std::vector<Edge>> out(k), in(k);  // many classes: few pairs carry flow
    for (int32_t j = 0; j < k; ++j)
        for (int32_t l = 0; l < k; ++l) {
            const double flow = T[static_cast<int64_t>(j) * k + l];
            if (j == l || flow <= 0 || c.component[j] != c.component[l]) continue;
            out[j].push_back({l, flow});
            in[l].push_back({j, flow});
        }
    for (int sweep = 0; sweep < 1000; ++sweep) {
        double worst = 0, largest = 0;
        for (int32_t j = 0; j < k; ++j) {
            double leaves = 0, enters = 0;
            for (const Edge& e : out[j]) leaves += e.flow / c.d[e.to];
            for (const Edge& e : in[j]) enters += e.flow * c.d[e.to];
            leaves *= c.d[j];
            enters /= c.d[j];
            if (leaves <= 0 || enters <= 0) continue;
            worst = std::max(worst, std::abs(leaves - enters));
            largest = std::max(largest, leaves);
            c.d[j] *= std::sqrt(enters / leaves);
        }
        if (worst <= 1e-14 * largest) break;
    }
    return c;
}

}  // namespace skm
