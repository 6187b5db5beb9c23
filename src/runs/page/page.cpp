#include "page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "runs/experiment/conduct/recorded_experiment.hpp"
#include "runs/page/compared/experiment_page.hpp"
#include "runs/page/runs/runs_page.hpp"
#include "runs/page/runs/thinned_run.hpp"
#include "runs/recorded/found_runs.hpp"

namespace rubato::page {

namespace {

// Columns of all runs together, for a page of less than 5 MB.
constexpr std::size_t kColumnsOfRuns = 6500;
constexpr std::size_t kMostColumnsOfRun = 480;

}  // namespace

std::size_t columns_of(std::size_t runs) {
  return std::min(kMostColumnsOfRun, kColumnsOfRuns / runs / 2 * 2);
}

Document document_of_folders(const std::vector<std::string>& folders) {
  std::vector<FoundRun> found;
  for (const std::string& folder : folders) {
    if (is_experiment(folder)) {
      if (folders.size() == 1) return document_of_experiment(read_experiment(folder), folder);
      throw Error(fmt::format(
          "{}: is an experiment among other folders; accepted: one experiment alone, or runs",
          folder));
    }
    const std::vector<FoundRun> in_it = found_runs(folder);
    if (in_it.empty()) refuse_without_runs(folder);
    found.insert(found.end(), in_it.begin(), in_it.end());
  }
  if (found.size() > kMostRuns) {
    throw Error(fmt::format("{} runs; accepted: up to {}, or the folder of an experiment",
                            found.size(), kMostRuns));
  }
  std::vector<ThinnedRun> runs;
  runs.reserve(found.size());
  for (const FoundRun& run : found) {
    runs.push_back(read_run(run.folder.string(), columns_of(found.size())));
  }
  return document_of_runs(runs);
}

}  // namespace rubato::page
