#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runs/experiment/design/design.hpp"

namespace rubato::app {

/// What `rubato compare` was asked for.
struct CompareArguments {
  Design design;
  /// Of the experiment.
  std::filesystem::path folder;
  /// Runs at the same time.
  std::int64_t jobs = 1;
  bool quiet = false;
};

/// Reads the arguments behind `rubato compare`, with the design that --config names, or that of the
/// experiment that --resume names. Throws HelpAsked, and Error for what the user got wrong, without
/// looking into traces or data.
[[nodiscard]] CompareArguments parse_compare_arguments(std::span<const std::string> arguments);

}  // namespace rubato::app
