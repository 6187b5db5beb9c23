#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/numbers/sums.hpp>

#include "loop/runtime/executors/step_executor.hpp"
#include "loop/train/gradient/gradient_meter.hpp"
#include "loop/train/gradient/gradient_pair.hpp"

namespace rubato {

/// The norms of a step's gradient that are needed.
struct MeterNeeds {
  /// The norms of each parameter group, with the mean over the minibatches.
  bool groups = false;
  /// The norms of each tensor, with the weights'.
  bool layers = false;
  /// The norm of the whole gradient.
  bool norm = false;

  [[nodiscard]] bool any() const { return groups || layers || norm; }
};

/// Measures the norms of a step's gradient, and whether it is finite, in one pass over it, to the
/// same bits for every number of threads.
///
/// T is float or double.
template <class T>
class StepMeter {
 public:
  /// `weight_decays` has one element for each group.
  StepMeter(const ParameterLayout& layout, const MeterNeeds& needs,
            std::vector<double> weight_decays);

  /// The blocks of which the reducer has to sum squared norms; empty if no group norms are needed.
  [[nodiscard]] const NormBlocks& blocks_of_sum() const {
    return needs_.groups ? blocks_ : no_blocks_;
  }

  /// Returns whether all values of the sum are finite; if so, the getters below are of this step,
  /// whose size is StepPlan::size_in_minibatches().
  [[nodiscard]] bool measure(const StepSum<T>& sum, double size, std::span<const T> parameters,
                             Workers& workers);

  /// The norm of the mean gradient, if something was measured.
  [[nodiscard]] std::optional<double> gradient_norm() const { return gradient_norm_; }
  /// The norms of each group; empty if they are not needed.
  [[nodiscard]] std::span<const GradientNorms> groups() const {
    return needs_.groups ? std::span<const GradientNorms>(groups_)
                         : std::span<const GradientNorms>();
  }
  /// True if groups() compares this step with the one before, of one minibatch each.
  [[nodiscard]] bool from_pair() const { return from_pair_; }
  /// The norms of each tensor in the mean gradient.
  [[nodiscard]] std::span<const ParameterNorms> layers() const { return layers_; }

  /// Makes layers() the norms of the gradient that is applied: `factor` times the sum, which has
  /// been changed if `changed` is not empty.
  void set_applied(double factor, std::span<const T> changed, Workers& workers);

  /// Makes the next step one without a predecessor, because this one was not applied.
  void forget_pair() { pair_.forget(); }
  /// Accept or discard the measurements of this step for those after it.
  void keep() { pair_.keep(); }
  void drop() { pair_.drop(); }
  void visit_state(StateVisitor& state) {
    if (needs_.groups) pair_.visit_state(state);
  }

 private:
  void measure_groups(const StepSum<T>& sum, double size, bool finite, Workers& workers);
  [[nodiscard]] bool measure_pair(std::span<const T> gradient, double size, Workers& workers);
  void measure_layers(double of_mean, std::span<const T> parameters, Workers& workers);

  const ParameterLayout& layout_;
  MeterNeeds needs_;
  std::vector<double> weight_decays_;
  NormBlocks blocks_;
  NormBlocks no_blocks_;
  GradientMeter<T> gradient_meter_;
  // Used for steps of one minibatch.
  GradientPair<T> pair_;
  GradientMeter<T> weight_meter_;
  std::optional<double> gradient_norm_;
  std::vector<GradientNorms> groups_;
  bool from_pair_ = false;
  std::vector<ParameterNorms> layers_;
};

extern template class StepMeter<float>;
extern template class StepMeter<double>;

}  // namespace rubato
