#include "troff.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace rubato::app {

namespace {

bool is_of_option(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0 || c == '-';
}

// Returns the end of the option that begins at `begin`, or `begin` if none does.
std::size_t end_of_option(std::string_view text, std::size_t begin) {
  const bool begins = begin == 0 || text[begin - 1] == ' ' || text[begin - 1] == '(';
  if (!begins || !text.substr(begin).starts_with("--")) return begin;
  std::size_t end = begin + 2;
  while (end < text.size() && is_of_option(text[end])) ++end;
  return end == begin + 2 ? begin : end;
}

}  // namespace

std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':  // a plain one is a hyphen, which does not paste as '-'
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '|':  // a line may be broken between the values of an option
        out += "|\\:";
        break;
      case '.':  // a dot at the beginning of a line would be a request
        out += "\\&.";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string troff_bold(std::string_view text) {
  return text.empty() ? "" : fmt::format("\\fB{}\\fR", troff(text));
}

std::string troff_italic(std::string_view text) {
  return text.empty() ? "" : fmt::format("\\fI{}\\fR", troff(text));
}

std::string troff_prose(std::string_view text) {
  std::string out;
  std::size_t plain = 0;  // the text from here on is not written yet
  const auto mark = [&](std::size_t begin, std::size_t end, std::size_t next, std::size_t from) {
    out += troff(text.substr(plain, begin - plain)) + troff_bold(text.substr(from, end - from));
    plain = next;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = end_of_option(text, i);
    const std::size_t quote = text[i] == '`' ? text.find('`', i + 1) : std::string_view::npos;
    if (end != i) {
      mark(i, end, end, i);
    } else if (quote != std::string_view::npos) {
      mark(i, quote, quote + 1, i + 1);
    }
    i = std::max(i + 1, plain);
  }
  return out + troff(text.substr(plain));
}

}  // namespace rubato::app
