// The segments follow the chain of --from from the run's own folder to the first that is gone. That
// folder has the records of all steps, also of those before a fork, so going back is verified
// against one file: the file itself by the SHA-256 in the summary, a repeated step by its line, a
// state by the digest of its step, the weights at the end by the summary. An origin's folder gives
// options and checkpoints.

#include "run_history.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "loop/train/record_schemas.hpp"
#include "loop/train/step/state_digest.hpp"
#include "resumption.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/toml.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/report/metrics_file.hpp"

namespace rubato {

namespace fs = std::filesystem;

namespace {

bool are_one(const fs::path& folder, const fs::path& other) {
  return fs::weakly_canonical(folder) == fs::weakly_canonical(other);
}

RecordedSteps::Numbers numbers_of(const StepRecord& step) {
  return {
      .batch_size = step.plan.batch_size, .learning_rate = step.learning_rate, .loss = step.loss};
}

}  // namespace

RecordedSteps recorded_steps(const fs::path& run) {
  const fs::path file = run / RunFolder::kMetrics;
  require_metrics(file);
  RecordedSteps steps;
  GrowingLines lines(file);
  read_metrics(lines, [&](const MetricsLine& line) {
    if (line.kind() != step_schema().name) return;
    const StepRecord step = line.record(step_schema());
    // The step in which a run diverged was not taken.
    if (!step.applied && !step.skipped) return;
    steps.count = step.plan.index.value() + 1;
    // Each step comes after the others, of which there may be a million.
    steps.numbers.insert_or_assign(steps.numbers.end(), steps.count, numbers_of(step));
    if (step.digest) steps.digests.insert_or_assign(steps.digests.end(), steps.count, *step.digest);
  });
  return steps;
}

std::optional<RecordedSteps::Numbers::Difference> RecordedSteps::Numbers::difference_from(
    const Numbers& other, bool exact) const {
  const std::array all{
      Difference{"batch", static_cast<double>(batch_size), static_cast<double>(other.batch_size)},
      Difference{"loss", loss, other.loss},
      Difference{"learning rate", learning_rate, other.learning_rate}};
  const auto* const end = exact ? all.end() : all.begin() + 1;
  // Metrics have null for all that are not finite.
  const auto* const found = std::find_if(all.begin(), end, [](const Difference& of) {
    return of.here != of.there && (std::isfinite(of.here) || std::isfinite(of.there));
  });
  return found == end ? std::nullopt : std::optional(*found);
}

RunConfiguration configuration_of_run(const fs::path& run, const RunConfiguration& around) {
  if (!is_there(run / RunFolder::kConfiguration)) {
    throw_error("no run in '{}'; accepted: the folder of one", run.string());
  }
  return read_configuration(run / RunFolder::kConfiguration, {}, around);
}

MetricsCheck::MetricsCheck(const fs::path& run, std::int64_t ended_after, std::string sha256)
    : metrics_(run / RunFolder::kMetrics), ended_after_(ended_after), sha256_(std::move(sha256)) {
  if (!sha256_.empty()) {
    found_ =
        std::async(std::launch::async, [file = metrics_] { return Sha256::hex_of_file(file); });
  }
}

std::string MetricsCheck::changed(std::int64_t count) {
  // A run that has continued keeps the summary until it ends again.
  if (count > ended_after_ || sha256_.empty() || found_.get() == sha256_) return {};
  std::string changed = fmt::format("{} is not the file that the run wrote, by the SHA-256 in {}",
                                    metrics_.string(), RunFolder::kSummary);
  if (count != ended_after_) changed += fmt::format("; it has {} of {} steps", count, ended_after_);
  return changed;
}

namespace {

// Reads nothing but the run that a run comes from.
RunConfiguration origin_of(const fs::path& run) {
  const fs::path file = run / RunFolder::kConfiguration;
  RunConfiguration configuration;
  for (const TomlEntry& entry : parse_toml(configuration_text(file), file.string())) {
    if (entry.key == "from") set_option(configuration, entry);
  }
  configuration.from = map_fork_point(configuration.from.text(),
                                      [&](const fs::path& inside) { return run / inside; });
  return configuration;
}

}  // namespace

RunHistory::RunHistory(const fs::path& run, RunConfiguration own)
    : RunHistory(run, std::move(own), [this](const fs::path& origin) {
        const RunConfiguration& last = segments_.back().configuration;
        RunConfiguration configuration = configuration_of_run(origin, last);
        configuration.threads = last.threads;
        configuration.kernels = last.kernels;
        return configuration;
      }) {}

RunHistory::RunHistory(const fs::path& run, RunConfiguration own, const Reader& read) {
  segments_.push_back({.run = run, .configuration = std::move(own)});
  const auto is_known = [this](const fs::path& folder) {
    // A fork that was moved to the place of its origin names itself.
    return std::ranges::any_of(
        segments_, [&](const RunSegment& segment) { return are_one(segment.run, folder); });
  };
  while (!segments_.front().configuration.from.empty()) {
    const ForkPoint from = *segments_.front().configuration.from;
    segments_.front().begin = from.step;
    if (!is_there(from.run / RunFolder::kConfiguration) || is_known(from.run)) break;
    RunConfiguration configuration = read(from.run);
    segments_.insert(segments_.begin(),
                     {.run = from.run, .configuration = std::move(configuration)});
  }
  // A fork of a fork may begin before that one does.
  for (std::size_t i = segments_.size() - 1; i-- > 0;) {
    if (segments_[i].begin <= segments_[i + 1].begin) continue;
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

RunHistory RunHistory::of(const fs::path& run, const RunConfiguration& around) {
  return RunHistory(run, configuration_of_run(run, around)).to_repeat(around);
}

RunHistory RunHistory::outline(const fs::path& run) {
  return {run, origin_of(run), origin_of};
}

RunHistory RunHistory::to_repeat(const RunConfiguration& around) const {
  return with([&](RunConfiguration& segment) {
    segment.threads = around.threads;
    segment.kernels = around.kernels;
    segment.checkpoint_every = "never";
    segment.timeline = "";
  });
}

std::size_t RunHistory::of_step(std::int64_t step) const {
  const auto after = std::ranges::find_if(
      segments_, [&](const RunSegment& segment) { return segment.begin >= step; });
  if (after != segments_.begin()) return static_cast<std::size_t>(after - segments_.begin()) - 1;
  require_beginning();
  return 0;
}

std::int64_t RunHistory::end_of(std::size_t segment, std::int64_t last) const {
  return segment + 1 < segments_.size() ? std::min(segments_[segment + 1].begin, last) : last;
}

std::int64_t RunHistory::shared_with(const RunHistory& other) const {
  std::int64_t shared = 0;
  const std::size_t count = std::min(segments_.size(), other.segments_.size());
  for (std::size_t i = 0; i < count && are_one(segments_[i].run, other.segments_[i].run); ++i) {
    shared = other.end_of(i, end_of(i));
  }
  return shared;
}

RunHistory RunHistory::with(const std::function<void(RunConfiguration&)>& change) const {
  RunHistory changed = *this;
  for (RunSegment& segment : changed.segments_) change(segment.configuration);
  return changed;
}

std::vector<RunCheckpoint> RunHistory::checkpoints() const {
  std::vector<RunCheckpoint> found;
  for (std::size_t i = segments_.size(); i-- > 0;) {
    const RunSegment& segment = segments_[i];
    for (fs::path& file : CheckpointFolder(segment.run / RunFolder::kCheckpoints, 1).files()) {
      const std::int64_t step = CheckpointFolder::steps_of(file).value_or(0);
      if (step < segment.begin || step > end_of(i)) continue;
      const bool begins = !segment.configuration.from.empty() && step == segment.begin;
      found.push_back({.file = std::move(file), .step = step, .segment = i, .begins_fork = begins});
    }
  }
  return found;
}

const RunHistory::Records& RunHistory::records() const {
  if (records_ != nullptr) return *records_;
  Records found;
  const fs::path file = run() / RunFolder::kSummary;
  if (is_there(file)) found.summary = read_summary(file);
  MetricsCheck check(run(), found.summary ? found.summary->result.steps : 0,
                     found.summary ? found.summary->metrics_sha256 : std::string());
  found.steps = recorded_steps(run());
  found.changed = check.changed(found.steps.count);
  records_ = std::make_shared<const Records>(std::move(found));
  return *records_;
}

void RunHistory::require_unchanged() const {
  require_not_moved(run());
  if (!changed_metrics().empty()) {
    throw_error("{}; accepted: a run whose records are as it wrote them", changed_metrics());
  }
}

void RunHistory::require_state_of(const RunCheckpoint& checkpoint, const State& state) const {
  const std::int64_t step = checkpoint.step;
  const RunSegment& segment = segments_[checkpoint.segment];
  const auto was = steps().numbers.find(step);
  if (segment.run != run() && was != steps().numbers.end()) {
    const auto there = recorded_steps(segment.run).numbers;
    const auto is = there.find(step);
    if (is == there.end() || is->second.difference_from(was->second, segment.configuration.exact)) {
      throw_error("{} is another run than the origin of {}, by its step {}; accepted: the origin",
                  segment.run.string(), run().string(), step);
    }
  }
  const auto recorded = steps().digests.find(step);
  if (checkpoint.begins_fork || recorded == steps().digests.end()) return;
  const Digest digest = digest_of_state(state);
  if (digest == recorded->second) return;
  throw StepDiffers(
      fmt::format("{}: the state has the digest {}, and step {} had {}: the file has changed; "
                  "accepted: the run without this file",
                  checkpoint.file.string(), digest.to_text(), step, recorded->second.to_text()));
}

ComputedBy RunHistory::computed_by(std::int64_t step) const {
  if (step <= segments_.front().begin) return {};
  return rubato::computed_by(segments_[of_step(step)].run, step);
}

std::string RunHistory::reason_of(std::int64_t step, const ComputedBy& here) const {
  const ComputedBy then = computed_by(step);
  std::vector<std::string> facts;
  for (const NamedDifference& fact : differing_facts(then, here)) {
    facts.push_back(fmt::format("{} was {} and is {}", fact.name, fact.texts[0], fact.texts[1]));
  }
  // A checkpoint alone does not tell the version of rubato.
  const std::string reason =
      !facts.empty() ? fmt::format("what computes it differs ({}), or", fmt::join(facts, ", "))
      : then.contains("versions.rubato") ? "the same kernels and versions have computed it, so"
                                         : "another version or other kernels have computed it, or";
  return reason + " its files or its data have changed";
}

std::string RunHistory::difference_of(const StepRecord& step, bool exact,
                                      const ComputedBy& here) const {
  const std::int64_t count = step.plan.index.value() + 1;
  const auto text = [&](std::string_view what, const auto& is, const auto& was) {
    return fmt::format("{}: step {} has the {} {} when it is repeated, and had {}; {}",
                       run().string(), count, what, is, was, reason_of(count, here));
  };
  const auto numbers = steps().numbers.find(count);
  const auto other = numbers == steps().numbers.end()
                         ? std::nullopt
                         : numbers_of(step).difference_from(numbers->second, exact);
  if (other) return text(other->name, other->here, other->there);
  const auto digest = steps().digests.find(count);
  if (digest == steps().digests.end() || !step.digest || *step.digest == digest->second) return {};
  return text("digest", step.digest->to_text(), digest->second.to_text());
}

void RunHistory::require_weights(std::int64_t step, std::span<const NamedArray> parameters,
                                 const ComputedBy& here) const {
  const bool is_known = summary() && summary()->result.steps == step && summary()->end &&
                        summary()->end != RunEnd::diverged && segments_.back().configuration.exact;
  if (!is_known || sha256_of(parameters) == summary()->weights_sha256) return;
  throw StepDiffers(fmt::format("{}: its weights after step {} are not those of {}; {}",
                                run().string(), step, RunFolder::kSummary, reason_of(step, here)));
}

void RunHistory::require_step(std::int64_t step, std::string_view option) const {
  const std::int64_t count = steps().count;
  if (step <= count) return;
  throw_error("{}{} has {} steps; accepted: 0 to {}", option, run().string(), count, count);
}

std::string RunHistory::missing_beginning() const {
  const RunSegment& first = segments_.front();
  if (first.configuration.from.empty()) return {};
  const auto there = checkpoints();
  const std::string origin = first.configuration.from->run.string();
  return fmt::format("{}, the origin of {}, is gone or is another run; accepted: {} in its place{}",
                     origin, first.run.string(), origin,
                     there.empty()
                         ? ""
                         : fmt::format("; steps from {} on can be forked and repeated without it",
                                       there.back().step));
}

void RunHistory::require_beginning() const {
  const std::string missing = missing_beginning();
  if (!missing.empty()) throw Error(missing);
}

}  // namespace rubato
