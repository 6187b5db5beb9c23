#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/core/vectors.hpp"
#include "text.hpp"
#include "text_table.hpp"

// The output of commands is declared once, as the fields of the values that they print: JSON, JSON
// Schema and tables are made from them. Records, which are also read back, have columns instead
// (loop/train/record_schemas.hpp).
namespace rubato {

/// How values of a type are written as JSON, and the JSON Schema of all that is written so.
template <class T>
struct JsonForm {
  nlohmann::ordered_json schema{};
  std::function<nlohmann::ordered_json(const T&)> write{};
};

/// Values by name, in order; an object in JSON.
template <class T>
using ByName = std::vector<std::pair<std::string, T>>;

template <class T>
inline constexpr bool kIsByName = false;
template <class T>
inline constexpr bool kIsByName<ByName<T>> = true;

template <class T>
[[nodiscard]] JsonForm<T> plain_form(const char* type) {
  return {{{"type", type}}, [](const T& value) { return nlohmann::ordered_json(value); }};
}

/// The form of true or false, of a number, or of a text; of what `part` is the form of; and of a
/// list, values by name or a std::optional of these, which is null if it is empty.
template <class T, class... Part>
[[nodiscard]] JsonForm<T> form_of(const JsonForm<Part>&... part) {
  using Json = nlohmann::ordered_json;
  if constexpr ((std::is_same_v<T, Part> || ...)) {
    return (part, ...);
  } else if constexpr (std::is_same_v<T, bool>) {
    return plain_form<T>("boolean");
  } else if constexpr (std::is_integral_v<T>) {
    return plain_form<T>("integer");
  } else if constexpr (std::is_floating_point_v<T>) {
    return plain_form<T>("number");
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return plain_form<T>("string");
  } else if constexpr (kIsByName<T>) {
    using Item = typename T::value_type::second_type;
    JsonForm<Item> form = form_of<Item>(part...);
    return {{{"type", "object"}, {"additionalProperties", std::move(form.schema)}},
            [write = std::move(form.write)](const T& items) {
              Json object = Json::object();
              for (const auto& [name, item] : items) object[name] = write(item);
              return object;
            }};
  } else if constexpr (requires(const T& value) { value.has_value(); }) {
    JsonForm<typename T::value_type> form = form_of<typename T::value_type>(part...);
    form.schema["type"] = Json::array({form.schema["type"], "null"});
    return {std::move(form.schema), [write = std::move(form.write)](const T& value) {
              return value ? write(*value) : Json();
            }};
  } else {
    using Item = std::ranges::range_value_t<T>;
    JsonForm<Item> form = form_of<Item>(part...);
    return {{{"type", "array"}, {"items", std::move(form.schema)}},
            [write = std::move(form.write)](const T& list) {
              Json array = Json::array();
              for (const Item& item : list) array.push_back(write(item));
              return array;
            }};
  }
}

/// The form of an enumeration whose values and their names, as in a Choice, are rows of a table
/// that has them all.
template <class Row, std::size_t N>
[[nodiscard]] JsonForm<decltype(Row::value)> form_of_choice(const std::array<Row, N>& rows) {
  nlohmann::ordered_json names;
  for (const Row& row : rows) names.push_back(row.name);
  return {{{"type", "string"}, {"enum", std::move(names)}}, [rows](const auto& value) {
            return nlohmann::ordered_json(std::ranges::find(rows, value, &Row::value)->name);
          }};
}

/// The accessor of a text that counts as missing if it is empty.
template <class T>
[[nodiscard]] auto text_or_none(std::string T::*member) {
  return [member](const T& of) {
    return (of.*member).empty() ? std::nullopt : std::optional(of.*member);
  };
}

/// How a key of the JSON is shown as a column of a table.
struct OutputColumn {
  std::string heading{};
  Column align = Column::right;
  /// The text of a value that is not null; without it, that of the JSON.
  std::function<std::string(const nlohmann::ordered_json&)> text{};

  [[nodiscard]] std::string cell(const nlohmann::ordered_json& value) const {
    if (value.is_null()) return "-";
    if (text) return text(value);
    return value.is_string() ? printable(value.get<std::string>()) : value.dump();
  }
};

/// A fact about a T: a key of its JSON, a column of a table with a row for each T, or both.
template <class T>
struct OutputField {
  using Json = nlohmann::ordered_json;

  /// A key of the JSON. `get` is a pointer to a member, or a function of a T; form_of() of what it
  /// returns, and of `part`, says how that is written. "name?" is left out of the JSON, instead of
  /// null, where its std::optional is empty.
  template <class Get, class... Part>
  OutputField(std::string name, const char* help, Get get, const JsonForm<Part>&... part)
      : key(std::move(name)) {
    using Value = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
    JsonForm<Value> form = form_of<Value>(part...);
    schema = std::move(form.schema);
    schema["description"] = help;
    if (key.back() == '?') {
      key.pop_back();
      is_required = false;
      schema["type"] = Json(schema["type"][0]);
    }
    write = [get, value = std::move(form.write)](const T& of) {
      return value(std::invoke(get, of));
    };
  }
  /// A key that is a column of the table, too.
  template <class Get>
  OutputField(std::string name, const char* help, Get get, OutputColumn column)
      : OutputField(std::move(name), help, std::move(get)) {
    heading = column.heading;
    align = column.align;
    text = [value = write, column = std::move(column)](const T& of) {
      return column.cell(value(of));
    };
  }
  /// A column that is no key of the JSON. The table has it if some row `has` it.
  OutputField(std::string name, Column side, std::function<std::string(const T&)> cell,
              std::function<bool(const T&)> has = {})
      : heading(std::move(name)), align(side), text(std::move(cell)), is_in(std::move(has)) {}

  /// Empty if it is no key of the JSON.
  std::string key{};
  Json schema{};
  std::function<Json(const T&)> write{};
  bool is_required = true;

  std::string heading{};
  Column align = Column::right;
  /// Empty if it is no column of the table.
  std::function<std::string(const T&)> text{};
  std::function<bool(const T&)> is_in{};
};

template <class T>
using OutputFields = std::vector<OutputField<T>>;

/// The form of an object with these fields.
template <class T>
[[nodiscard]] JsonForm<T> form_of_object(OutputFields<T> fields) {
  using Json = nlohmann::ordered_json;
  Json schema{{"type", "object"},
              {"properties", Json::object()},
              {"required", Json::array()},
              {"additionalProperties", false}};
  std::erase_if(fields, [](const OutputField<T>& field) { return field.key.empty(); });
  for (const OutputField<T>& field : fields) {
    schema["properties"][field.key] = field.schema;
    if (field.is_required) schema["required"].push_back(field.key);
  }
  return {std::move(schema), [fields = std::move(fields)](const T& of) {
            Json object = Json::object();
            for (const OutputField<T>& field : fields) {
              Json value = field.write(of);
              if (field.is_required || !value.is_null()) object[field.key] = std::move(value);
            }
            return object;
          }};
}

/// A table of the fields that are columns, with a row for each T below the headings; the first
/// `keys` columns identify a row.
template <class T>
[[nodiscard]] TextTable table_of(OutputFields<T> fields, std::span<const T> rows,
                                 std::size_t keys = 1) {
  std::vector<Column> columns;
  std::vector<std::string> headings;
  std::erase_if(fields, [&](const OutputField<T>& field) {
    return !field.text || (field.is_in && std::ranges::none_of(rows, field.is_in));
  });
  for (const OutputField<T>& field : fields) {
    columns.push_back(field.align);
    headings.push_back(field.heading);
  }
  TextTable table(std::move(columns), 0, keys);
  table.add(std::move(headings));
  for (const T& row : rows) {
    table.add(vector_of(fields, [&row](const OutputField<T>& field) { return field.text(row); }));
  }
  return table;
}

}  // namespace rubato
