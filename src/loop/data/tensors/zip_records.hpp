#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rubato {

/// A record of a zip archive, as it lies there.
struct ZipRecord {
  std::string_view bytes;
  /// Whether they are packed (deflate); otherwise they are stored as they are.
  bool deflated = false;
  /// Of what was packed: how many bytes it has, and its CRC-32.
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;
};

/// The records of a zip archive, by their names without the first folder ("data.pkl", "data/0",
/// "x.npy"), as views of `bytes`; of two with one name the last counts, as in Python. Nothing is
/// copied or unpacked. `source` stands for the file in messages, and `accepted` says what is
/// wanted.
///
/// Throws Error for what is no such archive: cut off, with records that are packed in a way other
/// than deflate, reach beyond the file or are more than the file holds; and where two names differ
/// in the first folder alone.
[[nodiscard]] std::map<std::string, ZipRecord> zip_directory(std::string_view bytes,
                                                             const std::string& source,
                                                             std::string_view accepted);

}  // namespace rubato
