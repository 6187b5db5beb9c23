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

/// What a run came to: one that has not ended is missing, and so is one whose results are none any
/// more, with the reason.
[[nodiscard]] RunResult result_of(const RunFiles& files, const Measure& measure);

/// The values that tuning has chosen, setting by setting.
[[nodiscard]] std::vector<std::string> taken_of(const std::vector<TuningAnswer>& tuning);

/// An experiment as its folder has it.
struct RecordedExperiment {
  Design design;
  std::vector<TuningAnswer> tuning{};
  Answer answer;
};

[[nodiscard]] bool is_experiment(const std::filesystem::path& folder);
/// Whether all that it has to say was written: its runs have ended.
[[nodiscard]] bool has_answer(const std::filesystem::path& folder);

/// Reads the folder of an experiment, whether or not all of its runs have ended, and works out what
/// they say so far, as conduct() does; nothing is run, locked or written. Throws Error where the
/// design, its data or a run that tunes cannot be read.
[[nodiscard]] RecordedExperiment read_experiment(const std::filesystem::path& folder);

}  // namespace rubato
