#include "run_viewer.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/terminal/terminal.hpp"

namespace rubato {

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
  if (std::exchange(disturbances_seen_, disturbances_()) != disturbances_seen_) block_.leave();
}

void RunViewer::draw(const Pace& pace) {
  since_drawn_ = {};
  run_.epoch = pace.epoch;
  run_.epochs = pace.epochs;
  run_.done = pace.done;
  run_.seconds_left = pace.seconds_left;
  run_.rate = pace.samples_per_second;
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
