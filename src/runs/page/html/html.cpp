#include "html.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/core/text/or_null.hpp"

namespace rubato::page {

namespace {

// A cell with a longer text can be wrapped into several lines.
constexpr std::size_t kLong = 24;

// Wraps a table that may be too wide, so that it can be scrolled horizontally, also by keyboard.
std::string scrolling(std::string_view title, const std::string& table) {
  return fmt::format(
      "<div class=\"scroll\" role=\"group\" aria-label=\"{}\" tabindex=\"0\">\n{}</div>\n",
      escaped(title), table);
}

std::string header_of(const AnswerDocument::Table& table) {
  std::string html = "<thead><tr>";
  for (std::size_t i = 0; i < table.rows.front().size(); ++i) {
    const std::string& text = table.rows.front()[i];
    const char* const right = table.alignment[i] == Column::right ? " class=\"right\"" : "";
    // An empty header cell would tell users of a screen reader nothing.
    html += text.empty() ? "<td></td>"
                         : fmt::format("<th scope=\"col\"{}>{}</th>", right, escaped(text));
  }
  return html + "</tr></thead>\n";
}

std::string row_of(const AnswerDocument::Table& table, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i < table.keys) {
      html += fmt::format("<th scope=\"row\">{}</th>", escaped(cells[i]));
    } else {
      const char* const looks = table.alignment[i] == Column::right ? " class=\"right\""
                                : cells[i].size() > kLong           ? " class=\"long\""
                                                                    : "";
      html += fmt::format("<td{}>{}</td>", looks, escaped(cells[i]));
    }
  }
  return html + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char letter : text) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += letter;
    }
  }
  return html;
}

std::string script_json(const nlohmann::ordered_json& json) {
  std::string text = json_text(json);
  // JSON has '<' only within strings, so it can be replaced everywhere.
  std::string safe;
  safe.reserve(text.size());
  for (const char letter : text) {
    if (letter == '<') {
      safe += "\\u003c";
    } else {
      safe += letter;
    }
  }
  return safe;
}

std::string paragraph(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("<p>{}</p>\n", escaped(text));
}

std::string list(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::string html = "<ul>\n";
  for (const std::string& text : texts) html += fmt::format("<li>{}</li>\n", escaped(text));
  return html + "</ul>\n";
}

std::string folded(std::string_view heading, std::string_view text) {
  return fmt::format(
      "<details><summary>{0}</summary>\n<pre tabindex=\"0\" role=\"group\" "
      "aria-label=\"{0}\">{1}</pre></details>\n",
      escaped(heading), escaped(text));
}

std::string folded_html(std::string_view heading, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(heading), html);
}

std::string table(const AnswerDocument::Table& table) {
  std::string rows;
  for (std::size_t i = 1; i < table.rows.size(); ++i) rows += row_of(table, table.rows[i]);
  std::string html = scrolling(
      table.title, fmt::format("<table><caption>{}</caption>\n{}<tbody>\n{}</tbody></table>\n",
                               escaped(table.title), header_of(table), rows));
  for (const std::string& note : table.notes) html += paragraph(note);
  return html;
}

std::string facts(std::string_view title, int level, const Rows& rows) {
  if (rows.empty()) return {};
  std::string html = fmt::format("<h{0}>{1}</h{0}>\n<dl class=\"facts\">\n", level, escaped(title));
  for (const auto& [name, value] : rows) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
  }
  return html + "</dl>\n";
}

}  // namespace rubato::page
