#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

/// Unpacks a packed record, which messages name as `name`, and the wanted content as `accepted`.
/// Allocations grow with its real contents, whatever it claims. Throws Error if it is damaged, and
/// before unpacking if it claims more than it can hold.
[[nodiscard]] std::shared_ptr<const std::string> inflated(const ZipRecord& record,
                                                          const std::string& name,
                                                          std::string_view accepted);

/// Unpacks the first 64 KiB, or all of a smaller record.
[[nodiscard]] std::string inflated_beginning(const ZipRecord& record, const std::string& name,
                                             std::string_view accepted);

/// Throws Error if the CRC-32 of a record's contents is wrong. The contents are not kept.
void require_intact(const ZipRecord& record, const std::string& name, std::string_view accepted);
/// Does the same for all records of the archive that `source` names.
void require_intact(const std::map<std::string, ZipRecord>& records, const std::string& source,
                    std::string_view accepted);

}  // namespace rubato
