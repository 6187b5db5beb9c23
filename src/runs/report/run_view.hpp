#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/records.hpp>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"

namespace rubato {

/// Numbers over the course of a run, for a curve with fewer columns than there are numbers: it
/// keeps their means over stretches of equal length, in memory that does not grow with the run.
class Series {
 public:
  /// Adds the number at position `at` of the run, which is not negative and never decreases. A
  /// number that is not finite counts as missing.
  void add(double at, double value);
  /// The curve in `cells` equal cells from 0 to `end`, up to the current position. The value of a
  /// cell is the mean of its finite numbers; a cell without numbers repeats the one before it. It
  /// is NaN if there is none before it, or if none of its numbers is finite.
  [[nodiscard]] std::vector<double> curve(std::size_t cells, double end) const;
  [[nodiscard]] bool empty() const { return stretches_.empty(); }

 private:
  struct Stretch {
    double sum = 0;
    std::int64_t finite = 0;
    std::int64_t numbers = 0;

    void take(const Stretch& other);
  };

  void halve();

  // Consecutive stretches from 0 on, each length_ long.
  std::vector<Stretch> stretches_;
  double length_ = 1;
  double last_ = 0;
};

/// The progress of a run by one measure, such as its epochs or its budget, in shares of the whole:
/// all that is done, and the part of it that was done in the time that is measured.
struct ShareDone {
  double all = 0;
  double here = 0;
};
/// The share that is done of a run that ends with the first complete measure, and the seconds that
/// it still takes at the speed of the `seconds` that are measured.
struct Remaining {
  double done = 0;
  double seconds = 0;
};
[[nodiscard]] Remaining remaining_of(std::span<const ShareDone> measures, double seconds);

/// The state of a run at one moment, as shown to people.
struct RunView {
  enum class Phase {
    training,
    /// No record has been written for some time: the run does something long, or no process trains
    /// it.
    silent,
    ended,
  };
  Phase phase = Phase::training;
  /// Seconds for which it has been silent, or that the whole run took.
  double phase_seconds = 0;
  /// The reason why it ended before its last epoch; empty otherwise.
  std::string stopped{};

  /// The current epoch, from 1, and the maximum number of epochs.
  std::int64_t epoch = 1;
  std::int64_t epochs = 1;
  /// Steps and samples so far.
  std::int64_t step = 0;
  std::int64_t samples = 0;
  /// Share of the run that is done, and the remaining time; empty if unknown.
  std::optional<double> done{};
  std::optional<double> seconds_left{};

  // Values of the last step, and their curves over samples.
  double loss = 0;
  Series losses{};
  std::int64_t batch = 0;
  Series batches{};
  double learning_rate = 0;
  double gain = 1;
  /// Cores that have work, all cores, and the maximum over all steps.
  std::int64_t busy = 0;
  std::int64_t cores = 0;
  std::int64_t most_cores = 0;
  /// Samples per second.
  std::optional<double> rate{};
  /// Modelled time and cost; empty without a modelled clock.
  std::optional<double> hours{};
  std::optional<double> money{};

  /// Result of the last test: its accuracy if there is one, otherwise its loss.
  std::optional<double> test{};
  bool test_is_accuracy = true;
  Series tests{};

  /// Takes the values of a step; `total` is the number of samples of the run after it.
  void note(const StepRecord& taken, std::int64_t total);
  /// Takes the result of an epoch's test.
  void note(const EpochRecord& ended);
};

/// The capabilities of the terminal.
struct ViewStyle {
  int columns = 80;
  bool utf8 = true;
  bool colours = true;
};

/// The view of a run: lines for the bar, each curve, the cores, and the other numbers, none longer
/// than `columns`. The curves stand below the bar and share its time axis, so the end of the bar is
/// the current time.
[[nodiscard]] std::vector<std::string> view_lines(const RunView& run, const ViewStyle& style);

/// The view of a run as one line after its name, which takes `name_columns` columns; for lists of
/// several runs.
[[nodiscard]] std::string view_line(std::string_view name, int name_columns, const RunView& run,
                                    const ViewStyle& style);

/// Draws the view of a run that trains in this process, from the records that observers receive. A
/// step costs a few additions, and a drawing takes place about ten times a second.
class RunViewer {
 public:
  /// `write` receives the text for the terminal of `descriptor`. `disturbances` counts how often
  /// something else has been written there, below which the view is then drawn again; may be empty.
  RunViewer(std::function<void(std::string_view)> write, int descriptor,
            std::function<int()> disturbances);

  /// The view that is drawn.
  [[nodiscard]] RunView& run() { return run_; }
  /// True if it is time to draw.
  [[nodiscard]] bool due() const;
  void draw();
  /// Removes the view from the terminal.
  void clear();

 private:
  // Leaves the old drawing alone if something else has been written to the terminal since.
  void look_for_disturbances();

  int descriptor_;
  std::function<int()> disturbances_;
  int disturbances_seen_ = 0;
  Stopwatch since_drawn_;
  DrawnBlock block_;
  RunView run_;
};

}  // namespace rubato
