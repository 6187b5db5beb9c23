#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runs/experiment/design/design.hpp"

namespace rubato::app {

/// The arguments of `rubato compare`.
struct CompareArguments {
  Design design;
  /// The folder of the experiment.
  std::filesystem::path folder;
  /// The number of runs at the same time.
  std::int64_t jobs = 1;
  bool quiet = false;
};

/// Reads the arguments after `rubato compare`, with the design that --config names or that of the
/// experiment that --resume names. Throws HelpAsked, and Error for a mistake of the user; traces
/// and data are not read.
[[nodiscard]] CompareArguments parse_compare_arguments(std::span<const std::string> arguments);

}  // namespace rubato::app
