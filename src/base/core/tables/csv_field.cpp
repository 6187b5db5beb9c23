#include "csv_field.hpp"

namespace rubato {

std::string csv_field(std::string_view text) {
  const bool blanks = text.starts_with(' ') || text.ends_with(' ');
  if (!blanks && text.find_first_of("\",\n\r") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char letter : text) {
    if (letter == '"') field += '"';
    field += letter;
  }
  return field + '"';
}

}  // namespace rubato
