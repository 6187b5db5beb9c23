#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace rubato::page {

/// The contents of a page.
struct Document {
  std::string title{};
  /// HTML of the answer, which comes first.
  std::string answer{};
  /// Data of the charts, which come next (web/main.js).
  nlohmann::ordered_json charts{};
  /// HTML that follows the charts.
  std::string end{};
};

/// Path of the library that draws the charts, as found when rubato was built.
[[nodiscard]] std::filesystem::path chart_library_file();
/// Reads the library. Throws Error, which names the package, if it is missing, and if it cannot be
/// embedded in a page.
[[nodiscard]] std::string read_chart_library(const std::filesystem::path& file);

/// The text of a self-contained HTML file with styles, scripts and data. Its policy allows only
/// these scripts and no requests.
[[nodiscard]] std::string to_html(const Document& document, const std::string& library);

}  // namespace rubato::page
