#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conduct.hpp"
#include "experiment_folder.hpp"
#include "run_result.hpp"
#include "runs/experiment/answer/answer.hpp"
#include "runs/experiment/design/design.hpp"

namespace rubato {

/// The result of a run. A run that has not ended is missing, and so is one whose results have been
/// damaged since; RunResult::reason then says how.
[[nodiscard]] RunResult result_of(const RunFiles& files, const Measure& measure);

/// The values that tuning has chosen, setting by setting.
[[nodiscard]] std::vector<std::string> taken_of(const std::vector<TuningAnswer>& tuning);

/// An experiment, as read from its folder.
struct RecordedExperiment {
  Design design;
  std::vector<TuningAnswer> tuning{};
  Answer answer;
};

[[nodiscard]] bool is_experiment(const std::filesystem::path& folder);
/// Whether the folder contains the answer, which is written once the runs have ended.
[[nodiscard]] bool has_answer(const std::filesystem::path& folder);

/// Reads the folder of an experiment, whether or not all of its runs have ended, and evaluates the
/// runs so far as conduct() does. Runs, locks and writes nothing. Throws Error if the design, its
/// data or a run that tunes cannot be read.
[[nodiscard]] RecordedExperiment read_experiment(const std::filesystem::path& folder);

}  // namespace rubato
