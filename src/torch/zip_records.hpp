#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rubato {

/// The records of a zip archive as torch.save() and torch.jit.save() write it: by their names in
/// its one folder ("data.pkl", "data/0"), as views of `bytes`. Nothing is copied. `source` stands
/// for the file in messages.
///
/// Throws Error for what is no such archive: cut off, with records that are compressed, reach
/// beyond the file or are more than the file holds.
[[nodiscard]] std::map<std::string, std::string_view> zip_records(std::string_view bytes,
                                                                  const std::string& source);

}  // namespace rubato
