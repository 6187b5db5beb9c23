#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// Short names of an option's values for people: a file has its name without folder and extension
/// ("a100" for "data/a100.csv"), a folder of data has its name, and any other value its text.
/// Values whose names would be equal keep their whole text.
[[nodiscard]] std::vector<std::string> labels_of(std::string_view option,
                                                 const std::vector<std::string>& values);

/// `text` as part of a file name: its first 60 characters, with '-' in place of everything except
/// letters, digits, '.', '_', '+' and '-'.
[[nodiscard]] std::string slug(std::string_view text);

}  // namespace rubato
