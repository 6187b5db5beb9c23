#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <rubato/loop/records.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "run_view.hpp"

namespace rubato {

/// Progress and speed of a training.
struct Pace {
  std::int64_t epoch = 1;
  std::int64_t epochs = 1;
  double done = 0;
  double seconds_left = 0;
  double samples_per_second = 0;
};

/// Draws the view of a run that trains in this process, from the records that observers receive. A
/// step costs a few additions, and a drawing takes place about ten times a second.
class RunViewer {
 public:
  /// `write` receives the text for the terminal of `descriptor`. `disturbances` counts how often
  /// something else has been written there, below which the view is then drawn again; may be empty.
  RunViewer(std::function<void(std::string_view)> write, int descriptor,
            std::function<int()> disturbances);

  /// The view that is drawn; draw() sets its pace.
  [[nodiscard]] RunView& run() { return run_; }
  /// Whether it is time to draw.
  [[nodiscard]] bool due() const;
  void draw(const Pace& pace);
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
