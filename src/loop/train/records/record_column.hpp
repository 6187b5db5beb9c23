#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <rubato/steps/step_source.hpp>

namespace rubato {

/// Texts by name, of which an empty one is unknown.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// The value of a column; std::monostate where the record has none, or it was not measured.
using Cell = std::variant<std::monostate, std::int64_t, std::uint64_t, double, bool, std::string,
                          std::vector<std::int64_t>, std::vector<NamedNumber>, NamedTexts>;

/// What the cells of a column are, but for those without a value.
enum class ColumnType { whole, real, flag, text, wholes, numbers, texts };

/// The unit of what is 0 to 1 in files and 0 to 100 % for people.
inline constexpr const char* kShareUnit = "share";

/// How progress shows a column; not at all without a label.
struct ProgressField {
  /// With "{}" for the k of TrainOptions::top_k: "top-{} accuracy".
  std::string label{};
  /// Of a step: what the field is worth where the bar has no room for all (LineField).
  int worth = 0;
  /// Of a step: the bar's characters for the value.
  int width = 0;
  /// With significant digits, not decimals.
  bool significant = false;
};

/// A number that training reports, but for how it is read: what files, Python, TensorBoard,
/// progress, states, JSON schemas and documents know of it.
struct ColumnInfo {
  /// Where there is no nesting: Python's columns. Different in each column of a record: letters,
  /// digits and "_". A "*" stands for the name of each number in a column of them.
  std::string name{};
  /// Of a number: "samples", "hours", kShareUnit. Empty where it has none.
  std::string unit{};
  /// What it is, for documents and schemas.
  std::string help{};
  /// The JSON object that it is in, within the record's; empty for the record's own.
  std::string object{};
  /// Its key in JSON; the name where empty.
  std::string key{};
  /// The tag of its curve in TensorBoard, a "*" as in the name; empty where it has none.
  std::string tag{};
  /// A flag with this value is left out of JSON.
  std::optional<bool> usual{};
  /// Whether JSON has null for what has no value, which is otherwise left out.
  bool null_if_none = false;
  /// Whether it is reported. What is not is only kept in states.
  bool shown = true;
  /// Whether a trainer's state has it, of a TrainResult; the walk through the epochs knows the
  /// rest.
  bool kept = false;
  ProgressField progress{};

  // What the accessor says.

  ColumnType type = ColumnType::real;
  /// Whether a record may be without a value, and whether it may be without the object.
  bool optional = false;
  bool object_optional = false;

  [[nodiscard]] const std::string& json_key() const { return key.empty() ? name : key; }
};

namespace column_detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct Unwrapped {
  using Type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};

/// StepIndex and the like.
template <class T>
concept IsIndex = !IsOptional<T>::value && requires(const T& index) {
  { index.value() } -> std::same_as<std::int64_t>;
};

template <class T>
constexpr ColumnType type_of() {
  if constexpr (std::is_same_v<T, bool>) return ColumnType::flag;
  if constexpr (std::is_integral_v<T> || IsIndex<T>) return ColumnType::whole;
  if constexpr (std::is_same_v<T, std::string>) return ColumnType::text;
  if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) return ColumnType::wholes;
  if constexpr (std::is_same_v<T, std::vector<NamedNumber>>) return ColumnType::numbers;
  if constexpr (std::is_same_v<T, NamedTexts>) return ColumnType::texts;
  return ColumnType::real;
}

template <class T>
Cell cell_of(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return value ? cell_of(*value) : Cell();
  } else if constexpr (IsIndex<T>) {
    return value.value();
  } else if constexpr (std::is_same_v<T, int>) {
    return std::int64_t{value};
  } else {
    return value;
  }
}

template <class T>
void assign(T& to, const Cell& cell) {
  if constexpr (IsOptional<T>::value) {
    if (std::holds_alternative<std::monostate>(cell)) return to.reset();
    assign(to.emplace(), cell);
  } else if constexpr (IsIndex<T>) {
    to = T{std::get<std::int64_t>(cell)};
  } else if constexpr (std::is_same_v<T, int>) {
    to = static_cast<int>(std::get<std::int64_t>(cell));
  } else {
    to = std::get<T>(cell);
  }
}

}  // namespace column_detail

/// A column of a record: a row of its schema.
template <class Record>
class RecordColumn {
 public:
  using Read = std::function<Cell(const Record&)>;
  using Write = std::function<void(Record&, const Cell&)>;

  /// `get` is a pointer to a member, or a function of the record for what is computed.
  template <class Get>
  RecordColumn(ColumnInfo info, Get get) : info_(std::move(info)) {
    using Value = std::remove_cvref_t<std::invoke_result_t<Get, const Record&>>;
    info_.type = column_detail::type_of<typename column_detail::Unwrapped<Value>::Type>();
    info_.optional = info_.optional || column_detail::IsOptional<Value>::value;
    read_ = [get](const Record& record) {
      return column_detail::cell_of<Value>(std::invoke(get, record));
    };
    if constexpr (std::is_member_object_pointer_v<Get>) {
      write_ = [get](Record& record, const Cell& cell) {
        column_detail::assign(record.*get, cell);
      };
    }
  }
  RecordColumn(ColumnInfo info, Read read, Write write)
      : info_(std::move(info)), read_(std::move(read)), write_(std::move(write)) {}

  [[nodiscard]] const ColumnInfo& info() const { return info_; }
  [[nodiscard]] Cell read(const Record& record) const { return read_(record); }
  /// False of what is computed.
  [[nodiscard]] bool is_writable() const { return write_ != nullptr; }
  /// Of its type, or std::monostate where it is optional.
  void write(Record& record, const Cell& cell) const { write_(record, cell); }

 private:
  ColumnInfo info_;
  Read read_;
  Write write_;
};

/// What a record is called, and its columns in their order.
template <class Record>
struct RecordSchema {
  /// Of a line of metrics.jsonl its `kind`.
  std::string name{};
  /// What it is of, for documents and schemas.
  std::string help{};
  std::vector<RecordColumn<Record>> columns{};
};

/// Adds the columns of a part to those of the record that it is a member of, perhaps as a
/// std::optional: without it they have no value. `change` makes of a column's info what it is
/// there. Only of what is shown.
template <class Record, class Part, class Member, class Change>
void add_part(std::vector<RecordColumn<Record>>& columns,
              const std::vector<RecordColumn<Part>>& parts, Member Record::*member,
              const Change& change) {
  constexpr bool kMayLack = column_detail::IsOptional<Member>::value;
  for (const RecordColumn<Part>& part : parts) {
    if (!part.info().shown) continue;
    ColumnInfo info = part.info();
    change(info);
    (info.object.empty() ? info.optional : info.object_optional) |= kMayLack;
    typename RecordColumn<Record>::Write write;
    if (part.is_writable()) {
      write = [part, member](Record& record, const Cell& cell) {
        if constexpr (kMayLack) {
          if (!(record.*member)) (record.*member).emplace();
          part.write(*(record.*member), cell);
        } else {
          part.write(record.*member, cell);
        }
      };
    }
    columns.emplace_back(
        std::move(info),
        [part, member](const Record& record) {
          if constexpr (kMayLack) {
            return record.*member ? part.read(*(record.*member)) : Cell();
          } else {
            return part.read(record.*member);
          }
        },
        std::move(write));
  }
}

/// The name of a column, or its tag, of one of its numbers.
[[nodiscard]] inline std::string with_name(std::string_view pattern, std::string_view name) {
  return std::string(pattern).replace(pattern.find('*'), 1, name);
}

}  // namespace rubato
