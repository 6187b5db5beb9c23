#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::test {

/// What a terminal shows that has been sent text and the few control sequences with which rubato
/// draws over what is there; it has as many rows as are needed.
class Screen {
 public:
  explicit Screen(std::size_t columns) : columns_(columns) {}

  void send(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\r') {
        column_ = 0;
      } else if (text[i] == '\n') {
        // A terminal that is written to by programs begins the next line with it.
        ++row_;
        column_ = 0;
      } else if (text[i] == '\x1b') {
        i = control(text, i + 2);
      } else {
        std::size_t length = 1;
        while (i + length < text.size() && goes_on(text[i + length])) ++length;
        put(std::string(text.substr(i, length)));
        i += length - 1;
      }
    }
  }
  /// Its rows down to the cursor, without blanks at their ends.
  [[nodiscard]] std::vector<std::string> rows() {
    std::vector<std::string> all;
    for (std::size_t row = 0; row <= std::max(row_, rows_.size() == 0 ? 0 : rows_.size() - 1);
         ++row) {
      std::string text;
      for (const std::string& cell : at(row)) text += cell;
      text.erase(text.find_last_not_of(' ') + 1);
      all.push_back(text);
    }
    return all;
  }
  [[nodiscard]] bool at_line_begin() const { return column_ == 0; }
  [[nodiscard]] bool shows_cursor() const { return shows_cursor_; }

 private:
  static bool goes_on(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

  std::vector<std::string>& at(std::size_t row) {
    if (row >= rows_.size()) rows_.resize(row + 1);
    return rows_[row];
  }
  void put(std::string cell) {
    if (column_ == columns_) {
      ++row_;
      column_ = 0;
    }
    std::vector<std::string>& row = at(row_);
    if (column_ >= row.size()) row.resize(column_ + 1, " ");
    row[column_++] = std::move(cell);
  }
  // Behind "\x1b["; where the sequence ends.
  std::size_t control(std::string_view text, std::size_t begin) {
    const std::size_t end = text.find_first_of("ABCDHJKhlm", begin);
    const std::string argument(text.substr(begin, end - begin));
    const std::size_t count = argument.empty() || argument[0] == '?' ? 1 : std::stoul(argument);
    if (text[end] == 'A') row_ -= std::min(row_, count);
    if (text[end] == 'K') {
      std::vector<std::string>& row = at(row_);
      row.resize(argument == "2" ? 0 : std::min(row.size(), column_));
    }
    if (text[end] == 'J') {
      at(row_).resize(std::min(at(row_).size(), column_));
      rows_.resize(row_ + 1);
    }
    if (argument == "?25") shows_cursor_ = text[end] == 'h';
    return end;
  }

  std::size_t columns_;
  std::vector<std::vector<std::string>> rows_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  bool shows_cursor_ = true;
};

}  // namespace rubato::test
