#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/faults.hpp>

#include "base/core/mix.hpp"

namespace rubato {

FaultModel::FaultModel(FaultOptions options) : options_(std::move(options)) {
  if (!(options_.rate >= 0 && options_.rate < 1)) {
    throw Error(
        fmt::format("a fault rate of {}: accepted are values from 0 to below 1", options_.rate));
  }
  for (const Fault& fault : options_.planned) {
    if (fault.core.value() < 0 || fault.step.value() < 0 || fault.substep < 0) {
      throw Error("core, step and substep of a fault count from 0");
    }
  }
}

std::optional<std::int64_t> FaultModel::death(StepIndex step, std::int64_t attempt, CoreRank core,
                                              std::int64_t substeps) const {
  if (attempt == 0) {
    const auto planned =
        std::find_if(options_.planned.begin(), options_.planned.end(),
                     [&](const Fault& fault) { return fault.core == core && fault.step == step; });
    if (planned != options_.planned.end()) return std::min(planned->substep, substeps - 1);
  }
  if (options_.rate == 0) return std::nullopt;
  const std::uint64_t draw = seed_of(options_.seed, {step.value(), attempt, core.value()});
  // The upper 53 bits as a number in [0, 1).
  if (static_cast<double>(draw >> 11) * 0x1p-53 >= options_.rate) return std::nullopt;
  return static_cast<std::int64_t>(mixed(draw) % static_cast<std::uint64_t>(substeps));
}

}  // namespace rubato
