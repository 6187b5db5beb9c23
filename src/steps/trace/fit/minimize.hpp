#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace rubato::detail {

/// A local minimum of `function` near `start`, by the simplex method of Nelder and Mead, "A simplex
/// method for function minimization", The Computer Journal 7 (1965), with their coefficients. The
/// first simplex has edges of length `step`; a second one around its result tells whether it
/// collapsed too early. Values are accurate to about 1e-10 of their size, arguments to the square
/// root of that.
template <std::size_t N, class Function>
[[nodiscard]] std::array<double, N> minimize(const Function& function,
                                             const std::array<double, N>& start, double step) {
  constexpr int kSteps = 400 * static_cast<int>(N);
  constexpr double kSmallest = 1e-12;
  using Point = std::array<double, N>;
  std::array<std::pair<double, Point>, N + 1> simplex;
  const auto& [best, best_point] = simplex.front();
  auto& [worst, worst_point] = simplex.back();
  // The point `share` of the way from the centre of the others through the worst one's mirror
  // image.
  const auto moved = [&](double share) {
    Point point{};
    for (std::size_t i = 0; i < N; ++i) {
      double sum = 0;
      for (std::size_t corner = 0; corner < N; ++corner) sum += simplex[corner].second[i];
      const double centre = sum / static_cast<double>(N);
      point[i] = centre + share * (centre - simplex.back().second[i]);
    }
    return std::pair(function(point), point);
  };
  Point from = start;
  for (int round = 0; round < 2; ++round) {
    simplex.fill({function(from), from});
    for (std::size_t i = 0; i < N; ++i) {
      simplex[i].second[i] += step;
      simplex[i].first = function(simplex[i].second);
    }
    for (int i = 0; i < kSteps; ++i) {
      std::ranges::sort(simplex);
      if (worst - best <= kSmallest * (1 + std::abs(best))) break;
      const auto mirrored = moved(1);
      if (mirrored.first < best) {
        simplex.back() = std::min(mirrored, moved(2));
      } else if (mirrored.first < simplex[N - 1].first) {
        simplex.back() = mirrored;
      } else if (const auto nearer = moved(mirrored.first < worst ? 0.5 : -0.5);
                 nearer.first < std::min(worst, mirrored.first)) {
        simplex.back() = nearer;
      } else {
        for (std::size_t corner = 1; corner <= N; ++corner) {
          Point& point = simplex[corner].second;
          for (std::size_t j = 0; j < N; ++j) point[j] = (point[j] + best_point[j]) / 2;
          simplex[corner].first = function(point);
        }
      }
    }
    from = std::ranges::min(simplex).second;
  }
  return from;
}

}  // namespace rubato::detail
