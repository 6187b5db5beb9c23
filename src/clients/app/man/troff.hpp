#pragma once

#include <string>
#include <string_view>

namespace rubato::app {

/// Text as it is, for troff: what has a meaning there is taken literally.
[[nodiscard]] std::string troff(std::string_view text);
[[nodiscard]] std::string troff_bold(std::string_view text);
[[nodiscard]] std::string troff_italic(std::string_view text);

/// The same, with what stands in `backticks` and --options in bold.
[[nodiscard]] std::string troff_prose(std::string_view text);

}  // namespace rubato::app
