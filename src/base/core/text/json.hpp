#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace rubato {

/// The version of JSON Schema in which rubato describes its JSON.
inline constexpr const char* kJsonSchemaDraft = "https://json-schema.org/draft/2020-12/schema";

/// The value as JSON; null if it is empty.
template <class Value>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
/// The text as JSON; null if it is empty.
[[nodiscard]] inline nlohmann::ordered_json or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

/// The number that an object has under this key; empty if it has none, or `json` is not an object.
[[nodiscard]] inline std::optional<double> number_at(const nlohmann::json& json,
                                                     const std::string& key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>())
                                                   : std::nullopt;
}

/// The document as text, on one line or indented by `indent` blanks. File names may contain any
/// bytes; those that are not UTF-8 become the replacement character.
template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rubato
