#include "record_json.hpp"

#include <type_traits>

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// The JSON value of a cell; null if the cell is empty.
Json json_of(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        using Value = std::remove_cvref_t<decltype(value)>;
        Json json;
        if constexpr (std::is_same_v<Value, std::vector<NamedNumber>>) {
          for (const NamedNumber& number : value) json[number.name] = number.value;
        } else if constexpr (std::is_same_v<Value, NamedTexts>) {
          json = Json::object();
          for (const auto& [name, text] : value) {
            json[name] = text.empty() ? Json() : Json(text);
          }
        } else if constexpr (!std::is_same_v<Value, std::monostate>) {
          json = value;
        }
        return json;
      },
      cell);
}

}  // namespace

void put_cell(Json& json, const ColumnInfo& column, const Cell& cell) {
  if (column.usual && cell == Cell(*column.usual)) return;
  Json value = json_of(cell);
  const bool is_none = value.is_null();
  if (is_none && !column.null_if_none) return;
  if (column.object.empty()) {
    json[column.json_key()] = std::move(value);
  } else if (Json& object = json[column.object]; !is_none || object.is_object()) {
    object[column.json_key()] = std::move(value);
  }
}

const nlohmann::json* value_in(const nlohmann::json& record, const ColumnInfo& column) {
  const nlohmann::json* object = &record;
  for (const std::string& key : {column.object, column.json_key()}) {
    if (key.empty()) continue;
    const auto found = object->find(key);
    if (found == object->end()) return nullptr;
    object = &*found;
  }
  return object;
}

}  // namespace rubato
