// location_of() maps the three ways to name a folder to the factories of RunLocation: --out to
// create(), --out with --continue to continue_in(), and --resume to resume(). A location that is
// not possible is refused before data are loaded. The second half has warnings, which never end a
// run; they follow from the options and the steps before training, or from a result, and each is a
// function that returns its line or nothing.

#include "run_request.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <variant>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/machine/kernels.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/readings.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {

namespace {

using std::filesystem::path;

// The nearest folder above `folder` that exists.
path existing_parent(const path& folder) {
  path parent = absolute_path(folder).parent_path();
  while (parent.has_relative_path() && !is_there(parent)) {
    parent = parent.parent_path();
  }
  return parent;
}

constexpr const char* kAcceptedFolder = "accepted: a folder that does not exist yet";

// Throws Error unless the folder is there or can be made. Another process may make it meanwhile.
void require_room(const path& folder) {
  if (folder.empty()) throw_error("--out: '' is empty; {}", kAcceptedFolder);
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return;
  const path parent = existing_parent(folder);
  if (!std::filesystem::is_directory(parent, ignored)) {
    throw_error("--out: cannot make '{}', '{}' is not a folder; {}", folder.string(),
                parent.string(), kAcceptedFolder);
  }
  if (access(parent.c_str(), W_OK | X_OK) != 0) {
    throw_error("--out: cannot make '{}', '{}' may not be written to; {}", folder.string(),
                parent.string(), kAcceptedFolder);
  }
}

}  // namespace

void require_one_folder(const RunRequest& request) {
  if (request.continues && (request.resume || !request.out)) {
    throw Error(
        "--continue: it begins the run in a folder, or continues it there; accepted: with --out "
        "FOLDER, "
        "without --resume");
  }
  if (request.resume && request.given.contains("from")) {
    throw Error("--from: a run that is resumed has begun; accepted: one of them");
  }
  if (!request.resume || !request.out) return;
  throw Error("--out: a resumed run stays in its folder; accepted: --resume alone");
}

bool is_complete(const RunRequest& request) {
  const path file = request.continues ? *request.out / RunFolder::kSummary : path();
  if (file.empty() || !is_there(file)) return false;
  try {
    if (read_summary(file).result.epochs < request.run.epochs) return false;
  } catch (const Error&) {
    return false;
  }
  const RunConfiguration before =
      read_configuration(*request.out / RunFolder::kConfiguration, {}, request.run);
  require_resumable(with_paths_from(*request.out, before),
                    with_paths_from(*request.out, request.run), ResumeFrom::checkpoint);
  return true;
}

void refuse_fork_of_hosts() {
  throw Error(
      "--from: several hosts cannot begin a fork; accepted: without --hosts, and a run "
      "of hosts that resumes it");
}

RunLocation location_of(const RunRequest& request, const Report& report) {
  require_one_folder(request);
  if (request.resume) {
    RunLocation location = RunLocation::resume(*request.resume, request.run, request.checkpoint);
    for (const std::string& why : location.rejected()) report(why);
    return location;
  }
  if (!request.out) return {};
  // A fork has nothing to continue from before its folder is there.
  if (request.continues && (request.run.from.empty() || is_there(*request.out))) {
    require_room(*request.out);
    RunLocation location = RunLocation::continue_in(*request.out, request.run, [&] {
      report(fmt::format("{}: another process works in this run folder; waiting for it to end",
                         request.out->string()));
    });
    for (const std::string& why : location.rejected()) report(why);
    return location;
  }
  if (!request.run.from.empty()) refuse_fork_of_hosts();
  check_run_folder(*request.out);
  return RunLocation::create(*request.out);
}

void check_run_folder(const path& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(folder, ignored))) {
    throw_error("--out: '{}' exists already; {}", folder.string(), kAcceptedFolder);
  }
  require_room(folder);
}

path default_run_folder(std::chrono::system_clock::time_point now) {
  const std::string name = fmt::format("runs/{:%Y-%m-%dT%H-%M-%SZ}",
                                       fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  return unused_path(name);
}

void ask_to_resume(RunRequest& request, const std::string& text) {
  const path file(text);
  request.resume = file;
  request.checkpoint.reset();
  if (file.extension() != ".safetensors") return;
  const path folder = file.parent_path();
  // If the name has too few parts, the folders are relative to the working folder.
  request.resume = folder.empty() || folder == "." ? path("..")
                   : folder.has_parent_path()      ? folder.parent_path()
                                                   : path(".");
  request.checkpoint = file;
}

namespace {

// The batch size of all steps; empty if they differ, or training decides it.
std::optional<std::int64_t> only_batch_size(const RunConfiguration& run, const RunSteps& steps) {
  const Trace* const trace = std::get_if<Trace>(&steps);
  if (trace == nullptr || has_batch_policy(run)) return std::nullopt;
  const std::int64_t first = trace->steps().front().batch_size;
  const bool same = std::ranges::all_of(
      trace->steps(), [first](const TraceStep& step) { return step.batch_size == first; });
  return same ? std::optional(first) : std::nullopt;
}

// Returns "lr 0.05", unless the rate depends on gradients.
std::string rate_of(Rule& rule, const RunConfiguration& run, std::int64_t batch) {
  const RuleNeeds needs = rule.needs();
  if (needs.group_norms || needs.parameter_norms) return "a rate of its own";
  const Rates rates = rule.rates({.batch_size = batch,
                                  .minibatch_size = run.minibatch,
                                  .reference_batch_size = run.reference_batch,
                                  .base_learning_rate = run.learning_rate});
  return fmt::format("lr {:.6g}", rates.learning_rate);
}

}  // namespace

std::optional<std::string> idle_cores(const RunSteps& steps, const RunConfiguration& run) {
  if (!cores_of(steps, run).all_said) return std::nullopt;
  return fmt::format("--cores {} does nothing: {} says how many there are in every step", run.cores,
                     source_of(steps));
}

std::vector<std::string> idle_arguments(const RunRequest& request, const RunSteps& steps,
                                        bool redrawn) {
  const RunConfiguration& run = request.run;
  std::vector<std::string> lines;
  const auto cores = idle_cores(steps, run);
  if (cores && request.given.contains("cores")) lines.push_back(*cores);
  const std::int64_t most = cores_of(steps, run).most;
  // Fewer idle ones take no time that can be seen.
  constexpr std::int64_t kManyIdle = 100'000;
  const std::int64_t minibatches =
      minibatches_of(make_step_source(run, steps, 0)->max_batch(), run.minibatch);
  if (most - minibatches >= kManyIdle) {
    lines.push_back(fmt::format(
        "of {} cores at most {} compute, one for each minibatch of a step; the others only take "
        "time",
        most, minibatches));
  }
  for (const Straggler& straggler : *run.straggler) {
    if (straggler.core.value() < most) continue;
    lines.push_back(fmt::format("--straggler core={} does nothing: the cores are 0 to {}",
                                straggler.core.value(), most - 1));
  }
  if (auto bound = openmp_binding()) lines.push_back(*std::move(bound));
  if (redrawn && request.given.contains("log-steps")) {
    lines.push_back(fmt::format(
        "--log-steps {} does nothing on a terminal, where a bar shows every step", run.log_steps));
  }
  return lines;
}

std::optional<std::string> scaled_rate(const RunRequest& request, const RunSteps& steps) {
  const RunConfiguration& run = request.run;
  if (!request.given.contains("lr") || request.given.contains("ref-batch")) return std::nullopt;
  // The user's own rules are called only in steps.
  const std::vector<std::string_view> built_in = rule_names();
  if (std::ranges::find(built_in, run.rule->names().front()) == built_in.end()) return std::nullopt;
  const std::optional<std::int64_t> batch = only_batch_size(run, steps);
  const auto rule = run.rule->make();
  if (!batch || *batch == run.reference_batch || !rule->follows_batch_size()) return std::nullopt;
  return fmt::format(
      "--lr {0} is for batch {1}: rule {2} takes steps of batch {3} with {4}\n"
      "with --ref-batch {3} they are taken with lr {0}",
      run.learning_rate, run.reference_batch, run.rule.text(), *batch, rate_of(*rule, run, *batch));
}

std::optional<std::string> unwatchable(const RunConfiguration& run, const EpochRecord& epoch) {
  const WatchedMetric watched = watched_metric(run);
  if (watched != Metric::test_accuracy || !epoch.test || epoch.test->accuracy) return std::nullopt;
  std::vector<std::string> options;
  if (run.patience > 0) options.push_back(fmt::format("--patience {}", run.patience));
  if (run.keep_best) options.emplace_back("--keep-best");
  if ((*run.schedule)->watches()) options.push_back("--schedule " + run.schedule.text());
  if (options.empty()) return std::nullopt;
  return fmt::format(
      "{}: the outputs do not tell the classes apart, and have no accuracy to watch; accepted: "
      "--watch test-loss",
      fmt::join(options, ", "));
}

std::optional<std::string> missed_target(const RunConfiguration& run, const TrainResult& result) {
  if (!run.target_accuracy) return std::nullopt;
  const auto& [percent, best] = *run.target_accuracy;
  const auto last = result.final_test ? result.final_test->accuracy : std::nullopt;
  if (result.final_test && !last) {
    return fmt::format(
        "--target-accuracy {} %: the outputs do not tell the classes apart, and have no accuracy",
        percent);
  }
  const double accuracy = (best ? result.best_test_accuracy : last).value_or(0) * 100;
  if (accuracy >= percent) return std::nullopt;
  return fmt::format("{}test accuracy {:.2f} % is below --target-accuracy {} %",
                     best ? "the best " : "", accuracy, percent);
}

std::optional<std::string> ended_schedule(const RunConfiguration& run, const TrainResult& result,
                                          std::int64_t samples) {
  const auto schedule = run.schedule->make(watched_metric(run));
  const auto end = schedule->end();
  if (!end || result.steps == 0) return std::nullopt;
  const double position = position_of({.epochs = result.epochs,
                                       .epoch_samples = result.part ? result.part->samples : 0,
                                       .dataset_size = samples,
                                       .steps = result.steps,
                                       .samples = result.samples,
                                       .iterations = result.iterations},
                                      run.schedule_unit);
  // The last step began here if it was as long as the others.
  const double last = position - position / static_cast<double>(result.steps);
  if (last <= *end) return std::nullopt;
  return fmt::format(
      "--schedule {}: it came to its end after {} of {:.6g} {}, with a factor of {:.3g}",
      run.schedule.text(), *end, position, choice_name(kScheduleUnits, run.schedule_unit),
      schedule->factor(*end));
}

}  // namespace rubato
