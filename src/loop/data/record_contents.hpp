#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "loop/data/tensors/zip_records.hpp"

namespace rubato {

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
