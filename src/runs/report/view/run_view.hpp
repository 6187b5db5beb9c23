#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "series.hpp"

namespace rubato {

/// A run as people see it at one moment: what is known of it, as a value.
struct RunView {
  enum class Phase {
    training,
    /// Nothing was heard of it for some time: it does something long, or nobody trains it.
    silent,
    ended,
  };
  Phase phase = Phase::training;
  /// For how long it has been silent, or how long it took.
  double phase_seconds = 0;
  /// Why it ended, where that was before its epochs did.
  std::string stopped{};

  /// The epoch that is trained, from 1, and how many there will be at most.
  std::int64_t epoch = 1;
  std::int64_t epochs = 1;
  /// Steps and samples so far.
  std::int64_t step = 0;
  std::int64_t samples = 0;
  /// Which share of the run is done, and for how long it will go on; empty while that is not known.
  std::optional<double> done{};
  std::optional<double> seconds_left{};

  // Of the last step; curves are over samples.
  double loss = 0;
  Series losses{};
  std::int64_t batch = 0;
  Series batches{};
  double learning_rate = 0;
  double gain = 1;
  /// Cores with something to do, all cores, and the most that a step has had.
  std::int64_t busy = 0;
  std::int64_t cores = 0;
  std::int64_t most_cores = 0;
  /// Samples per second.
  std::optional<double> rate{};
  /// Of modelled time.
  std::optional<double> hours{};
  std::optional<double> money{};

  /// The result of the last test: its accuracy where there is one, else its loss.
  std::optional<double> test{};
  bool test_is_accuracy = true;
  Series tests{};
};

/// What there is to draw with.
struct ViewStyle {
  int columns = 80;
  bool utf8 = true;
  bool colours = true;
};

/// The view of a run: lines for the bar, each curve, the cores, and the other numbers, none of them
/// longer than `columns`. The curves stand below the bar, so that what is below its end is
/// now.
[[nodiscard]] std::vector<std::string> view_lines(const RunView& run, const ViewStyle& style);

/// The view in one line behind the run's name, which takes up `name_columns`: for several runs,
/// below each other.
[[nodiscard]] std::string view_line(std::string_view name, int name_columns, const RunView& run,
                                    const ViewStyle& style);

}  // namespace rubato
