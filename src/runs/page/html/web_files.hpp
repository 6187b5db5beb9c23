#pragma once

#include <string_view>

namespace rubato::page {

// The files of web/, which CMake puts into the program (cmake/EmbedFiles.cmake).

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
/// All scripts, one after the other.
extern const std::string_view kPageJs;
/// The notice that the license of the chart library asks for.
extern const std::string_view kLibraryLicense;
/// Where CMake found the library.
extern const std::string_view kLibraryFile;

}  // namespace rubato::page
