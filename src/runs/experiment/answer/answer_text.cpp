#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "answer_document.hpp"
#include "base/core/text/wrapped.hpp"

namespace rubato {

namespace {

// A message may consist of several lines.
std::string wrapped_lines(const std::string& text, LineWidth width) {
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += wrapped(text.substr(begin, end - begin), 0, width) + '\n';
    begin = end + 1;
  }
  return lines;
}

std::string escaped(std::string cell) {
  for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) {
    cell.insert(at, 1, '\\');
  }
  return cell;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += fmt::format(" {} |", escaped(cell));
  return row + '\n';
}

std::string markdown_table(const AnswerDocument::Table& table) {
  std::string text = fmt::format("\n## {}\n", table.title);
  text += markdown_row(table.rows.front());
  text += '|';
  for (const Column column : table.alignment) text += column == Column::right ? "--:|" : "---|";
  text += '\n';
  for (std::size_t i = 1; i < table.rows.size(); ++i) text += markdown_row(table.rows[i]);
  for (const std::string& note : table.notes) text += '\n' + note + '\n';
  return text;
}

}  // namespace

std::string to_text(const AnswerDocument& document, LineWidth width) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += wrapped_lines(line, width);
  };
  add(document.facts);
  for (const auto& [title, alignment, keys, rows, notes, kind] : document.tables) {
    TextTable table(alignment, 2, keys);
    for (const std::vector<std::string>& row : rows) table.add(row);
    text += fmt::format("\n{}\n{}", fitted(title, width), table.text(width));
    add(notes);
  }
  if (!document.notes.empty()) text += '\n';
  add(document.notes);
  return text + '\n' + wrapped_lines(document.limits, width);
}

std::string to_markdown(const AnswerDocument& document) {
  std::string text = "# What `rubato compare` found\n";
  for (const std::string& fact : document.facts) text += fmt::format("- {}\n", fact);
  for (const AnswerDocument::Table& table : document.tables) text += markdown_table(table);
  if (!document.notes.empty()) text += "\n## Remarks on runs\n";
  for (const std::string& note : document.notes) text += fmt::format("- {}\n", note);
  return text + fmt::format("\n## Limits\n{}\n", document.limits);
}

}  // namespace rubato
