// Minimises a function of your own elastically, without libtorch: 8 cores at first, 3 after a
// preemption, 16 in the end. It fits the decay a e^(-b x) + c to measured points.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>

int main() {
  std::mt19937 random(1);
  std::vector<double> x(4096);
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 4 * static_cast<double>(i) / static_cast<double>(x.size());
    y[i] = 2 * std::exp(-1.5 * x[i]) + 0.5 + 0.1 * std::normal_distribution()(random);
  }

  // Returns the mean of half the squared errors of some points, and its derivatives by a, b and c.
  const auto value_and_gradient = [&](std::span<const double> p,
                                      std::span<const std::int64_t> samples,
                                      std::span<double> gradient) {
    const auto count = static_cast<double>(samples.size());
    double value = 0;
    for (const std::int64_t sample : samples) {
      const auto i = static_cast<std::size_t>(sample);
      const double decay = std::exp(-p[1] * x[i]);
      const double error = p[0] * decay + p[2] - y[i];
      value += error * error / 2 / count;
      gradient[0] += error * decay / count;
      gradient[1] -= error * p[0] * x[i] * decay / count;
      gradient[2] += error / count;
    }
    return value;
  };

  // The batches have 8 minibatches of 16 samples on as many cores, then 3, then 16, over and over.
  const rubato::Trace trace({{128, 8}, {48, 3}, {256, 16}}, rubato::TraceEnd::cycle, "preemption");
  rubato::TrainOptions options;
  options.epochs = 40;
  options.minibatch_size = 16;
  options.learning_rate = 0.1;
  options.optimizer.momentum = 0.9;
  auto objective = rubato::function_objective<double>(
      {.initial = {1, 1, 0}, .samples = 4096, .value_and_gradient = value_and_gradient});
  rubato::Trainer trainer(std::move(objective), trace, options);
  const rubato::TrainResult result = trainer.fit();
  const auto found = trainer.parameters().front().values<double>();
  std::printf("%lld steps, a %.2f b %.2f c %.2f\n", static_cast<long long>(result.steps), found[0],
              found[1], found[2]);
}
