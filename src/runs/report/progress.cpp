// Progress writes what it observes to one output, in one of three styles; the text of steps and
// epochs is made of the columns that have a label in the schema of records (shown_fields()). Epochs
// and samples are those of the run, while speeds and the remaining time are measured in this
// process: work done before a resume counts as done but not for the speed. The remaining time is
// that of the measure that is complete first, epochs or budget (remaining_of()).

#include "progress.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/loop/trainer.hpp>

#include "base/core/terminal/terminal.hpp"
#include "loop/train/record_schemas.hpp"

namespace rubato {

void EpochDetails::Range::take(double value, bool first) {
  least = first ? value : std::min(least, value);
  most = first ? value : std::max(most, value);
}

std::string EpochDetails::Range::text(const char* name) const {
  const std::string text = fmt::format("{} {:.4g}", name, least);
  return least == most ? text : fmt::format("{} to {:.4g}", text, most);
}

void EpochDetails::note(const StepRecord& step) {
  batch_.take(static_cast<double>(step.plan.batch_size), !any_);
  cores_.take(static_cast<double>(step.plan.cores), !any_);
  rate_.take(step.learning_rate, !any_);
  gain_.take(step.gain, !any_);
  any_ = true;
  seconds_.data += step.seconds.data;
  seconds_.compute += step.seconds.compute;
  seconds_.reduce += step.seconds.reduce;
  if (step.seconds.exchange) {
    seconds_.exchange = seconds_.exchange.value_or(0) + *step.seconds.exchange;
  }
  seconds_.update += step.seconds.update;
  seconds_.wall += step.seconds.wall;
}

std::string EpochDetails::take(const EpochRecord& epoch, int threads) {
  if (!any_) return {};
  const EpochDetails all = std::exchange(*this, {});
  const StepTiming& seconds = all.seconds_;
  const double whole = seconds.wall * threads;
  // All threads update together, and wait for other hosts together, so these times count for each
  // thread.
  const double update = seconds.update * threads;
  const double exchange = seconds.exchange.value_or(0) * threads;
  const double rest = whole - seconds.compute - seconds.data - seconds.reduce - exchange - update;
  const auto percent = [whole](double part) { return whole > 0 ? 100 * part / whole : 0; };
  return fmt::format(
      "  {}  {}  {}  {}\n"
      "  steps {:.3g} s of {} thread{}: compute {:.1f} %, data {:.1f} %, reduce {:.1f} %,{} update "
      "{:.1f} %, waiting {:.1f} %  tests {:.3g} s\n",
      all.batch_.text("batch"), all.cores_.text("cores"), all.rate_.text("lr"),
      all.gain_.text("gain"), seconds.wall, threads, threads == 1 ? "" : "s",
      percent(seconds.compute), percent(seconds.data), percent(seconds.reduce),
      seconds.exchange ? fmt::format(" exchange {:.1f} %,", percent(exchange)) : "",
      percent(update), percent(std::max(0.0, rest)), epoch.test_seconds);
}

namespace {

// Seconds between two drawings of the bar: smooth for the eye, at negligible cost.
constexpr double kRedraw = 0.08;
constexpr int kNarrowestBar = 4;

// Example: "  batch 256  lr 0.01  loss 0.6931".
std::string text_of(const std::vector<ShownField>& fields) {
  std::string text;
  for (const auto& [label, value, progress] : fields) text += fmt::format("  {} {}", label, value);
  return text;
}

}  // namespace

ProgressOut progress_on(std::FILE* out, ProgressStyle style) {
  const auto write = [out](std::string_view text) {
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
    if (std::fflush(out) == 0 && written) return 0;
    return errno == 0 ? EIO : errno;
  };
  return {.write = write, .descriptor = fileno(out), .style = style};
}

Progress::Progress(ProgressOut out, const ProgressOptions& options)
    : out_(std::move(out)), options_(options), bar_([this](std::string_view text) { send(text); }) {
  if (out_.style != ProgressStyle::view) return;
  viewer_.emplace([this](std::string_view text) { send(text); }, out_.descriptor,
                  out_.disturbances);
}

Progress::~Progress() {
  finish();
}

void Progress::finish() {
  const auto lock = alone();
  clear();
}

std::unique_lock<std::mutex> Progress::alone() const {
  return out_.drawing == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*out_.drawing);
}

void Progress::clear() {
  bar_.clear();
  if (viewer_) viewer_->clear();
}

void Progress::on_epoch_begin(Training& training, const EpochStart& epoch) {
  static_cast<void>(training);
  since_epoch_ = {};
  epochs_done_ = epoch.index.value();
  epoch_samples_here_ = 0;
  epoch_samples_ = 0;
  epoch_steps_ = 0;
  first_step_ = epoch.first_step;
  epoch_steps_planned_ = epoch.steps.value_or(0);
  epoch_samples_planned_ = epoch.samples;
}

void Progress::on_fault(Training& training, const StepPlan& step,
                        std::span<const FaultRecord> faults, std::int64_t cores_left) {
  static_cast<void>(training);
  const auto lock = alone();
  clear();
  for (const FaultRecord& fault : faults) {
    print(fmt::format("step {}: core {} of {} died in its substep {}; the step is redone on {}\n",
                      step.index.value() + 1, fault.core.value(), step.cores, fault.substep,
                      cores_left));
  }
}

void Progress::on_step(Training& training, const StepRecord& step) {
  if (options_.budget != Budget{}) note_spent(training, step);
  epoch_samples_here_ += step.plan.batch_size;
  // After a resume in the middle of the epoch, more is done than this process has done.
  epoch_steps_ = step.plan.index.value() - first_step_.value() + 1;
  epoch_samples_ = step.plan.first_sample(training.options().minibatch_size) + step.plan.batch_size;
  if (out_.verbose) details_.note(step);
  if (viewer_) {
    viewer_->run().note(step, static_cast<std::int64_t>(samples_done()));
    if (!viewer_->due()) return;
    const auto lock = alone();
    draw_view(rate());
  } else if (out_.style == ProgressStyle::bar) {
    if (bar_.drawn() && since_drawn_.seconds() < kRedraw) return;
    const auto lock = alone();
    draw_bar(step);
  } else if (out_.logs_steps && options_.log_steps > 0 &&
             (step.plan.index.value() + 1) % options_.log_steps == 0) {
    print(fmt::format("epoch {}/{}  step {}{}  {} samples/s  {} left\n", epochs_done_ + 1,
                      options_.epochs, step.plan.index.value() + 1,
                      text_of(shown_fields(step_schema(), step)), short_number(rate()),
                      clock_time(remaining_now().seconds)));
  }
}

void Progress::note_spent(const Training& training, const StepRecord& step) {
  spent_ =
      share_spent(options_.budget, {.iterations = step.iterations,
                                    .samples = training.result().samples + step.plan.batch_size,
                                    .time = step.time});
  if (!spent_at_first_) spent_at_first_ = spent_;
}

void Progress::on_epoch(Training& training, const EpochRecord& epoch) {
  static_cast<void>(training);
  const auto lock = alone();
  hold();
  clear();
  samples_before_epoch_ += epoch_samples_here_;
  epochs_done_ = epoch.epoch.value() + 1;
  const double rate =
      epoch.train_seconds > 0 ? static_cast<double>(epoch.samples) / epoch.train_seconds : 0;
  const std::string of =
      epoch.steps < epoch_steps_planned_ ? fmt::format(" of {}", epoch_steps_planned_) : "";
  print(fmt::format("epoch {}/{}  {}{} steps{}  {} samples/s\n", epochs_done_, options_.epochs,
                    epoch.steps, of, text_of(shown_fields(epoch_schema(), epoch, options_.top_k)),
                    short_number(rate)));
  if (out_.verbose) print(details_.take(epoch, options_.threads));
  // The samples planned for this epoch are no longer ahead.
  epoch_samples_here_ = 0;
  epoch_samples_ = 0;
  epoch_samples_planned_ = 0;
  if (viewer_) {
    // The first step of the next epoch may take long, so the view is drawn now.
    viewer_->run().note(epoch);
    draw_view(rate);
  }
  release();
}

void Progress::draw_bar(const StepRecord& step) {
  since_drawn_ = {};
  // Each field has a worth; the fields with the lowest are left out if there is no room for all.
  std::vector<LineField> fields{{fmt::format("epoch {}/{}", epochs_done_ + 1, options_.epochs), 7},
                                {fmt::format("step {}", step.plan.index.value() + 1), 6}};
  for (const auto& [label, value, progress] : shown_fields(step_schema(), step)) {
    fields.push_back({fmt::format("{} {:<{}}", label, value, progress->width), progress->worth});
  }
  fields.push_back({fmt::format("{:>5} samples/s", short_number(rate())), 1});
  fields.push_back({fmt::format("{} left", clock_time(remaining_now().seconds)), 4});
  const double done =
      static_cast<double>(epoch_samples_) / static_cast<double>(epoch_samples_planned_);
  // The bar follows the epoch, whose progress it shows.
  bar_.draw(
      line_with_bar(std::move(fields), drawable_columns(out_.descriptor), done, kNarrowestBar));
}

void Progress::draw_view(double samples_per_second) {
  const Remaining remaining = remaining_now();
  RunView& run = viewer_->run();
  run.epoch = std::min(epochs_done_ + 1, options_.epochs);
  run.epochs = options_.epochs;
  run.done = remaining.done;
  run.seconds_left = remaining.seconds;
  run.rate = samples_per_second;
  viewer_->draw();
}

// A failed output must not end the run, so the error is only kept for error().
void Progress::send(std::string_view text) {
  if (held_) {
    held_->append(text);
    return;
  }
  const int error = out_.write(text);
  if (error_ == 0) error_ = error;
}

void Progress::hold() {
  held_.emplace();
}

void Progress::release() {
  const auto held = std::exchange(held_, std::nullopt);
  if (held && !held->empty()) send(*held);
}

void Progress::print(std::string_view line) {
  send(fitted(line, line_width(out_.descriptor)));
}

double Progress::rate() const {
  return static_cast<double>(epoch_samples_here_) / std::max(since_epoch_.seconds(), 1e-6);
}

double Progress::samples_done() const {
  return static_cast<double>(epochs_done_ * options_.samples_per_epoch + epoch_samples_);
}

double Progress::samples_ahead() const {
  return static_cast<double>((options_.epochs - epochs_done_ - 1) * options_.samples_per_epoch +
                             epoch_samples_planned_ - epoch_samples_);
}

// The speed is that of the whole run, so that evaluations count, too.
Remaining Progress::remaining_now() const {
  const double all = samples_done() + std::max(samples_ahead(), 0.0);
  if (!(all > 0)) return {};
  const auto here = static_cast<double>(samples_before_epoch_ + epoch_samples_here_);
  const std::array<ShareDone, 2> measures{
      {{.all = samples_done() / all, .here = here / all},
       {.all = spent_, .here = spent_ - spent_at_first_.value_or(0)}}};
  return remaining_of(measures, since_start_.seconds());
}

std::string short_number(double value) {
  constexpr std::array<std::string_view, 4> kUnits{"", "k", "M", "G"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, kUnits.at(unit));
}

std::string clock_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

void add_shown(std::vector<ShownField>& fields, const ColumnInfo& column, const Cell& cell,
               std::int64_t top_k, Digits digits) {
  const ProgressField& progress = column.progress;
  std::string value;
  if (const auto* const whole = std::get_if<std::int64_t>(&cell)) {
    value = fmt::to_string(*whole);
  } else if (const auto* const real = std::get_if<double>(&cell); real == nullptr) {
    return;
  } else if (column.unit == kShareUnit) {
    value = fmt::format("{:.2f} %", *real * 100);
  } else if (digits == Digits::many) {
    value = fmt::format("{:.7g}", *real);
  } else {
    value = progress.significant ? fmt::format("{:.4g}", *real) : decimal(*real, 4);
  }
  fields.push_back({fmt::format(fmt::runtime(progress.label), top_k), std::move(value), &progress});
}

std::string decimal(double value, int decimals) {
  return std::isnan(value) ? "nan" : fmt::format("{:.{}f}", value, decimals);
}

}  // namespace rubato
