#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <rubato/train/records.hpp>
#include <rubato/train/trainer.hpp>

namespace rubato {

/// What a monitor sees of one tensor.
struct TensorStatistics {
  std::string name;
  /// Of the parameter of that name, or of its gradient.
  bool gradient = false;
  /// Euclidean.
  double norm = 0;
  double mean = 0;
  double min = 0;
  double max = 0;
};

[[nodiscard]] TensorStatistics statistics_of(const NamedTensor& named, bool gradient);

/// Looks at parameters and their gradients every so many steps: the mean gradient of the step, and
/// the parameters that it met, before the update.
class Monitor final : public Observer {
 public:
  using Sink = std::function<void(const StepPlan& step, std::span<const TensorStatistics> tensors)>;

  /// Of the parameters whose name matches the shell pattern, at the steps 0, `every`, 2 `every`,
  /// ... Throws Error when `every` is below 1 or no parameter matches.
  Monitor(const Trainer& trainer, const std::string& pattern, std::int64_t every, Sink sink);

  [[nodiscard]] bool wants_gradients(const StepPlan& step) const override;
  void on_gradients(const StepPlan& step, std::span<const NamedTensor> gradients) override;

 private:
  // Of the trainer's parameters, those that match.
  std::vector<NamedTensor> parameters_;
  std::int64_t every_;
  Sink sink_;
};

}  // namespace rubato
