#pragma once

#include <array>
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

#include <rubato/base/digest.hpp>
#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/faults.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/of_part.hpp"

namespace rubato {

/// Texts by name; an empty text means unknown.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// The value of a column; std::monostate if the record has none, or if it was not measured.
using Cell = std::variant<std::monostate, std::int64_t, std::uint64_t, double, bool, std::string,
                          std::vector<std::int64_t>, std::vector<NamedNumber>, NamedTexts>;

/// The type of a column's cells, apart from those without a value.
enum class ColumnType { whole, real, flag, text, wholes, numbers, texts };

/// The unit of numbers that are 0 to 1 in files and 0 to 100 % for people.
inline constexpr const char* kShareUnit = "share";

/// The appearance of a column in progress lines; without a label it is not shown.
struct ProgressField {
  /// The label, with "{}" for the k of TrainOptions::top_k: "top-{} accuracy".
  std::string label{};
  /// The priority of a step's field if the bar has no room for all (LineField).
  int worth = 0;
  /// The number of characters that the bar reserves for a step's value.
  int width = 0;
  /// True to print significant digits, false for decimals.
  bool significant = false;
};

/// The sections of the page of a run, and their order.
inline constexpr const char* kLearningSection = "Learning";
inline constexpr const char* kBatchSection = "Batch and cores";
inline constexpr const char* kRateSection = "Rate, gain and noise";
inline constexpr const char* kTimeSection = "Where the time went";
inline constexpr std::array<const char*, 4> kPageSections{kLearningSection, kBatchSection,
                                                          kRateSection, kTimeSection};

/// The figure in which the page of a run draws a column of steps or epochs as a curve.
struct FigureField {
  /// The section of the page, and the title of the figure; empty if no figure shows the column.
  std::string section{};
  std::string title{};
  /// The name of the curve, if the figure has several.
  std::string label{};
  /// Curves with smaller numbers come first.
  int place = 0;
};

/// A number that training reports, except how it is read: all that files, Python, TensorBoard,
/// progress, states, JSON schemas and documents need to know.
struct ColumnInfo {
  /// The name where there is no nesting, as in Python's columns: letters, digits and "_", unique in
  /// a record. A "*" stands for the name of each number in a column of several.
  std::string name{};
  /// The unit of a number: "samples", "hours", kShareUnit. Empty if it has none.
  std::string unit{};
  /// A description, for documents and schemas.
  std::string help{};
  /// The JSON object within the record's that contains it; empty for the record's own.
  std::string object{};
  /// The key in JSON; if empty, the name.
  std::string key{};
  /// The tag of its curve in TensorBoard, with a "*" as in the name; empty if it has none.
  std::string tag{};
  /// JSON leaves out a flag with this value.
  std::optional<bool> usual{};
  /// True if JSON has null for a missing value; otherwise it leaves the key out.
  bool null_if_none = false;
  /// True if it is reported; false if it is only kept in states.
  bool shown = true;
  /// True if a trainer's state has this number of a TrainResult; the walk through the epochs has
  /// the others.
  bool kept = false;
  ProgressField progress{};
  FigureField figure{};

  // The following members are set from the accessor.

  ColumnType type = ColumnType::real;
  /// True if a record may be without the value, or without the object.
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

/// Matches StepIndex and the like.
template <class T>
concept IsIndex = !IsOptional<T>::value && requires(const T& index) {
  { index.value() } -> std::same_as<std::int64_t>;
};

template <class T>
constexpr ColumnType type_of() {
  if constexpr (std::is_same_v<T, bool>) return ColumnType::flag;
  if constexpr (std::is_integral_v<T> || IsIndex<T>) return ColumnType::whole;
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Digest>) {
    return ColumnType::text;
  }
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
  } else if constexpr (std::is_same_v<T, Digest>) {
    return value.to_text();
  } else if constexpr (std::is_same_v<T, int>) {
    return std::int64_t{value};
  } else {
    return value;
  }
}

// Returns false if the number is out of the range of `to`, or the text is no digest.
template <class T>
bool assign(T& to, const Cell& cell) {
  if constexpr (IsOptional<T>::value) {
    if (!std::holds_alternative<std::monostate>(cell)) return assign(to.emplace(), cell);
    to.reset();
  } else if constexpr (IsIndex<T>) {
    std::int64_t index = 0;
    if (!assign(index, cell)) return false;
    to = T{index};
  } else if constexpr (std::is_same_v<T, Digest>) {
    try {
      to = Digest::parse(std::get<std::string>(cell));
    } catch (const Error&) {
      return false;
    }
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const auto take = [&to](auto number) {
      if (std::in_range<T>(number)) to = static_cast<T>(number);
      return std::in_range<T>(number);
    };
    const auto* const large = std::get_if<std::uint64_t>(&cell);
    return large == nullptr ? take(std::get<std::int64_t>(cell)) : take(*large);
  } else {
    to = std::get<T>(cell);
  }
  return true;
}

}  // namespace column_detail

/// A column of a record: a row of its schema.
template <class Record>
class RecordColumn {
 public:
  using Read = std::function<Cell(const Record&)>;
  using Write = std::function<bool(Record&, const Cell&)>;

  /// `get` is a pointer to a member, or a function of the record. The column can be written if it
  /// returns a reference to a part of a record that is not const, or if `write` is given.
  template <class Get>
  RecordColumn(ColumnInfo info, Get get, Write write = {})
      : info_(std::move(info)), write_(std::move(write)) {
    using Value = std::remove_cvref_t<std::invoke_result_t<Get, const Record&>>;
    using Place = std::invoke_result_t<Get, Record&>;
    if constexpr (std::is_same_v<Value, Cell>) {
      read_ = get;
    } else {
      info_.type = column_detail::type_of<typename column_detail::Unwrapped<Value>::Type>();
      info_.optional = info_.optional || column_detail::IsOptional<Value>::value;
      read_ = [get](const Record& record) {
        return column_detail::cell_of<Value>(std::invoke(get, record));
      };
    }
    if constexpr (std::is_lvalue_reference_v<Place> &&
                  !std::is_const_v<std::remove_reference_t<Place>>) {
      write_ = [get](Record& record, const Cell& cell) {
        return column_detail::assign(std::invoke(get, record), cell);
      };
    }
  }

  [[nodiscard]] const ColumnInfo& info() const { return info_; }
  [[nodiscard]] Cell read(const Record& record) const { return read_(record); }
  /// False for a computed value.
  [[nodiscard]] bool is_writable() const { return write_ != nullptr; }
  /// The cell must have the column's type, or be std::monostate if the column is optional. Returns
  /// false if its number is out of the range of the record's.
  bool write(Record& record, const Cell& cell) const { return write_(record, cell); }

 private:
  ColumnInfo info_;
  Read read_;
  Write write_;
};

/// The name of a record, and its columns in order.
template <class Record>
struct RecordSchema {
  /// The name; for a line of metrics.jsonl its `kind`.
  std::string name{};
  /// A description of the record, for documents and schemas.
  std::string help{};
  std::vector<RecordColumn<Record>> columns{};
};

/// Adds the columns of a part to those of the record that contains it. `place` is a pointer to the
/// member, or a function of the record that returns a reference to the part, perhaps in a
/// std::optional: the columns have no value while that is empty. `change` adapts each column's info
/// to the record. Columns that are not shown are left out.
template <class Record, class Part, class Place, class Change>
void add_part(std::vector<RecordColumn<Record>>& columns,
              const std::vector<RecordColumn<Part>>& parts, const Place& place,
              const Change& change) {
  using Member = std::remove_cvref_t<std::invoke_result_t<Place, const Record&>>;
  constexpr bool kMayLack = column_detail::IsOptional<Member>::value;
  for (const RecordColumn<Part>& part : parts) {
    if (!part.info().shown) continue;
    ColumnInfo info = part.info();
    change(info);
    (info.object.empty() ? info.optional : info.object_optional) |= kMayLack;
    typename RecordColumn<Record>::Write write;
    if (part.is_writable()) {
      write = [part, place](Record& record, const Cell& cell) {
        auto& at = std::invoke(place, record);
        if constexpr (kMayLack) {
          return part.write(at ? *at : at.emplace(), cell);
        } else {
          return part.write(at, cell);
        }
      };
    }
    columns.emplace_back(
        std::move(info),
        [part, place](const Record& record) {
          const auto& at = std::invoke(place, record);
          if constexpr (kMayLack) {
            return at ? part.read(*at) : Cell();
          } else {
            return part.read(at);
          }
        },
        std::move(write));
  }
}

/// Returns the name or tag of one number in a column of several.
[[nodiscard]] inline std::string with_name(std::string_view pattern, std::string_view name) {
  return std::string(pattern).replace(pattern.find('*'), 1, name);
}

/// A part of a step, with the step.
template <class Part>
struct OfStep {
  StepIndex step{};
  Part part{};
};

/// A core that died, and the number of cores on which the step is redone.
struct FaultOfStep {
  StepIndex step{};
  FaultRecord fault{};
  std::int64_t cores_left = 0;
};

// The schemas of everything that training reports. All code that writes, shows, stores or documents
// a record reads these rows: a new number needs only a new row, and the code that computes it.

/// The record of a step; its `decision` and `seconds` are objects in JSON.
[[nodiscard]] const RecordSchema<StepRecord>& step_schema();
[[nodiscard]] const RecordSchema<OfStep<MinibatchRecord>>& minibatch_schema();
[[nodiscard]] const RecordSchema<EpochRecord>& epoch_schema();
[[nodiscard]] const RecordSchema<FaultOfStep>& fault_schema();
[[nodiscard]] const RecordSchema<OfStep<TensorStatistics>>& monitor_schema();
/// The result of a model on a data set; its columns except the number of samples also belong to
/// epochs, with the prefix "test_", and to results, with "final_test_"; tests of weights beside the
/// model's have their name before "test_".
[[nodiscard]] const RecordSchema<Evaluation>& evaluation_schema();
/// The clock of modelled time: an object `clock` in JSON.
[[nodiscard]] const RecordSchema<ClockTime>& clock_schema();
/// The result of training.
[[nodiscard]] const RecordSchema<TrainResult>& result_schema();

/// Visits the result of training as a part of a trainer's state. Loading requires an empty result.
void visit_result(StateVisitor& state, TrainResult& result);

/// Visits the part of an epoch with which a training ended.
void visit_part(StateVisitor& state, std::optional<EpochPart>& part);

}  // namespace rubato
