#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace rubato::page {

/// What a page says.
struct Document {
  std::string title{};
  /// HTML: the answer, which comes first.
  std::string answer{};
  /// For the charts, which come next (web/main.js).
  nlohmann::ordered_json charts{};
  /// HTML: what comes last.
  std::string end{};
};

/// The file of the library that draws the charts, as it was found when rubato was built.
[[nodiscard]] std::filesystem::path chart_library_file();
/// Its text. Throws Error, with the package, where it is not there.
[[nodiscard]] std::string read_chart_library(const std::filesystem::path& file);

/// The whole file, which needs no other: styles, scripts and data are in it, and its policy lets a
/// browser run these scripts alone and fetch nothing.
[[nodiscard]] std::string to_html(const Document& document, const std::string& library);

}  // namespace rubato::page
