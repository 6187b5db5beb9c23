#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rubato {

/// A record of a zip archive, as it is stored.
struct ZipRecord {
  std::string_view bytes;
  /// True if the bytes are packed (deflate); otherwise they are stored unchanged.
  bool deflated = false;
  /// The unpacked size, and the CRC-32 of the unpacked bytes.
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;
};

/// Reads the directory of a zip archive. The result has the records by their names without the
/// first folder ("data.pkl", "data/0", "x.npy"), as views of `bytes`; of two with the same name the
/// last one counts, as in Python. Nothing is copied or unpacked. Messages name the file as
/// `source`, and the wanted content as `accepted`.
///
/// Throws Error for bytes that are not such an archive: cut off, with records that are packed by a
/// method other than deflate, reach beyond the file or are more than the file holds; and if two
/// names differ only in the first folder.
[[nodiscard]] std::map<std::string, ZipRecord> zip_directory(std::string_view bytes,
                                                             const std::string& source,
                                                             std::string_view accepted);

}  // namespace rubato
