#pragma once

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "run/runs.hpp"
#include "runs/config/run_option.hpp"
#include "runs/run/fork.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

/// The run with other options, as in "lr=0.02 log-noise=true".
[[nodiscard]] inline RunConfiguration with_options(RunConfiguration run,
                                                   const std::string& options) {
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    const std::size_t end = word.find('=');
    run_option(word.substr(0, end)).set(run, word.substr(end + 1));
  }
  return run;
}

/// Runs that a test trains without libtorch, each in the folder of its name.
class RunsInFolders : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path folder(const std::string& name) const {
    return temp_.path() / name;
  }
  /// "FOLDER@STEP".
  [[nodiscard]] std::string point(const std::string& name, std::int64_t step) const {
    return fmt::format("{}@{}", folder(name).string(), step);
  }
  RunOutcome train(const std::string& name, const RunConfiguration& run) const {
    return outcome_of(run, RunLocation::create(folder(name)));
  }
  /// Trains the fork of the run `of` after a step.
  RunOutcome fork(const std::string& name, RunConfiguration run, const std::string& of,
                  std::int64_t step) const {
    run.from = point(of, step);
    return outcome_of(run, location_of_fork(folder(name), run, replay_));
  }

  const TempFolder temp_;
  const ReplayParts replay_{.load = dense_workload, .report = [](const std::string&) {}};
};

}  // namespace rubato::test
