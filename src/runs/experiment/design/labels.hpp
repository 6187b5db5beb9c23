#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// How the values of an option are called where people read them: a file by its name without the
/// folder and the ending, "a100" for "data/a100.csv"; a folder of data by its name; all else as it
/// is. Values whose names would be the same keep their whole text.
[[nodiscard]] std::vector<std::string> labels_of(std::string_view option,
                                                 const std::vector<std::string>& values);

/// `text` as a part of the name of a file: what is no letter, digit, '.', '_', '+' or '-' becomes
/// '-', at most 60 characters.
[[nodiscard]] std::string slug(std::string_view text);

}  // namespace rubato
