#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace rubato {

/// Computes a SHA-256 digest piece by piece.
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(const void* bytes, std::size_t size);
  void add(std::string_view bytes) { add(bytes.data(), bytes.size()); }
  /// The digest of all bytes added; nothing may be added after it.
  [[nodiscard]] Digest digest();
  /// The digest in lower-case hexadecimal; nothing may be added after it.
  [[nodiscard]] std::string hex();

  [[nodiscard]] static Digest digest_of(std::string_view bytes);
  [[nodiscard]] static std::string hex_of(std::string_view bytes);
  /// The digest of a file, which is read piece by piece. Throws Error if it cannot be read.
  [[nodiscard]] static std::string hex_of_file(const std::filesystem::path& file);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace rubato
