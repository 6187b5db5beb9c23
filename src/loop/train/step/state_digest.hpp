#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/digest.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>

namespace rubato {

/// Computes the digest of named arrays, such as parameters and the memory of an optimizer. It
/// depends on their names and bytes alone: not on the threads, nor on the order in which they are
/// added.
///
/// An array is hashed in chunks of kChunk bytes. The digest is that of a list which has, for each
/// array in the order of the names, the name, the number of bytes and the digests of its chunks.
class StateDigest {
 public:
  /// Bytes of a chunk. A part of every digest: another size gives other digests.
  static constexpr std::size_t kChunk = std::size_t{1} << 16;

  /// The workers must outlive it.
  explicit StateDigest(Workers& workers) : workers_(workers) {}

  /// Adds arrays, each under `prefix` and its name, which must be unique.
  void add(std::string_view prefix, std::span<const NamedArray> arrays);
  /// Adds an array, which may change after the call.
  void add(std::string_view name, std::span<const std::byte> bytes);

  /// The digest of all arrays that were added since the last call.
  [[nodiscard]] Digest finish();

 private:
  struct Entry {
    std::string name;
    std::size_t bytes = 0;
    // The place of the digest of its first chunk.
    std::size_t first = 0;
  };

  // Notes the array and its chunks, which are not hashed yet.
  void note(std::string name, std::span<const std::byte> bytes);
  // Hashes the chunks that are not hashed yet.
  void hash();

  Workers& workers_;
  std::vector<Entry> entries_;
  std::vector<Digest> chunks_;
  // The chunks to be hashed, which are the last ones of chunks_.
  std::vector<std::span<const std::byte>> waiting_;
  std::string list_;
};

/// The beginnings of the names that a trainer's state gives to what the digest of a step covers
/// (StepPart::prefix): parameters, then buffers, then the memory of the other parts.
[[nodiscard]] std::vector<std::string_view> digested_prefixes();

/// The digest that the last step before a trainer's state has, or would have.
[[nodiscard]] Digest digest_of_state(const State& state);

}  // namespace rubato
