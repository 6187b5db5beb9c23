#include <algorithm>
#include <cstddef>

#include <rubato/loop/intervals.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

std::optional<CheckpointInterval> parse_checkpoint_interval(std::string_view text) {
  if (text == "never") return std::nullopt;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::size_t unit = std::min(text.find_first_not_of(' ', digits), text.size());
  for (const auto& [value, name] : kCheckpointUnits) {
    // Accepts the singular, too.
    if (text.substr(unit) == name || text.substr(unit) == name.substr(0, name.size() - 1)) {
      constexpr std::int64_t kMost = 1'000'000'000;
      return CheckpointInterval{.count = parse_whole(text.substr(0, digits), 1, kMost),
                                .unit = value};
    }
  }
  throw_error("'{}' is not an interval; accepted: such as 100steps, 1epoch, 60seconds, or never",
              text);
}

DigestInterval parse_digest_interval(std::string_view text) {
  constexpr std::string_view kEvery = "every=";
  constexpr std::int64_t kMost = 1'000'000'000;
  if (text == "never") return {.every = 0};
  if (!text.starts_with(kEvery)) {
    throw_error("'{}' is not an interval of digests; accepted: such as every=10, or never", text);
  }
  return {.every = parse_whole(text.substr(kEvery.size()), 1, kMost)};
}

}  // namespace rubato
