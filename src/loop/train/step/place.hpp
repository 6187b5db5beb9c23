#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

#include <rubato/base/index.hpp>

namespace rubato {

/// A place in a training, as people count: epoch and step from 1. Files count from 0.
[[nodiscard]] inline std::string place_of(EpochIndex epoch, StepIndex step) {
  return fmt::format("epoch {}, step {} of the run", epoch.value() + 1, step.value() + 1);
}

/// Returns "NaN", whatever its sign, "infinite", or the number.
[[nodiscard]] inline std::string in_words(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return "infinite";
  return fmt::format("{:.6g}", number);
}

}  // namespace rubato
