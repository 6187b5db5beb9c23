#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace rubato {

/// The pieces of `text` between the marks, as views into it; a text without marks is one piece,
/// which may be empty.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char mark);

/// Position of the comma before the arguments of "PATH,NAME=VALUE,...", or of the end. Paths may
/// contain commas, too; only text after a comma that looks like "NAME=" is an argument. `lists`
/// names the arguments that take several values separated by commas.
[[nodiscard]] std::size_t arguments_begin(std::string_view text,
                                          std::span<const std::string_view> lists = {});

}  // namespace rubato
