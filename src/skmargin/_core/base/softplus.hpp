// log(1 + exp(x)) without overflow.
#pragma once
#include <algorithm>
#include <cmath>

namespace skm {

inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace skm
