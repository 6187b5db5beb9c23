// RunView has the data, ViewPainter makes lines of them, and RunViewer draws these in place. A
// Series has stretches of equal length; when the run outgrows them, they are merged in pairs and
// their length doubles, so that memory is bounded. A curve ends below the end of the bar because
// its width stands for the samples of the whole run, which ViewPainter::end() estimates from the
// share that is done. Curves of losses are logarithmic.

#include "run_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/core/terminal/charts.hpp"
#include "base/core/terminal/terminal.hpp"
#include "base/core/text/text.hpp"
#include "progress.hpp"

namespace rubato {

namespace {

// Maximum number of stretches. A long run has at least half as many, which is still more than the
// columns of a terminal.
constexpr std::size_t kMost = 1024;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void Series::Stretch::take(const Stretch& other) {
  sum += other.sum;
  finite += other.finite;
  numbers += other.numbers;
}

void Series::add(double at, double value) {
  last_ = std::max(last_, at);
  while (last_ >= length_ * static_cast<double>(kMost)) halve();
  const auto index = static_cast<std::size_t>(last_ / length_);
  if (index >= stretches_.size()) stretches_.resize(index + 1);
  const bool finite = std::isfinite(value);
  stretches_[index].take({.sum = finite ? value : 0, .finite = finite ? 1 : 0, .numbers = 1});
}

void Series::halve() {
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch stretch = stretches_[i];
    if (i % 2 == 0) stretches_[i / 2] = {};
    stretches_[i / 2].take(stretch);
  }
  stretches_.resize((stretches_.size() + 1) / 2);
  length_ *= 2;
}

std::vector<double> Series::curve(std::size_t cells, double end) const {
  if (empty() || cells == 0) return {};
  const double cell = std::max(end, last_) / static_cast<double>(cells);
  const std::size_t last =
      cell > 0 ? std::min(cells - 1, static_cast<std::size_t>(last_ / cell)) : 0;
  std::vector<double> means;
  std::size_t next = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const double limit = i == last ? last_ + length_ : cell * static_cast<double>(i + 1);
    Stretch all;
    for (; next < stretches_.size() && static_cast<double>(next) * length_ < limit; ++next) {
      all.take(stretches_[next]);
    }
    if (all.numbers == 0) {
      means.push_back(means.empty() ? kMissing : means.back());
    } else {
      means.push_back(all.finite == 0 ? kMissing : all.sum / static_cast<double>(all.finite));
    }
  }
  return means;
}

Remaining remaining_of(std::span<const ShareDone> measures, double seconds) {
  Remaining remaining{.seconds = std::numeric_limits<double>::infinity()};
  for (const auto& [all, here] : measures) {
    remaining.done = std::clamp(all, remaining.done, 1.0);
    if (here > 0)
      remaining.seconds = std::min(remaining.seconds, seconds * std::max(1 - all, 0.0) / here);
  }
  if (std::isinf(remaining.seconds)) remaining.seconds = 0;
  return remaining;
}

void RunView::note(const StepRecord& taken, std::int64_t total) {
  const auto at = static_cast<double>(total);
  step = taken.plan.index.value() + 1;
  samples = total;
  loss = taken.loss;
  losses.add(at, loss);
  batch = taken.plan.batch_size;
  batches.add(at, static_cast<double>(batch));
  learning_rate = taken.learning_rate;
  gain = taken.gain;
  cores = taken.plan.cores;
  // The line of a step may lack its substeps.
  const bool is_known = taken.plan.minibatches > 0 && cores > 0;
  busy = is_known ? busy_cores(taken.plan.minibatches, cores) : cores;
  most_cores = std::max(most_cores, cores);
  if (!taken.time) return;
  hours = taken.time->seconds / kSecondsOfHour;
  money = taken.time->money;
}

void RunView::note(const EpochRecord& ended) {
  if (!ended.test) return;
  test_is_accuracy = ended.test->accuracy.has_value();
  test = ended.test->accuracy.value_or(ended.test->loss);
  tests.add(static_cast<double>(samples), *test);
}

namespace {

// A longer line cannot be taken in at a glance.
constexpr int kWidest = 120;
constexpr int kLabelColumns = 9;
constexpr int kValueColumns = 9;
constexpr int kGap = 2;
constexpr int kNarrowestGraph = 4;

std::string loss_text(double loss) {
  constexpr double kLong = 1e4;
  return std::fabs(loss) < kLong ? decimal(loss, 4) : fmt::format("{:.3e}", loss);
}

// The time that a run still takes, has been silent, or took, with its label.
struct Standing {
  std::string_view label;
  std::string time;
};
Standing standing_of(const RunView& run) {
  switch (run.phase) {
    case RunView::Phase::silent:
      return {"silent", clock_time(run.phase_seconds)};
    case RunView::Phase::ended:
      return {"took", clock_time(run.phase_seconds)};
    case RunView::Phase::training:
      break;
  }
  return {"left", run.seconds_left ? clock_time(*run.seconds_left) : std::string()};
}

std::string percent_of(const RunView& run) {
  return run.done ? fmt::format("{:.0f} %", std::floor(*run.done * 100)) : std::string();
}

std::string test_value_of(const RunView& run) {
  if (!run.test) return {};
  return run.test_is_accuracy ? fmt::format("{:.2f} %", *run.test * 100) : loss_text(*run.test);
}

// Draws the lines of a view.
class ViewPainter {
 public:
  ViewPainter(const RunView& run, const ViewStyle& style)
      : run_(run),
        style_(style),
        columns_(std::clamp(style.columns, 1, kWidest)),
        epoch_(fmt::format("epoch {}/{}", run.epoch, run.epochs)),
        label_columns_(std::max(kLabelColumns, static_cast<int>(epoch_.size()))) {}

  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] std::string line(std::string_view name, int name_columns) const;

 private:
  [[nodiscard]] std::string paint(std::string_view text, Ink ink) const {
    return painted(text, ink, style_.colours);
  }
  // A line of label, value, and `graph`, which is given the number of columns that remain.
  template <class Graph>
  [[nodiscard]] std::string row(std::string_view label, std::string_view value,
                                const Graph& graph) const;
  [[nodiscard]] std::string bar(int width) const;
  [[nodiscard]] std::string curve(std::vector<double> cells, Ink ink) const;
  [[nodiscard]] std::string cores(int width) const;
  [[nodiscard]] std::string pace_row() const;
  [[nodiscard]] std::string rate_row() const;
  // Number of samples at the right end of the curves, which is below the right end of the bar.
  [[nodiscard]] double end() const {
    const double done = run_.done.value_or(1);
    return static_cast<double>(run_.samples) / (done > 0 ? std::min(done, 1.0) : 1);
  }

  const RunView& run_;
  const ViewStyle& style_;
  int columns_;
  std::string epoch_;
  int label_columns_;
};

std::vector<double> logarithms(std::vector<double> values) {
  // The logarithm of zero is infinite and counts as missing.
  for (double& value : values) value = std::log(value);
  return values;
}

template <class Graph>
std::string ViewPainter::row(std::string_view label, std::string_view value,
                             const Graph& graph) const {
  const std::string head = fmt::format("{:<{}}", label, label_columns_);
  const std::string number = fmt::format("{:>{}}", value, kValueColumns);
  const int room = columns_ - static_cast<int>(head.size() + number.size()) - kGap;
  if (room < kNarrowestGraph) {
    return fitting_line({{std::string(label), 2}, {std::string(value), 1}}, columns_);
  }
  const std::string drawn = graph(room);
  return paint(head, Ink::dim) + number + (drawn.empty() ? "" : std::string(kGap, ' ') + drawn);
}

std::string ViewPainter::bar(int width) const {
  const ThinBar bar = thin_bar(run_.done.value_or(0), width, style_.utf8);
  return paint(bar.done, Ink::cyan) + paint(bar.left, Ink::dim);
}

std::string ViewPainter::curve(std::vector<double> cells, Ink ink) const {
  std::string line = sparkline(cells, style_.utf8);
  line.erase(line.find_last_not_of(' ') + 1);
  return paint(line, ink);
}

std::string ViewPainter::cores(int width) const {
  const CoreCells cells = core_cells(run_.busy, run_.cores, run_.most_cores, width, style_.utf8);
  return paint(cells.busy, Ink::green) + cells.idle + paint(cells.absent, Ink::dim);
}

std::string ViewPainter::pace_row() const {
  const Standing standing = standing_of(run_);
  return row(standing.label, standing.time, [&](int width) {
    std::vector<LineField> fields{{fmt::format("step {}", run_.step), 1}};
    if (run_.rate) fields.push_back({fmt::format("{} samples/s", short_number(*run_.rate)), 2});
    if (!run_.stopped.empty()) fields.push_back({run_.stopped, 3});
    return fitting_line(std::move(fields), width);
  });
}

std::string ViewPainter::rate_row() const {
  return row("lr", fmt::format("{:.4g}", run_.learning_rate), [&](int width) {
    std::vector<LineField> fields{{fmt::format("gain {:.2f}", run_.gain), 1}};
    if (run_.hours) {
      const std::string time = clock_time(*run_.hours * kSecondsOfHour);
      fields.push_back({fmt::format("modelled {}", time), 3});
    }
    if (run_.money && *run_.money > 0) {
      fields.push_back({fmt::format("money {:.4g}", *run_.money), 2});
    }
    return fitting_line(std::move(fields), width);
  });
}

std::vector<std::string> ViewPainter::lines() const {
  const auto cells = [](int width) { return static_cast<std::size_t>(width); };
  std::vector<std::string> lines{
      row(epoch_, percent_of(run_), [&](int width) { return bar(width); })};
  lines.push_back(pace_row());
  if (run_.step > 0) {
    lines.push_back(row("loss", loss_text(run_.loss), [&](int width) {
      return curve(logarithms(run_.losses.curve(cells(width), end())), Ink::yellow);
    }));
  }
  if (run_.test) {
    lines.push_back(
        row(run_.test_is_accuracy ? "accuracy" : "test loss", test_value_of(run_), [&](int width) {
          const auto tests = run_.tests.curve(cells(width), end());
          return curve(run_.test_is_accuracy ? tests : logarithms(tests), Ink::magenta);
        }));
  }
  if (run_.step == 0) return lines;
  lines.push_back(row("batch", fmt::to_string(run_.batch), [&](int width) {
    return curve(run_.batches.curve(cells(width), end()), Ink::cyan);
  }));
  lines.push_back(row("cores", fmt::format("{}/{}", run_.cores, run_.most_cores),
                      [&](int width) { return cores(width); }));
  lines.push_back(rate_row());
  return lines;
}

// The most important parts, as many as fit, each in columns of its own; the curve of the loss takes
// the rest.
std::string ViewPainter::line(std::string_view name, int name_columns) const {
  constexpr int kBar = 12;
  constexpr int kCurve = 40;
  std::string text = padded_to(name, static_cast<std::size_t>(std::max(name_columns, 0)));
  int room = columns_ - static_cast<int>(width_of(text));
  const auto add = [&](const std::string& part, int width) {
    if (room < width + kGap) return;
    room -= width + kGap;
    text += std::string(kGap, ' ') + part;
  };
  const Standing standing = standing_of(run_);
  const std::string test = test_value_of(run_);
  const std::string loss = run_.step > 0 ? loss_text(run_.loss) : "";
  add(fmt::format("{:>5}", percent_of(run_)), 5);
  if (room > 30) add(bar(kBar), kBar);
  add(fmt::format("{:>7} {:<6}", standing.time, standing.label), 14);
  add(fmt::format("{:>8}", test), 8);
  add(paint("loss ", Ink::dim) + fmt::format("{:>8}", loss), 13);
  if (room - kGap >= kBar) {
    const int cells = std::min(room - kGap, kCurve);
    add(curve(logarithms(run_.losses.curve(static_cast<std::size_t>(cells), end())), Ink::yellow),
        cells);
  }
  return text;
}

}  // namespace

std::string view_line(std::string_view name, int name_columns, const RunView& run,
                      const ViewStyle& style) {
  return ViewPainter(run, style).line(name, name_columns);
}

std::vector<std::string> view_lines(const RunView& run, const ViewStyle& style) {
  return ViewPainter(run, style).lines();
}

namespace {

// Seconds between two drawings: smooth for the eye, at negligible cost.
constexpr double kViewRedraw = 0.1;

}  // namespace

RunViewer::RunViewer(std::function<void(std::string_view)> write, int descriptor,
                     std::function<int()> disturbances)
    : descriptor_(descriptor), disturbances_(std::move(disturbances)), block_(std::move(write)) {
  if (disturbances_) disturbances_seen_ = disturbances_();
}

bool RunViewer::due() const {
  return !block_.drawn() || since_drawn_.seconds() >= kViewRedraw;
}

void RunViewer::look_for_disturbances() {
  if (!disturbances_) return;
  const int disturbances = disturbances_();
  if (disturbances != disturbances_seen_) block_.leave();
  disturbances_seen_ = disturbances;
}

void RunViewer::draw() {
  since_drawn_ = {};
  const int columns = drawable_columns(descriptor_);
  std::vector<std::string> lines = view_lines(run_, {.columns = columns, .utf8 = speaks_utf8()});
  // The cursor needs a row of its own.
  const std::size_t rows =
      std::max<std::size_t>(terminal_rows(descriptor_).value_or(lines.size() + 1), 2);
  lines.resize(std::min(lines.size(), rows - 1));
  look_for_disturbances();
  block_.draw(std::move(lines), columns + 1, rows);
}

void RunViewer::clear() {
  look_for_disturbances();
  block_.clear(drawable_columns(descriptor_) + 1);
}

}  // namespace rubato
