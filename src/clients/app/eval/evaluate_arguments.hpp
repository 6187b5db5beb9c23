#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "clients/app/line/command_line.hpp"

namespace rubato::app {

/// `rubato eval` and `rubato predict`.
enum class EvaluateCommand { evaluate, predict };

/// What they were asked for.
struct EvaluateArguments {
  /// As evaluation_configuration() has it.
  RunConfiguration run;
  /// The folder of the run in the first place; empty without one.
  std::filesystem::path folder;
  /// Whether other data are named than those of the run.
  bool other_data = false;
  /// Of `rubato eval`.
  bool json = false;
  /// Of `rubato predict`, whose output is CSV on stdout without a file.
  Prediction what = Prediction::outputs;
  std::optional<std::filesystem::path> out;

  friend bool operator==(const EvaluateArguments&, const EvaluateArguments&) = default;
};

/// Reads the arguments behind such a command, with what the folder of a run says that stands in
/// their first place. Throws HelpAsked, and Error for what the user got wrong, without
/// looking into the data, the model or the weights.
[[nodiscard]] EvaluateArguments parse_evaluate_arguments(std::span<const std::string> arguments,
                                                         EvaluateCommand command);

/// What a command takes beside the options of a run and --config, by name.
[[nodiscard]] std::vector<OptionHelp> own_options(EvaluateCommand command);

}  // namespace rubato::app
