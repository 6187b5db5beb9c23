#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "clients/app/line/output.hpp"

namespace rubato::app {

/// A line on a terminal that counts what is done ("simulated 3 of 12"), if it takes longer than a
/// moment. It is gone once the object is.
class CountedProgress {
 public:
  CountedProgress(std::string_view done, std::int64_t all) : text_(done), all_(all) {}
  ~CountedProgress() { line_.clear(); }
  CountedProgress(const CountedProgress&) = delete;
  CountedProgress& operator=(const CountedProgress&) = delete;

  void show(std::int64_t done) {
    constexpr double kMoment = 0.5;
    if (!shown_ || since_.seconds() < kMoment) return;
    line_.draw(fmt::format("{} {} of {}", text_, done, all_));
    since_ = {};
  }

 private:
  std::string text_;
  std::int64_t all_;
  bool shown_ = can_redraw(STDERR_FILENO);
  DrawnLine line_{redraw_error};
  Stopwatch since_;
};

}  // namespace rubato::app
