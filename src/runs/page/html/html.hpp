#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runs/experiment/answer/answer_document.hpp"

namespace rubato::page {

/// Names and what they are.
using Rows = std::vector<std::pair<std::string, std::string>>;

/// Text as it stands in an element, or in an attribute between quotes: nothing of it is markup.
[[nodiscard]] std::string escaped(std::string_view text);

/// JSON as it stands in a <script>, which nothing in it can end. Bytes that are no UTF-8 are
/// replaced.
[[nodiscard]] std::string script_json(const nlohmann::ordered_json& json);

/// <p>TEXT</p>; nothing where the text is empty.
[[nodiscard]] std::string paragraph(std::string_view text);
/// The texts as a list; nothing where there are none.
[[nodiscard]] std::string list(const std::vector<std::string>& texts);
/// A text with lines of its own, such as a file, behind a heading that opens it.
[[nodiscard]] std::string folded(std::string_view heading, std::string_view text);
/// The same of what is HTML already.
[[nodiscard]] std::string folded_html(std::string_view heading, const std::string& html);

/// A table with its title and its notes. What is too wide scrolls sideways by itself.
[[nodiscard]] std::string table(const AnswerDocument::Table& table);
/// Names and what they are, behind a heading of that level; nothing where there are none.
[[nodiscard]] std::string facts(std::string_view title, int level, const Rows& rows);

}  // namespace rubato::page
