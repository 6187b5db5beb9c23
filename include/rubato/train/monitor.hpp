#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <rubato/train/observer.hpp>

namespace rubato {

/// A monitor's statistics of one tensor.
struct TensorStatistics {
  std::string name;
  /// Whether they are of the parameter's gradient, not of the parameter.
  bool gradient = false;
  /// Euclidean.
  double norm = 0;
  double mean = 0;
  double min = 0;
  double max = 0;
};

[[nodiscard]] TensorStatistics statistics_of(const NamedArray& named, bool gradient);

/// Those whose name matches the shell pattern. Throws Error when none does.
[[nodiscard]] std::vector<NamedArray> matching(std::span<const NamedArray> parameters,
                                               const std::string& pattern);

/// Computes statistics of parameters and of mean gradients at regular steps, before the update.
class Monitor final : public Observer {
 public:
  using Sink = std::function<void(const StepPlan& step, std::span<const TensorStatistics> tensors)>;

  /// Of the parameters whose name matches the shell pattern, at the steps 0, `every`, 2 `every`,
  /// ... Throws Error when `every` is below 1 or `sink` is empty.
  Monitor(std::string pattern, std::int64_t every, Sink sink);

  /// Throws Error when no parameter matches.
  void on_added(Training& training) override;
  [[nodiscard]] bool wants_gradients(const StepPlan& step) const override;
  void on_gradients(Training& training, const StepPlan& step,
                    std::span<const NamedArray> gradients) override;

 private:
  std::string pattern_;
  std::int64_t every_;
  Sink sink_;
};

}  // namespace rubato
