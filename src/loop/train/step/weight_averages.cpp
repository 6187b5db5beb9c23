#include "weight_averages.hpp"

#include <vector>

#include <fmt/format.h>

#include "step_part.hpp"

namespace rubato {

StepPart averages_part() {
  return {.prefix = "ema.",
          .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
            const std::optional<double>& half_life = options.ema_half_life;
            return {{"ema_half_life", half_life ? fmt::to_string(*half_life) : "", OnFork::free}};
          },
          .needs = [](const TrainOptions& options) -> PartNeeds {
            if (!options.ema_half_life) return {};
            return {.remembered = 1, .tests_others = true};
          }};
}

}  // namespace rubato
