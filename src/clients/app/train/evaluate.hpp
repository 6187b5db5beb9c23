#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "loop/data/tables/table_encoding.hpp"

namespace rubato::app {

/// `rubato eval` and `rubato predict`.
enum class EvaluateCommand { evaluate, predict };

/// The arguments of both commands.
struct EvaluateArguments {
  /// The configuration as evaluation_configuration() returns it.
  RunConfiguration run;
  /// The folder of the run that is evaluated; empty without one.
  std::filesystem::path folder;
  /// True if the user has named other data than those of the run.
  bool other_data = false;
  /// Used by `rubato eval` alone.
  bool json = false;
  /// Used by `rubato predict` alone, which writes CSV to stdout if `out` is empty.
  Prediction what = Prediction::outputs;
  UnseenCategories unseen = UnseenCategories::refuse;
  std::optional<std::filesystem::path> out;

  friend bool operator==(const EvaluateArguments&, const EvaluateArguments&) = default;
};

/// Reads the arguments after the name of the command. If the first of them is the folder of a run,
/// its configuration gives the defaults. Throws HelpAsked, and Error for a mistake of the user;
/// data, model and weights are not read.
[[nodiscard]] EvaluateArguments parse_evaluate_arguments(std::span<const std::string> arguments,
                                                         EvaluateCommand command);

/// The options of a command other than those of a run and --config, by name.
[[nodiscard]] std::vector<OptionHelp> own_options(EvaluateCommand command);

/// `rubato eval`: prints the loss and the accuracy of the model on the test set. Throws Error for
/// data, a model or weights that cannot be read or do not fit.
ExitCode evaluate(const EvaluateArguments& arguments, const LoadWorkload& load);

/// `rubato predict`: writes the outputs of the model for the samples. Throws Error in the same
/// cases, and OutputError if the file cannot be written.
ExitCode predict(const EvaluateArguments& arguments, const LoadWorkload& load);

}  // namespace rubato::app
