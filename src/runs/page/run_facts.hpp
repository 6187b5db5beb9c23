#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "html.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

/// The value of an option according to a run's summary or else its configuration; empty if neither
/// has it.
[[nodiscard]] std::string option_of(const ThinnedRun& run, const std::string& option);

/// The run's position on an axis, according to its summary or else its metrics.
[[nodiscard]] double progress_of(const ThinnedRun& run, Axis axis);

/// The final value of `test`, such as "test_loss": from the summary, or from the last epoch so far
/// if there is no summary.
[[nodiscard]] std::optional<double> final_value(const ThinnedRun& run, const std::string& test);
/// The best test accuracy over all epochs, as a share.
[[nodiscard]] std::optional<double> best_accuracy(const ThinnedRun& run);

/// One of "complete" (which includes a run that used up its budget), "diverged" and "not ended", or
/// the reason why it ended early.
[[nodiscard]] std::string end_of(const ThinnedRun& run);

/// A column of the table of runs.
struct RunFact {
  std::string heading{};
  std::string (*value)(const ThinnedRun& run) = nullptr;
  /// Whether its values are numbers.
  bool is_number = false;
  /// Whether it describes what was trained; an option that all runs share is stated once.
  bool is_option = false;
};
[[nodiscard]] const std::vector<RunFact>& run_facts();

/// The contents of a summary.json, with the names of its schema and in their order; empty if
/// `summary` is not an object.
[[nodiscard]] Rows summary_rows(const nlohmann::json& summary);

}  // namespace rubato::page
