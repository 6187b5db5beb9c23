// The seven unknowns are fitted to logarithms of seconds by least squares (K. Levenberg 1944; D. W.
// Marquardt, "An algorithm for least-squares estimation of nonlinear parameters", 1963) within
// bounds: steps are clipped to the feasible box, and an unknown that is fixed or pushed against its
// bound drops out of the linear system. ThroughputProblem scales all numbers to about 1 and decides
// by the observed shapes which unknowns are free; a weak ridge draws gamma and the terms of the
// cores' sum towards their least values where the data hardly determine them. The better result of
// two starts counts, because the sum of squares may have several minima. All sums have a fixed
// order, and logarithms and powers come from exact::, so the bits are the same on every machine.

#include "throughput.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/core/portable_math.hpp"

namespace rubato {

namespace {

// The unknowns are in the order of ThroughputModel::visit_state().
constexpr std::size_t kGradientBase = 0;
constexpr std::size_t kGradientSlope = 1;
constexpr std::size_t kHostBase = 2;
constexpr std::size_t kHostSlope = 3;
constexpr std::size_t kNetworkBase = 4;
constexpr std::size_t kNetworkSlope = 5;
constexpr std::size_t kGamma = 6;
constexpr std::size_t kUnknowns = 7;

using Unknowns = std::array<double, kUnknowns>;
using Normal = std::array<Unknowns, kUnknowns>;

// The weight of the terms that draw unknowns towards 0, so that times which do not determine them
// leave them small.
constexpr double kRidge = 1e-3;
constexpr double kLeastSlope = 1e-9;
constexpr double kMostGamma = 10;
constexpr int kMostIterations = 200;
constexpr double kFirstDamping = 1e-3;
constexpr double kLeastDamping = 1e-12;
constexpr double kMostDamping = 1e12;
// The iteration stops at a smaller relative gain in the sum of squares.
constexpr double kLeastGain = 1e-12;
// Less than this share of the mean time is zero.
constexpr double kNothing = 1e-12;
// The iteration starts from both, because either may lie in the valley of a local minimum.
constexpr std::array<double, 2> kFirstGammas{1, 3};

double log_of_mean_time(const StepSeconds& observed) {
  double sum = 0;
  for (const auto& [shape, seconds] : observed) sum += exact::log(seconds);
  return sum / static_cast<double>(observed.size());
}

// The problem is scaled to numbers around 1: times are relative to their mean, and each slope is
// multiplied by the largest number that it multiplies.
class ThroughputProblem {
 public:
  ThroughputProblem(const StepSeconds& observed, std::int64_t cores_per_host)
      : log_mean_(log_of_mean_time(observed)) {
    std::set<std::int64_t> loads;
    std::set<std::int64_t> of_host;
    std::set<std::int64_t> of_network;
    for (const auto& [shape, seconds] : observed) {
      loads.insert(shape.minibatches);
      if (shape.cores > 1) {
        (shape.cores <= cores_per_host ? of_host : of_network).insert(shape.cores);
      }
    }
    most_load_ = static_cast<double>(*loads.rbegin());
    if (!of_host.empty()) most_host_ = std::max(1.0, more_than_two(*of_host.rbegin()));
    if (!of_network.empty()) most_network_ = std::max(1.0, more_than_two(*of_network.rbegin()));
    free_[kGradientBase] = loads.size() > 1;
    free_[kGradientSlope] = true;
    free_[kHostBase] = !of_host.empty();
    free_[kHostSlope] = of_host.size() > 1;
    free_[kNetworkBase] = !of_network.empty();
    free_[kNetworkSlope] = of_network.size() > 1;
    free_[kGamma] = free_[kHostBase] || free_[kNetworkBase];

    rows_.reserve(observed.size());
    for (const auto& [shape, seconds] : observed) {
      Row row{.log_time = exact::log(seconds) - log_mean_,
              .load = static_cast<double>(shape.minibatches) / most_load_};
      if (shape.cores > 1) {
        const bool in_host = shape.cores <= cores_per_host;
        row.base = in_host ? kHostBase : kNetworkBase;
        row.more = more_than_two(shape.cores) / (in_host ? most_host_ : most_network_);
      }
      rows_.push_back(row);
    }
  }

  [[nodiscard]] Unknowns start(double gamma) const {
    Unknowns at;
    at.fill(0.1);
    at[kGradientSlope] = 1;
    at[kGamma] = gamma;
    return within(at);
  }

  // The nearest feasible point; unknowns that are not free are 0, and gamma is 1.
  [[nodiscard]] Unknowns within(const Unknowns& at) const {
    Unknowns result{};
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      result[i] = free_[i] ? std::clamp(at[i], least(i), i == kGamma ? kMostGamma : 1e9) : least(i);
    }
    return result;
  }

  // Half the sum of squares; and its gradient and Gauss-Newton Hessian, if not null.
  [[nodiscard]] double cost(const Unknowns& at, Unknowns* gradient = nullptr,
                            Normal* hessian = nullptr) const {
    double sum = 0;
    for (const Row& row : rows_) {
      Unknowns derivative{};
      const double residual = residual_of(row, at, derivative);
      sum += residual * residual / 2;
      if (gradient == nullptr) continue;
      for (std::size_t i = 0; i < kUnknowns; ++i) {
        (*gradient)[i] += residual * derivative[i];
        for (std::size_t j = 0; j < kUnknowns; ++j) {
          (*hessian)[i][j] += derivative[i] * derivative[j];
        }
      }
    }
    for (std::size_t i = kHostBase; i < kUnknowns; ++i) {
      const double off = kRidge * (at[i] - least(i));
      sum += off * off / 2;
      if (gradient == nullptr) continue;
      (*gradient)[i] += kRidge * off;
      (*hessian)[i][i] += kRidge * kRidge;
    }
    return sum;
  }

  // True if the unknown may move: it is neither fixed nor pushed against its bound.
  [[nodiscard]] bool moves(std::size_t i, const Unknowns& at, const Unknowns& gradient) const {
    if (!free_[i]) return false;
    if (at[i] <= least(i) && gradient[i] >= 0) return false;
    return i != kGamma || at[i] < kMostGamma || gradient[i] > 0;
  }

  [[nodiscard]] ThroughputModel model_of(Unknowns at) const {
    const double mean = exact::exp(log_mean_);
    // A value this close to its bound is on it.
    for (double& value : at) value = value < kNothing ? 0 : value;
    return {.gradient_base = at[kGradientBase] * mean,
            .gradient_slope = at[kGradientSlope] * mean / most_load_,
            .host_base = at[kHostBase] * mean,
            .host_slope = at[kHostSlope] * mean / most_host_,
            .network_base = at[kNetworkBase] * mean,
            .network_slope = at[kNetworkSlope] * mean / most_network_,
            .gamma = at[kGamma]};
  }

 private:
  struct Row {
    double log_time = 0;
    // Minibatches of the busiest core.
    double load = 0;
    // Index of the base of the cores' sum; its slope is the next one. kGamma for one core, without
    // a sum.
    std::size_t base = kGamma;
    double more = 0;
  };

  static double more_than_two(std::int64_t cores) { return static_cast<double>(cores - 2); }

  static double least(std::size_t i) {
    if (i == kGradientSlope) return kLeastSlope;
    return i == kGamma ? 1 : 0;
  }

  static double residual_of(const Row& row, const Unknowns& at, Unknowns& derivative) {
    const double gradient = at[kGradientBase] + at[kGradientSlope] * row.load;
    const auto by_gradient = [&](double factor) {
      derivative[kGradientBase] = factor;
      derivative[kGradientSlope] = factor * row.load;
    };
    if (row.base == kGamma) {
      by_gradient(1 / gradient);
      return exact::log(gradient) - row.log_time;
    }
    const double sync = at[row.base] + at[row.base + 1] * row.more;
    const double gamma = at[kGamma];
    const double larger = std::max(gradient, sync);
    const double ratio = std::min(gradient, sync) / larger;
    const double power = exact::pow(ratio, gamma);
    const double by_larger = 1 / (larger * (1 + power));
    // pow() gives the right limit at ratio 0: 1 if gamma is 1, and 0 if it is larger.
    const double by_smaller = by_larger * exact::pow(ratio, gamma - 1);
    const bool gradient_is_larger = gradient >= sync;
    by_gradient(gradient_is_larger ? by_larger : by_smaller);
    const double by_sync = gradient_is_larger ? by_smaller : by_larger;
    derivative[row.base] = by_sync;
    derivative[row.base + 1] = by_sync * row.more;
    const double log_power = exact::log1p(power);
    derivative[kGamma] = -log_power / (gamma * gamma);
    if (ratio > 0) derivative[kGamma] += power * exact::log(ratio) / (gamma * (1 + power));
    return exact::log(larger) + log_power / gamma - row.log_time;
  }

  double log_mean_;
  double most_load_ = 1;
  double most_host_ = 1;
  double most_network_ = 1;
  std::array<bool, kUnknowns> free_{};
  std::vector<Row> rows_;
};

// The sum of `term(i)` over i from `begin` to below `end`, in the order of a binary tree.
template <class Term>
double sum_in_halves(std::size_t begin, std::size_t end, const Term& term) {
  if (end - begin < 2) return end == begin ? 0 : term(begin);
  const std::size_t middle = begin + (end - begin) / 2;
  return sum_in_halves(begin, middle, term) + sum_in_halves(middle, end, term);
}

// Solves a system of linear equations with a symmetric, positive definite matrix, of which the
// lower triangle is used: LDL^T with the largest element of the diagonal first. The order of all
// sums is fixed and gives the bits of Eigen's LDLT without vectors.
Unknowns solution_of(Normal matrix, Unknowns right) {
  std::array<std::size_t, kUnknowns> swapped{};
  for (std::size_t k = 0; k < kUnknowns; ++k) {
    std::size_t largest = k;
    for (std::size_t i = k + 1; i < kUnknowns; ++i) {
      if (std::fabs(matrix[i][i]) > std::fabs(matrix[largest][largest])) largest = i;
    }
    swapped[k] = largest;
    if (largest != k) {
      for (std::size_t j = 0; j < k; ++j) std::swap(matrix[k][j], matrix[largest][j]);
      for (std::size_t i = largest + 1; i < kUnknowns; ++i) {
        std::swap(matrix[i][k], matrix[i][largest]);
      }
      std::swap(matrix[k][k], matrix[largest][largest]);
      for (std::size_t i = k + 1; i < largest; ++i) std::swap(matrix[i][k], matrix[largest][i]);
    }
    for (std::size_t i = k; i < kUnknowns; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < k; ++j) sum += matrix[i][j] * (matrix[j][j] * matrix[k][j]);
      matrix[i][k] -= sum;
    }
    for (std::size_t i = k + 1; i < kUnknowns; ++i) matrix[i][k] /= matrix[k][k];
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) std::swap(right[i], right[swapped[i]]);
  for (std::size_t i = 1; i < kUnknowns; ++i) {
    right[i] -= sum_in_halves(0, i, [&](std::size_t j) { return matrix[i][j] * right[j]; });
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) right[i] /= matrix[i][i];
  for (std::size_t i = kUnknowns; i-- > 0;) {
    right[i] -=
        sum_in_halves(i + 1, kUnknowns, [&](std::size_t j) { return matrix[j][i] * right[j]; });
  }
  for (std::size_t i = kUnknowns; i-- > 0;) std::swap(right[i], right[swapped[i]]);
  return right;
}

struct Minimum {
  Unknowns at;
  double cost = 0;
};

// Marquardt's damping in proportion to the diagonal; steps are clipped at the bounds.
Minimum minimum_from(const ThroughputProblem& problem, const Unknowns& start) {
  Minimum best{.at = start, .cost = problem.cost(start)};
  double damping = kFirstDamping;
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    Unknowns gradient{};
    Normal hessian{};
    static_cast<void>(problem.cost(best.at, &gradient, &hessian));
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      if (problem.moves(i, best.at, gradient)) continue;
      for (std::size_t j = 0; j < kUnknowns; ++j) hessian[i][j] = hessian[j][i] = 0;
      hessian[i][i] = 1;
      gradient[i] = 0;
    }
    bool better = false;
    double gain = 0;
    while (!better && damping <= kMostDamping) {
      Normal damped = hessian;
      for (std::size_t i = 0; i < kUnknowns; ++i) damped[i][i] *= 1 + damping;
      Unknowns at = solution_of(damped, gradient);
      for (std::size_t i = 0; i < kUnknowns; ++i) at[i] = best.at[i] - at[i];
      at = problem.within(at);
      const double cost = problem.cost(at);
      better = cost < best.cost;
      if (better) {
        gain = best.cost - cost;
        best = {.at = at, .cost = cost};
        damping = std::max(kLeastDamping, damping / 4);
      } else {
        damping *= 8;
      }
    }
    if (!better || gain <= kLeastGain * best.cost) break;
  }
  return best;
}

}  // namespace

ThroughputModel fit_throughput(const StepSeconds& observed, std::int64_t cores_per_host) {
  const ThroughputProblem problem(observed, cores_per_host);
  Minimum best = minimum_from(problem, problem.start(kFirstGammas[0]));
  for (std::size_t i = 1; i < kFirstGammas.size(); ++i) {
    const Minimum other = minimum_from(problem, problem.start(kFirstGammas[i]));
    if (other.cost < best.cost) best = other;
  }
  return problem.model_of(best.at);
}

double fit_error(const ThroughputModel& model, const StepSeconds& observed,
                 std::int64_t cores_per_host) {
  double sum = 0;
  for (const auto& [shape, seconds] : observed) {
    const double residual = exact::log(model.seconds(shape, cores_per_host) / seconds);
    sum += residual * residual;
  }
  return std::sqrt(sum / static_cast<double>(observed.size()));
}

StepShape StepShape::of(std::int64_t minibatches, std::int64_t cores) {
  return {.cores = std::min(minibatches, cores), .minibatches = (minibatches + cores - 1) / cores};
}

double ThroughputModel::seconds(const StepShape& shape, std::int64_t cores_per_host) const {
  const double gradient = gradient_base + gradient_slope * static_cast<double>(shape.minibatches);
  if (shape.cores <= 1) return gradient;
  const auto more = static_cast<double>(shape.cores - 2);
  const double sync = shape.cores <= cores_per_host ? host_base + host_slope * more
                                                    : network_base + network_slope * more;
  // The power is of the ratio of the smaller to the larger, which is in range for every gamma.
  const double larger = std::max(gradient, sync);
  return larger * exact::pow(1 + exact::pow(std::min(gradient, sync) / larger, gamma), 1 / gamma);
}

void ThroughputModel::visit_state(NumberVisitor& numbers) {
  for (double* const number : {&gradient_base, &gradient_slope, &host_base, &host_slope,
                               &network_base, &network_slope, &gamma}) {
    numbers.number(*number);
    numbers.require(std::isfinite(*number) && *number >= 0);
  }
  numbers.require(gradient_slope > 0 && gamma >= 1);
}

}  // namespace rubato
