#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runs/experiment/answer/answer_document.hpp"

namespace rubato::page {

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

}  // namespace rubato::page
