#pragma once

#include <optional>
#include <string>
#include <vector>

#include "thinned_run.hpp"

namespace rubato::page {

/// What the summary of a run says of an option, or its configuration; empty where neither does.
[[nodiscard]] std::string option_of(const ThinnedRun& run, const std::string& option);

/// How far it has come, as its summary says, or its metrics.
[[nodiscard]] double progress_of(const ThinnedRun& run, Axis axis);

/// The result of a run: that of its summary, or of its last epoch so far.
[[nodiscard]] std::optional<double> final_value(const ThinnedRun& run, const std::string& test);
/// The best test accuracy of all epochs, as a share.
[[nodiscard]] std::optional<double> best_accuracy(const ThinnedRun& run);

/// "complete", which a run is that used up its budget, "diverged", "not ended", or why it ended
/// early.
[[nodiscard]] std::string end_of(const ThinnedRun& run);

/// A column of the table of runs.
struct RunFact {
  std::string heading{};
  std::string (*value)(const ThinnedRun& run) = nullptr;
  /// Whether it is a number.
  bool is_number = false;
  /// Whether it says what was trained: of several runs that have the same it is said once.
  bool is_option = false;
};
[[nodiscard]] const std::vector<RunFact>& run_facts();

}  // namespace rubato::page
