#pragma once

#include <string_view>

namespace rubato::page {

// The files of web/, which CMake embeds into the program (cmake/EmbedFiles.cmake).

extern const std::string_view kPageHtml;
/// All style sheets, one after the other, and two of them.
extern const std::string_view kPageCss;
extern const std::string_view kColorsCss;
extern const std::string_view kPartsCss;
/// All scripts, concatenated.
extern const std::string_view kPageJs;
/// The notice that the license of the chart library requires.
extern const std::string_view kLibraryLicense;
/// Path at which CMake found the library.
extern const std::string_view kLibraryFile;

}  // namespace rubato::page
