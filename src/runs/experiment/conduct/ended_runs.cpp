// A run of another experiment is taken over by continuing its last state: `rubato train --resume`
// compares the data and the files of the run with those of the checkpoint, finds nothing left to
// train, and writes the results. So only what a resume would accept has to be compared here: the
// options, and the steps. RunPool compares the kernels and versions afterwards.

#include "ended_runs.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/state/sha256.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/run_description.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "worker.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// The trace is compared by its steps.
constexpr std::array<std::string_view, 4> kNotCompared{"trace", "threads", "checkpoint-every",
                                                       "keep"};

bool may_be_reused(const RunConfiguration& run) {
  return run.exact && !run.tensorboard && run.from.empty() && run.plugin->empty() &&
         own_rule_name(run.rule.text()).empty() &&
         run_option("timeline").text(run).value_or("").empty();
}

// The options of a run, with the content of the files that they name, as runs have copies of these.
// Data have no copies, and keep their names.
std::string key_of(const RunConfiguration& run) {
  std::string key;
  for (const RunOption& option : run_options()) {
    if (std::ranges::find(kNotCompared, option.name) != kNotCompared.end()) continue;
    std::string text = option.text(run).value_or("");
    if (option.map_path != nullptr && option.name != "data") {
      text = option.map_path(text, [](const fs::path& file) -> fs::path {
        std::error_code ignored;
        return fs::is_regular_file(file, ignored) ? fs::path(Sha256::hex_of_file(file)) : file;
      });
    }
    key += fmt::format("{}={}\n", option.name, text);
  }
  return key;
}

// The configuration in the folder of a run. Loads nothing.
RunConfiguration configuration_in(const fs::path& folder) {
  const fs::path file = folder / RunFolder::kConfiguration;
  return map_paths(parse_configuration(read_file(file), file.string()),
                   [&](const fs::path& path) { return folder / path; });
}

std::string steps_of(const RunConfiguration& run) {
  return what_is_followed(load_run_steps(run)).text;
}

}  // namespace

EndedRuns::EndedRuns(const fs::path& folder) {
  std::vector<fs::path> experiments = paths_in(folder);
  experiments.insert(experiments.begin(), folder);
  for (const fs::path& experiment : experiments) {
    for (const std::string_view kind : {kRunsFolder, kTuneFolder}) {
      for (const fs::path& run : paths_in(experiment / kind)) {
        if (!is_there(run / RunFolder::kSummary)) continue;
        try {
          RunConfiguration configuration = configuration_in(run);
          if (!may_be_reused(configuration)) continue;
          std::string key = key_of(configuration);
          runs_.emplace(std::move(key), Ended{run, std::move(configuration)});
        } catch (const Error&) {
          // It is a run of another version, or needs a plug-in.
        }
      }
    }
  }
}

std::optional<fs::path> EndedRuns::equal_to(const RunConfiguration& run,
                                            const Measure& measure) const {
  if (!may_be_reused(run)) return std::nullopt;
  const auto [first, last] = runs_.equal_range(key_of(run));
  for (auto found = first; found != last; ++found) {
    const auto& [folder, configuration] = found->second;
    try {
      // Throws Error for a run that is damaged.
      static_cast<void>(read_result(folder, measure));
      if (steps_of(configuration) == steps_of(run)) return folder;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace rubato
