#include "page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "compared/experiment_page.hpp"
#include "recorded/recorded_run.hpp"
#include "recorded/runs_page.hpp"
#include "runs/experiment/conduct/recorded_experiment.hpp"

namespace rubato::page {

namespace {

// Of all runs together: what a page of less than 5 MB has room for.
constexpr std::size_t kColumnsOfRuns = 6500;
constexpr std::size_t kMostColumnsOfRun = 480;

}  // namespace

std::size_t columns_of(std::size_t runs) {
  return std::min(kMostColumnsOfRun, kColumnsOfRuns / runs / 2 * 2);
}

Document document_of_folders(const std::vector<std::string>& folders) {
  if (folders.size() > kMostRuns) {
    throw Error(fmt::format("{} runs; accepted: up to {}, or the folder of an experiment",
                            folders.size(), kMostRuns));
  }
  std::vector<RecordedRun> runs;
  for (const std::string& folder : folders) {
    if (!is_experiment(folder)) {
      runs.push_back(read_run(folder, columns_of(folders.size())));
    } else if (folders.size() == 1) {
      return document_of_experiment(read_experiment(folder), folder);
    } else {
      throw Error(fmt::format(
          "{}: is an experiment, beside other folders; accepted: one experiment alone, or runs",
          folder));
    }
  }
  return document_of_runs(runs);
}

}  // namespace rubato::page
