#pragma once

#include <string_view>
#include <vector>

namespace rubato {

/// The pieces of `text` between the marks, as views into it; one, which may be empty, where there
/// is no mark.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char mark);

}  // namespace rubato
