#include "recorded_run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// Seconds without news after which a run is shown as silent.
constexpr double kSilence = 5;

}  // namespace

RecordedRun::RecordedRun(fs::path folder)
    : folder_(std::move(folder)), lines_(folder_ / RunFolder::kMetrics) {}

void RecordedRun::read_configuration_file() {
  // Only the options for the length of the run are read, because some others load the files that
  // they name.
  constexpr std::array<std::string_view, 5> kLengths{"epochs", "iterations", "samples", "hours",
                                                     "money"};
  const fs::path file = folder_ / RunFolder::kConfiguration;
  if (!config_.has_changed(file) || !config_.written) return;
  RunConfiguration lengths;
  for (const TomlEntry& entry : parse_toml(configuration_text(file), file.string())) {
    if (std::ranges::find(kLengths, entry.key) != kLengths.end()) set_option(lengths, entry);
  }
  view_.epochs = lengths.epochs;
  budget_ = budget_of(lengths);
}

bool RecordedRun::WholeFile::has_changed(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  const auto now = error ? std::nullopt : std::optional(time);
  return std::exchange(written, now) != now;
}

void RecordedRun::begin_anew() {
  const std::int64_t epochs = view_.epochs;
  view_ = {};
  view_.epochs = epochs;
  spent_ = {};
  whole_epochs_ = samples_of_whole_ = 0;
  seconds_ = recent_samples_ = recent_seconds_ = 0;
}

void RecordedRun::update() {
  // A run writes its summary last: metrics that are read after it was there are all there are. That
  // it has changed counts once they are read, which may fail.
  WholeFile summary = summary_;
  const bool summary_has_changed = summary.has_changed(folder_ / RunFolder::kSummary);
  read_configuration_file();
  try {
    read_metrics();
  } catch (const Error&) {
    // A run that resumed from a checkpoint at this very moment has cut the file while it was read.
    lines_.rewind();
    begin_anew();
    read_metrics();
  }
  summary_ = summary;
  if (summary_has_changed) read_summary();
  conclude();
}

void RecordedRun::read_metrics() {
  rubato::read_metrics(
      lines_, [this] { begin_anew(); },
      [this](const MetricsLine& line) {
        if (line.kind() == step_schema().name) take(line.record(step_schema()));
        if (line.kind() == epoch_schema().name) take(line.record(epoch_schema()));
      });
}

void RecordedRun::take(const StepRecord& step) {
  constexpr double kKept = 0.9;
  view_.note(step, view_.samples + step.plan.batch_size);
  view_.epoch = step.epoch.value() + 1;
  seconds_ += step.seconds.wall;
  recent_samples_ = kKept * recent_samples_ + static_cast<double>(step.plan.batch_size);
  recent_seconds_ = kKept * recent_seconds_ + step.seconds.wall;
  spent_ = {.iterations = step.iterations, .samples = view_.samples, .time = step.time};
}

void RecordedRun::take(const EpochRecord& epoch) {
  view_.note(epoch);
  seconds_ += epoch.test_seconds;
  if (!epoch.whole) return;
  whole_epochs_ = epoch.epoch.value() + 1;
  samples_of_whole_ = view_.samples;
  view_.epoch = std::min(whole_epochs_ + 1, view_.epochs);
}

void RecordedRun::read_summary() {
  view_.phase = RunView::Phase::training;
  view_.stopped.clear();
  if (!summary_.written) return;
  const RunSummary summary = rubato::read_summary(folder_ / RunFolder::kSummary);
  view_.phase = RunView::Phase::ended;
  view_.phase_seconds = summary.wall_seconds;
  const std::string reason = printable(summary.stopped);
  view_.stopped = reason.substr(0, reason.find('\n'));
}

void RecordedRun::conclude() {
  if (recent_seconds_ > 0) view_.rate = recent_samples_ / recent_seconds_;
  view_.done.reset();
  view_.seconds_left.reset();
  // The length of an epoch is known once there is a whole one.
  std::vector<ShareDone> measures;
  const auto add = [&](double share) { measures.push_back({.all = share, .here = share}); };
  if (whole_epochs_ > 0) {
    const double each = static_cast<double>(samples_of_whole_) / static_cast<double>(whole_epochs_);
    const double all = each * static_cast<double>(view_.epochs);
    add(all > 0 ? static_cast<double>(view_.samples) / all : 1);
  }
  if (budget_ != Budget{}) add(share_spent(budget_, spent_));
  if (!measures.empty()) {
    const Remaining remaining = remaining_of(measures, seconds_);
    view_.done = remaining.done;
    if (remaining.done > 0) view_.seconds_left = remaining.seconds;
  }
  if (has_ended()) return;
  std::error_code error;
  const auto written = fs::last_write_time(lines_.file(), error);
  const std::chrono::duration<double> silence = fs::file_time_type::clock::now() - written;
  const bool silent = !error && silence.count() > kSilence;
  view_.phase = silent ? RunView::Phase::silent : RunView::Phase::training;
  view_.phase_seconds = silent ? silence.count() : 0;
}

}  // namespace rubato
