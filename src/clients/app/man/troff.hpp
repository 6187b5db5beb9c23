#pragma once

#include <string>
#include <string_view>

namespace rubato::app {

/// Escapes text for troff, so that it is printed literally.
[[nodiscard]] std::string troff(std::string_view text);
[[nodiscard]] std::string troff_bold(std::string_view text);
[[nodiscard]] std::string troff_italic(std::string_view text);

/// The same, with --options and text in `backticks` in bold.
[[nodiscard]] std::string troff_prose(std::string_view text);

}  // namespace rubato::app
