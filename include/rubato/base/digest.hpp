#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rubato {

/// A digest of 128 bits, the XXH3 of some bytes: equal digests mean equal bytes, but for an
/// accident that nobody will see. It detects changes, not forgeries; sha256_of() does both, and is
/// ten times slower.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// The digest as 32 lower-case hexadecimal digits, as xxhsum -H2 prints it.
  [[nodiscard]] std::string to_text() const;
  /// Reads what to_text() writes. Throws Error for other text.
  [[nodiscard]] static Digest parse(std::string_view text);

  friend bool operator==(const Digest&, const Digest&) = default;
};

/// The digest of `bytes`, as this machine holds them.
[[nodiscard]] Digest digest_of(std::span<const std::byte> bytes);

/// The digest of a sequence of digests with one more, `next`. An empty sequence has Digest().
[[nodiscard]] Digest chained(const Digest& before, const Digest& next);

}  // namespace rubato
