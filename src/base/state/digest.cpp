#include <algorithm>
#include <array>

#include <fmt/format.h>
// The header defines XXH3_128bits() as the version for this CPU.
#if RUBATO_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <rubato/base/digest.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr std::size_t kDigitsOfHalf = 16;

// Returns the value of the hexadecimal digits, which have been checked.
std::uint64_t number_of(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char digit : digits) {
    number =
        16 * number + static_cast<std::uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return number;
}

}  // namespace

std::string Digest::to_text() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

Digest Digest::parse(std::string_view text) {
  const bool good = std::ranges::all_of(text, [](char digit) {
    return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
  });
  if (!good || text.size() != 2 * kDigitsOfHalf) {
    throw_error("'{}' is not a digest; accepted: {} digits and letters from a to f", text,
                2 * kDigitsOfHalf);
  }
  return {.high = number_of(text.substr(0, kDigitsOfHalf)),
          .low = number_of(text.substr(kDigitsOfHalf))};
}

Digest digest_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

Digest chained(const Digest& before, const Digest& next) {
  const std::array<std::uint64_t, 4> both{before.high, before.low, next.high, next.low};
  return digest_of(std::as_bytes(std::span(both)));
}

}  // namespace rubato
