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

/// What of a step's gradient is wanted besides the gradient.
struct MeterNeeds {
  /// Of each parameter group, with the mean over the minibatches.
  bool groups = false;
  /// Of each tensor, with the weights'.
  bool layers = false;
  /// Of all together.
  bool norm = false;

  [[nodiscard]] bool any() const { return groups || layers || norm; }
};

/// Takes the norms of a step's gradient, and finds out whether it is finite: in one pass over it,
/// the same bits for every number of threads.
///
/// T is float or double.
template <class T>
class StepMeter {
 public:
  /// `weight_decays` are those of the groups.
  StepMeter(const ParameterLayout& layout, const MeterNeeds& needs,
            std::vector<double> weight_decays);

  /// What the reducer is to take along with the sum: empty where no group norms are wanted.
  [[nodiscard]] const NormBlocks& blocks_of_sum() const {
    return needs_.groups ? blocks_ : no_blocks_;
  }

  /// Whether all values of the sum are finite; and if so, all that follows is of this step, whose
  /// size is StepPlan::size_in_minibatches().
  [[nodiscard]] bool measure(const StepSum<T>& sum, double size, std::span<const T> parameters,
                             Workers& workers);

  /// Of the mean gradient; where something was measured.
  [[nodiscard]] std::optional<double> gradient_norm() const { return gradient_norm_; }
  /// Of each group; empty where they are not wanted.
  [[nodiscard]] std::span<const GradientNorms> groups() const {
    return needs_.groups ? std::span<const GradientNorms>(groups_)
                         : std::span<const GradientNorms>();
  }
  /// Whether they are of this step and the one before, of one minibatch each.
  [[nodiscard]] bool from_pair() const { return from_pair_; }
  /// Of each tensor, of the mean gradient.
  [[nodiscard]] std::span<const ParameterNorms> layers() const { return layers_; }

  /// Makes layers() those of the gradient that is applied: `factor` times the sum, which has been
  /// changed where `changed` is not empty.
  void set_applied(double factor, std::span<const T> changed, Workers& workers);

  /// The step was not applied: the next has none before it.
  void forget_pair() { pair_.forget(); }
  /// What was measured of the step counts for those after it, or does not.
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
  // For steps of one minibatch.
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
