#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/vectors.hpp"
#include "step_part.hpp"

namespace rubato {

// The objective is bound to its options.
StepPart loss_scale_part() {
  return {.prefix = "loss_scale",
          .columns =
              [] {
                return std::vector<RecordColumn<StepRecord>>{
                    {{.name = "loss_scale",
                      .help = "factor of the loss, with `--precision fp16`",
                      .tag = "train/loss_scale",
                      .figure = {kRateSection, "Loss scale"}},
                     &StepRecord::loss_scale},
                    {{.name = "skipped",
                      .help = "whether the step is left out, because the gradient overflowed with "
                              "`--precision fp16` or all weights are 0",
                      .tag = "step/skipped",
                      .usual = false},
                     [](const StepRecord& step) {
                       return step.loss_scale || step.weight ? std::optional(step.skipped)
                                                             : std::nullopt;
                     },
                     [](StepRecord& step, const Cell& cell) {
                       step.skipped = std::get<bool>(cell);
                       return true;
                     }}};
              },
          .columns_after = "measured_gain"};
}

// A reducer that is not reproducible is bound as a value of the training as a whole.
StepPart reducer_part() {
  return {.conflicts = {
              {.choice = "reduce",
               .why = [](const StepChoices& step) -> std::string {
                 const OwnReducer& own = step.options.own_reducer;
                 if (!own || own.reproducible || !step.options.exact) return {};
                 return own.name +
                        " does not promise the same bits for every number of threads and cores";
               },
               .accepted = "exact=false, or OwnReducer::reproducible if its sum has the order "
                           "documented there"}}};
}

std::span<const StepPart> step_parts() {
  static const std::vector<StepPart> parts = [] {
    std::vector<StepPart> all{{.prefix = "parameter."}, {.prefix = "buffer."}};
    for (StepPart (*const part)() : kStepParts) all.push_back(part());
    return all;
  }();
  return parts;
}

PartNeeds needs_of_parts(const TrainOptions& options) {
  PartNeeds all;
  for (const StepPart& part : step_parts()) {
    if (part.needs == nullptr) continue;
    const PartNeeds needs = part.needs(options);
    all.remembered += needs.remembered;
    all.scratch += needs.scratch;
    all.squares = all.squares || needs.squares;
    all.tests_others = all.tests_others || needs.tests_others;
  }
  return all;
}

std::vector<OtherWeightsInfo> other_weights(const TrainOptions* options) {
  std::vector<OtherWeightsInfo> weights;
  for (const StepPart& part : step_parts()) {
    const OtherWeightsInfo& of = part.weights;
    if (!of.name.empty() && (options == nullptr || of.exist(*options))) weights.push_back(of);
  }
  return weights;
}

std::vector<WatchedMetric> built_in_metrics() {
  auto metrics = vector_of<WatchedMetric>(kMetrics, &Choice<Metric>::value);
  for (const OtherWeightsInfo& weights : other_weights()) {
    metrics.emplace_back(std::string(weights.name), Metric::test_loss);
  }
  return metrics;
}

void require_compatible(const StepChoices& step) {
  for (const StepPart& part : step_parts()) {
    for (const auto& [choice, why_of, accepted] : part.conflicts) {
      const std::string why = why_of(step);
      if (!why.empty()) throw Refused(std::string(choice), why, std::string(accepted));
    }
  }
}

}  // namespace rubato
