#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/trainer.hpp>

#include "primitives.hpp"

namespace rubato::bench {

/// Times are measured for one minibatch and for four at once.
inline constexpr std::array<std::int64_t, 2> kAtOnce{1, 4};
inline constexpr std::int64_t kSamples = 32;
/// Trainings whose times are taken have steps of that many cores, of which the first step of each
/// training does not count.
inline constexpr std::int64_t kCores = 8;
inline constexpr std::int64_t kSteps = 3;

/// The library primitives that a pass through a layer needs, each with those that can compute it.
/// Empty for layers that only look at arrays in another way.
struct Bound {
  std::vector<std::vector<Timed>> steps{};

  void measure();
  /// The sum of the fastest.
  [[nodiscard]] double microseconds() const;
  /// The names of the fastest.
  [[nodiscard]] std::string names() const;
};

/// A pass through all layers of the same kind and shape of a network.
struct Row {
  std::string layer{};
  std::string pass{};
  /// The number of such layers.
  std::int64_t count = 0;
  /// For each of kAtOnce: what primitives take for one of the layers, and the microseconds that
  /// rubato takes for all of them.
  std::array<Bound, kAtOnce.size()> bounds{};
  std::array<double, kAtOnce.size()> rubato{};
};

/// A network in training on one thread. Times are microseconds for as many minibatches as are
/// computed at once.
struct Network {
  std::vector<Row> rows{};
  /// From the gathering of samples to the end of backward.
  std::array<double, kAtOnce.size()> computed{};
  /// The whole training: with sums and updates.
  std::array<double, kAtOnce.size()> trained{};
};

[[nodiscard]] double microseconds_between(Span::Moment begin, Span::Moment end);

/// Takes the times of a training with a minibatch, or several, for each core.
class StepTimes {
 public:
  /// To be called for every span of the only thread.
  void see(const Span& span);
  /// Called before another training.
  void restart() { updated_.reset(); }
  /// The medians that are described at Network: for a minibatch, and for those of a core.
  [[nodiscard]] double computed() const { return median_of(computed_); }
  [[nodiscard]] double trained() const { return median_of(trained_); }

 private:
  std::optional<Span::Moment> gathered_{};
  std::optional<Span::Moment> updated_{};
  std::vector<double> computed_{};
  std::vector<double> trained_{};
};

/// A network that libtorch computes with rubato's operators. These compute one minibatch at a time.
[[nodiscard]] Network measure_torch(std::string_view network, int rounds);
/// A perceptron that the Eigen engine computes.
[[nodiscard]] Network measure_perceptron(std::string_view network, int rounds);

}  // namespace rubato::bench
