#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/rule.hpp>

#include "loop/train/record_schemas.hpp"

namespace rubato {

/// The memory that a part needs, in values for each parameter.
struct PartNeeds {
  /// Values that are kept from step to step.
  int remembered = 0;
  /// The most values that an update needs besides those.
  int scratch = 0;
  /// True if the squares of minibatches' gradients are summed with them.
  bool squares = false;
  /// True if other weights are tested than those that steps change.
  bool tests_others = false;
};

/// Weights that a part of a step has beside the model's. They are tested and saved beside them.
///
/// T is float or double.
template <class T>
class OtherWeights {
 public:
  OtherWeights() = default;
  OtherWeights(const OtherWeights&) = delete;
  OtherWeights& operator=(const OtherWeights&) = delete;
  virtual ~OtherWeights() = default;

  /// Returns a value for each parameter, or none before the first update.
  [[nodiscard]] virtual std::span<T> values() = 0;
  /// Called before each update.
  virtual void begin(std::span<const T> parameters) = 0;
  /// Called after an update with a batch of that size. Throws Error if a state was that of another
  /// model.
  virtual void move(std::span<const T> parameters, std::int64_t batch_size, Workers& workers) = 0;
  virtual void visit_state(StateVisitor& state) = 0;
};

template <class T>
using OtherWeightsMaker = std::unique_ptr<OtherWeights<T>> (*)(const TrainOptions& options);

/// The facts of such weights, known without a training.
struct OtherWeightsInfo {
  /// Their name, also as an option and in the names of files, columns and metrics; empty for a part
  /// without such weights.
  std::string_view name{};
  /// Their name in text and on terminals, and what is wrong where they are missing.
  std::string_view words{};
  std::string_view label{};
  std::string_view missing{};
  bool (*exist)(const TrainOptions& options) = nullptr;
  /// Makes them, for options with which they exist.
  std::tuple<OtherWeightsMaker<float>, OtherWeightsMaker<double>> make{};
};

/// The choices of a step that may contradict each other.
struct StepChoices {
  const TrainOptions& options;
  const Rule& rule;
  /// FlatOptimizer::follows_sums() and needs_minibatch_squares() of the optimizer.
  bool follows_sums = false;
  bool squares = false;
  /// True if the optimizer has a momentum or a beta1 (FlatOptimizer::numbers()), and if the
  /// schedule sets it (LrSchedule::momentum()).
  bool has_momentum = false;
  bool moves_momentum = false;
};

/// A choice that other choices exclude. It is refused as a Refused.
struct Conflict {
  /// Its name as in Python: "clip_value".
  std::string_view choice;
  /// Returns the reason; empty if nothing excludes it.
  std::string (*why)(const StepChoices& step);
  std::string_view accepted;
};

/// A part of a step, as everything knows it that need not know what it does. It stands in the file
/// of the part.
struct StepPart {
  /// The beginning of the names of its entries in a state, if digests of steps cover them.
  std::string_view prefix{};
  /// The values to which it binds a state; those that it does not have are left out, so that states
  /// of versions without the part stay valid.
  std::vector<BoundValue> (*bound)(const TrainOptions& options) = nullptr;
  PartNeeds (*needs)(const TrainOptions& options) = nullptr;
  /// Throws Error for options of the part that are out of range.
  void (*check)(const TrainOptions& options) = nullptr;
  std::vector<Conflict> conflicts{};
  OtherWeightsInfo weights{};
  /// The part's columns in records of steps, and the column before them: one of step_schema() that
  /// belongs to no part or to an earlier one.
  std::vector<RecordColumn<StepRecord>> (*columns)() = nullptr;
  std::string_view columns_after{};
};

// The parts besides parameters and buffers, each in its file, and their list.
[[nodiscard]] StepPart rate_part();
[[nodiscard]] StepPart rate_factors_part();
[[nodiscard]] StepPart optimizer_part();
[[nodiscard]] StepPart lookahead_part();
[[nodiscard]] StepPart averages_part();
[[nodiscard]] StepPart preparation_part();
[[nodiscard]] StepPart adjustments_part();
[[nodiscard]] StepPart loss_scale_part();
[[nodiscard]] StepPart digest_part();
[[nodiscard]] StepPart reducer_part();
inline constexpr std::array kStepParts{
    rate_part,        rate_factors_part, optimizer_part,  lookahead_part, averages_part,
    preparation_part, adjustments_part,  loss_scale_part, digest_part,    reducer_part};

/// All parts, those of the model first.
[[nodiscard]] std::span<const StepPart> step_parts();

/// The sum of what all parts need.
[[nodiscard]] PartNeeds needs_of_parts(const TrainOptions& options);

/// The weights that parts have beside the model's with these options, or can have, in the order of
/// the parts.
[[nodiscard]] std::vector<OtherWeightsInfo> other_weights(const TrainOptions* options = nullptr);

/// Throws Refused for the first choice that has a conflict. Users of options and of the library
/// read the same sentence.
void require_compatible(const StepChoices& step);

/// The metrics that can be watched in trainings without metrics of their own: those of the model,
/// and the test loss of weights beside it.
[[nodiscard]] std::vector<WatchedMetric> built_in_metrics();

}  // namespace rubato
