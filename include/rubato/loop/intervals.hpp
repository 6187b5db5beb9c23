#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <rubato/base/parse.hpp>

namespace rubato {

/// How often a checkpoint is written.
struct CheckpointInterval {
  enum class Unit { steps, epochs, seconds };

  /// The number of units, at least 1.
  std::int64_t count = 60;
  Unit unit = Unit::seconds;

  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

inline constexpr std::array<Choice<CheckpointInterval::Unit>, 3> kCheckpointUnits{
    {{CheckpointInterval::Unit::steps, "steps"},
     {CheckpointInterval::Unit::epochs, "epochs"},
     {CheckpointInterval::Unit::seconds, "seconds"}}};

/// Parses "100steps", "1epoch", "60 seconds"; empty for "never". Throws Error for anything else.
[[nodiscard]] std::optional<CheckpointInterval> parse_checkpoint_interval(std::string_view text);

/// The default of DigestInterval::every; docs/adr/0072 has the reason.
inline constexpr std::int64_t kDigestEvery = 10;

/// The steps that have a digest.
struct DigestInterval {
  /// They are those whose number, from 1, is divisible by this; 0 for none.
  std::int64_t every = kDigestEvery;

  friend bool operator==(const DigestInterval&, const DigestInterval&) = default;
};

/// Parses "every=10" or "never". Throws Error for anything else.
[[nodiscard]] DigestInterval parse_digest_interval(std::string_view text);

}  // namespace rubato
