#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <rubato/core/byte_sink.hpp>
#include <rubato/core/error.hpp>
#include <rubato/state/state.hpp>

namespace rubato {

/// The version of the files that write_state() writes. Older ones are read as well.
inline constexpr std::int64_t kStateVersion = 1;

/// A file that a newer version of rubato has written.
class NewerVersion : public Error {
 public:
  using Error::Error;
};

/// A State as the bytes of a file in the safetensors format, which other tools read too
/// (https://github.com/huggingface/safetensors):
///
///     8 bytes   length of the header, little-endian
///     header    JSON: {"__metadata__": {texts}, "name": {"dtype", "shape", "data_offsets"}, ...}
///     data      the arrays
///
/// The texts "rubato.kind" and "rubato.version" say what it is. The last array, "rubato.sha256", is
/// the SHA-256 of all bytes before it: nothing in the file can change unseen.
[[nodiscard]] std::string state_bytes(const State& state);
/// Gives the same bytes to a sink.
void stream_state(const State& state, const ByteSink& sink);

/// The State of such bytes; `source` names them in messages. Throws Error when they are damaged
/// (cut off, changed) or no such file, and NewerVersion. Takes no more memory than a small multiple
/// of the bytes, whatever they claim.
[[nodiscard]] State parse_state(std::string_view bytes, std::string_view source);

/// write_file() and read_file() of them.
void write_state(const std::filesystem::path& path, const State& state);
[[nodiscard]] State read_state(const std::filesystem::path& path);

}  // namespace rubato
