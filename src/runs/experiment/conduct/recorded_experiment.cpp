#include "recorded_experiment.hpp"

#include <span>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "base/core/text/printable.hpp"
#include "data_facts.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/runs.hpp"

namespace rubato {

namespace {

struct RecordedRuns {
  std::vector<RunResult> results;
  std::vector<Measure> measures;
};

RecordedRuns read_runs(const std::filesystem::path& folder, std::span<const PlannedRun> runs,
                       bool tuning, DataFacts& facts) {
  RecordedRuns read;
  for (const PlannedRun& run : runs) {
    read.measures.push_back(facts.measure_of(run.configuration));
    read.results.push_back(result_of(files_of(folder, run.name, tuning), read.measures.back()));
  }
  return read;
}

std::vector<TuningAnswer> read_tuning(const std::filesystem::path& folder, const Design& design,
                                      DataFacts& facts) {
  const std::vector<TuningCell> cells = tuning_of(design);
  std::vector<PlannedRun> runs;
  for (const TuningCell& cell : cells) runs.insert(runs.end(), cell.runs.begin(), cell.runs.end());
  const RecordedRuns read = read_runs(folder, runs, /*tuning=*/true, facts);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (read.results[i].end != RunEnd::missing) continue;
    throw Error(fmt::format(
        "{}: the run {}, which tunes {}, has not ended; accepted: the experiment after rubato "
        "compare --resume {}",
        folder.string(), runs[i].name, design.tuning->option, shell_quoted(folder.string())));
  }
  return tuning_answer(design, cells, plan_of(design).settings, read.results, read.measures);
}

}  // namespace

RunResult result_of(const RunFiles& files, const Measure& measure) {
  switch (state_of(files)) {
    case RunState::ended:
      try {
        return read_result(files.folder, measure);
      } catch (const Error& error) {
        return {.end = RunEnd::missing, .reason = error.what()};
      }
    case RunState::failed:
      return read_failure(files.failed);
    case RunState::begun:
    case RunState::absent:
      break;
  }
  return {};
}

std::vector<std::string> taken_of(const std::vector<TuningAnswer>& tuning) {
  std::vector<std::string> taken;
  taken.reserve(tuning.size());
  for (const TuningAnswer& tuned : tuning) taken.push_back(tuned.values[tuned.best].value);
  return taken;
}

bool is_experiment(const std::filesystem::path& folder) {
  return is_there(folder / kDesignFile);
}

bool has_answer(const std::filesystem::path& folder) {
  return is_there(folder / kAnswerFile);
}

RecordedExperiment read_experiment(const std::filesystem::path& folder) {
  RecordedExperiment read{.design = read_design(folder / kDesignFile).design, .answer = {}};
  DataFacts facts;
  if (read.design.tuning) read.tuning = read_tuning(folder, read.design, facts);
  const ExperimentPlan plan = plan_of(read.design, taken_of(read.tuning));
  const auto [results, measures] = read_runs(folder, plan.runs, /*tuning=*/false, facts);
  read.answer = answer_of(plan, results, measures, read.design.target);
  return read;
}

}  // namespace rubato
