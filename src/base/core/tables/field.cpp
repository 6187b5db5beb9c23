#include "field.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

namespace rubato::detail {

namespace {

// The field without ".0", which a column of floating-point numbers has in every row.
std::string_view without_fraction(std::string_view field) {
  const std::string_view whole =
      field.substr(0, field.size() - std::min<std::size_t>(field.size(), 2));
  const bool digits =
      !whole.empty() && whole.find_first_not_of("-0123456789") == std::string_view::npos;
  return digits && field.ends_with(".0") ? whole : field;
}

}  // namespace

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  if (text.size() > kLongest) shown += "...";
  return fmt::format("'{}'", shown);
}

void require_no_utf16(std::string_view beginning, const std::string& source) {
  const bool marked = beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF");
  const std::string_view first = beginning.substr(0, 2);
  const bool half_zero = first.size() == 2 && (first[0] == '\0') != (first[1] == '\0');
  if (!marked && !half_zero) return;
  throw Error(fmt::format("{}: it is in UTF-16; accepted: a text in UTF-8", source));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool is_name(std::string_view field, std::string_view name) {
  return std::equal(field.begin(), field.end(), name.begin(), name.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

std::optional<std::int64_t> whole_number(std::string_view field) {
  field = without_fraction(field);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size()) return std::nullopt;
  return value;
}

std::string_view flaw_of(std::string_view field) {
  field = without_fraction(field);
  if (field.empty()) return "is empty";
  if (!is_number(field)) return "is not a number";
  const bool whole = field.find_first_not_of("-0123456789") == std::string_view::npos;
  if (!whole) return "is not a whole number";
  if (field.starts_with('-')) return "is negative";
  return field.find_first_not_of('0') == std::string_view::npos ? "is zero" : "is too large";
}

}  // namespace rubato::detail
