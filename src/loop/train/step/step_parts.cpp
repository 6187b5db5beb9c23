#include <array>

#include "step_part.hpp"

namespace rubato {

std::span<const StepPart> step_parts() {
  static const std::array parts{
      StepPart{.prefix = "parameter."},
      StepPart{.prefix = "buffer."},
      rate_part(),
      optimizer_part(),
      lookahead_part(),
      averages_part(),
      preparation_part(),
      adjustments_part(),
      // The objective is bound to its options.
      StepPart{.prefix = "loss_scale"},
  };
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

}  // namespace rubato
