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
  /// The option whose value it is, which describes what was trained; a value that all runs share is
  /// stated once. Empty for a result.
  std::string option{};
  std::string (*value)(const ThinnedRun& run) = nullptr;
  /// Whether its values are numbers.
  bool is_number = false;

  [[nodiscard]] std::string of(const ThinnedRun& run) const;
};
[[nodiscard]] const std::vector<RunFact>& run_facts();

/// The contents of a summary.json, with the names of its schema and in their order; empty if
/// `summary` is not an object.
[[nodiscard]] Rows summary_rows(const nlohmann::json& summary);

}  // namespace rubato::page
