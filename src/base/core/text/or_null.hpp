#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace rubato {

/// As JSON has it: null where there is no value.
template <class Value>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
/// The same of a text, of which an empty one is none.
[[nodiscard]] inline nlohmann::ordered_json or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

/// The document as text, on one line, or indented by so many blanks. Names of files may be any
/// bytes: what is not UTF-8 in them becomes the replacement character.
template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rubato
