#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <rubato/loop/records.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/system/stopwatch.hpp"
#include "base/core/terminal/drawn_block.hpp"
#include "run_view.hpp"

namespace rubato {

/// How far a training is, and how fast.
struct Pace {
  std::int64_t epoch = 1;
  std::int64_t epochs = 1;
  double done = 0;
  double seconds_left = 0;
  double samples_per_second = 0;
};

/// Draws the view of a run that trains in this process, from what its observers hear. A step costs
/// it a few additions, and about ten times a second a drawing.
class RunViewer {
 public:
  /// `write` is sent what is drawn on the terminal behind `descriptor`; `disturbances` counts how
  /// often something else has come there, below which the view is then drawn anew; it may be empty.
  RunViewer(std::function<void(std::string_view)> write, int descriptor,
            std::function<int()> disturbances);

  /// `samples` are all that the run has trained on with this step.
  void note(const StepRecord& step, std::int64_t samples);
  void note(const EpochRecord& epoch);
  /// Whether it is time to draw.
  [[nodiscard]] bool due() const;
  void draw(const Pace& pace);
  /// Takes the view from the terminal.
  void clear();

 private:
  // Whether what was drawn is still where it was.
  void look_for_disturbances();

  int descriptor_;
  std::function<int()> disturbances_;
  int disturbances_seen_ = 0;
  Stopwatch since_drawn_;
  DrawnBlock block_;
  RunView run_;
};

}  // namespace rubato
