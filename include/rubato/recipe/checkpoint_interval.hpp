#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/core/choice.hpp>

namespace rubato {

/// How often a checkpoint is written.
struct CheckpointInterval {
  enum class Unit { steps, epochs, seconds };

  /// At least 1.
  std::int64_t count = 60;
  Unit unit = Unit::seconds;

  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

inline constexpr std::array<Choice<CheckpointInterval::Unit>, 3> kCheckpointUnits{
    {{CheckpointInterval::Unit::steps, "steps"},
     {CheckpointInterval::Unit::epochs, "epochs"},
     {CheckpointInterval::Unit::seconds, "seconds"}}};

/// "100steps", "1epoch", "60 seconds"; empty for "never". Throws Error for anything else.
[[nodiscard]] std::optional<CheckpointInterval> parse_checkpoint_interval(std::string_view text);

}  // namespace rubato
