#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runs/experiment/answer/answer_document.hpp"

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

/// Pairs of a name and its value.
using Rows = std::vector<std::pair<std::string, std::string>>;

/// Text escaped for an element or for an attribute in quotes, so that none of it is markup.
[[nodiscard]] std::string escaped(std::string_view text);

/// JSON as the contents of a <script> element, escaped so that it cannot end the element. Invalid
/// UTF-8 is replaced.
[[nodiscard]] std::string script_json(const nlohmann::ordered_json& json);

/// Makes <p>TEXT</p>; empty if the text is empty.
[[nodiscard]] std::string paragraph(std::string_view text);
/// The texts as a list; empty if there are none.
[[nodiscard]] std::string list(const std::vector<std::string>& texts);
/// A preformatted text, such as a file, which unfolds when its heading is clicked.
[[nodiscard]] std::string folded(std::string_view heading, std::string_view text);
/// The same for HTML.
[[nodiscard]] std::string folded_html(std::string_view heading, const std::string& html);

/// A table with its title and its notes. A table that is too wide scrolls horizontally.
[[nodiscard]] std::string table(const AnswerDocument::Table& table);
/// Names and values below a heading of this level; empty if there are none.
[[nodiscard]] std::string facts(std::string_view title, int level, const Rows& rows);

/// A Content-Security-Policy that allows a page exactly these inline scripts and styles, by their
/// hashes: the page can load nothing and send nothing.
[[nodiscard]] std::string security_policy(std::span<const std::string_view> scripts,
                                          std::span<const std::string_view> styles);

}  // namespace rubato::page
