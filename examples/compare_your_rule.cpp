// Compares a rule of your own with two of rubato's, on a trace whose batches become 16 times as
// large. It learns the mean of noisy points, at a rate that is too large when multiplied by 16.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>

namespace {

constexpr double kRate = 0.15;

// Half the mean squared distance from some of the points, and its derivative.
class Distance {
 public:
  Distance() {
    std::mt19937 random(1);
    for (double& point : points_) point = 5 + std::normal_distribution()(random);
  }
  double operator()(std::span<const double> p, std::span<const std::int64_t> samples,
                    std::span<double> gradient) const {
    double value = 0;
    for (const std::int64_t sample : samples) {
      const double error = p[0] - points_[static_cast<std::size_t>(sample)];
      value += error * error / 2 / static_cast<double>(samples.size());
      gradient[0] += error / static_cast<double>(samples.size());
    }
    return value;
  }
  [[nodiscard]] std::int64_t samples() const { return std::ssize(points_); }

 private:
  std::vector<double> points_ = std::vector<double>(8192);
};

// Scales linearly, but never beyond the rate that the curvature allows: at rate 1 a step reaches
// the minimum of its batch, and beyond 2 it ends farther away than it began.
double as_far_as_it_bears(const rubato::RuleInput& step) {
  return std::min(step.scale(), 1 / kRate);
}

// The loss on all points after one epoch.
double loss_by(const Distance& distance, const char* rule) {
  rubato::TrainOptions options{.epochs = 1, .minibatch_size = 16, .learning_rate = kRate};
  options.optimizer.momentum = 0;
  options.reference_batch_size = 64;
  rubato::RuleRegistry rules;
  rules.add("bounded", as_far_as_it_bears);
  options.rule = rules.choose(rule);
  const rubato::Trace growing({{64, 4}, {256, 16}, {1024, 64}}, rubato::TraceEnd::hold, "growing");
  rubato::Trainer trainer(
      rubato::function_objective<double>(
          {.initial = {0}, .samples = distance.samples(), .value_and_gradient = distance}),
      growing, options);
  trainer.fit();
  std::vector<std::int64_t> all(static_cast<std::size_t>(distance.samples()));
  std::iota(all.begin(), all.end(), 0);
  double ignored = 0;
  return distance(trainer.parameters().front().values<double>(), all, {&ignored, 1});
}

}  // namespace

int main() {
  const Distance distance;
  for (const char* rule : {"constant", "linear", "bounded"}) {
    std::printf("%-8s  loss %.3g\n", rule, loss_by(distance, rule));
  }
}
