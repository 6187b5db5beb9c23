#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "loop/data/tensors/zip_records.hpp"

namespace rubato {

/// The contents of a packed record, which `name` stands for in messages; `accepted` says what is
/// wanted. What is allocated grows with what it really holds, whatever it claims. Throws Error
/// where it is damaged, and before anything is unpacked where it claims what it cannot hold.
[[nodiscard]] std::shared_ptr<const std::string> inflated(const ZipRecord& record,
                                                          const std::string& name,
                                                          std::string_view accepted);

/// The first 64 KiB of it, or all where it has less.
[[nodiscard]] std::string inflated_beginning(const ZipRecord& record, const std::string& name,
                                             std::string_view accepted);

/// Throws Error where the contents of a record are not those that were written, by their CRC-32.
/// Nothing of them is kept.
void require_intact(const ZipRecord& record, const std::string& name, std::string_view accepted);
/// The same of all records of the archive that `source` names.
void require_intact(const std::map<std::string, ZipRecord>& records, const std::string& source,
                    std::string_view accepted);

}  // namespace rubato
