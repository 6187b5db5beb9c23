#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <pybind11/pybind11.h>

#include <rubato/train/monitor.hpp>
#include <rubato/train/observer.hpp>
#include <rubato/train/records.hpp>

namespace rubato::python {

/// A value with a name, as records have them; empty where it was not measured.
struct Field {
  std::string name;
  std::optional<std::variant<std::int64_t, double, bool, std::string>> value{};
};
using Row = std::vector<Field>;

// Records as metrics.jsonl has them, without nesting: "wall_seconds" is "seconds": {"wall"} there.
// What is a list there, the substeps of a step, is left out.

[[nodiscard]] Row row_of(const StepRecord& step);
[[nodiscard]] Row row_of(const MinibatchRecord& minibatch, StepIndex step);
[[nodiscard]] Row row_of(const EpochRecord& epoch);
[[nodiscard]] Row row_of(const FaultRecord& fault, StepIndex step, std::int64_t cores_left);
[[nodiscard]] Row row_of(const TensorStatistics& tensor, StepIndex step);

/// {name: value or None}.
[[nodiscard]] pybind11::dict dict_of(const Row& row);

/// Rows as columns, which come and go with what is measured.
class Table {
 public:
  void add(const Row& row);
  /// {name: numpy array}: of int64, float64, bool or text; NaN (of text, "") is what was not
  /// measured in a row. Columns of which nothing was ever measured are left out.
  [[nodiscard]] pybind11::dict columns() const;

 private:
  struct Column {
    // Numbers, or texts.
    std::vector<double> values;
    std::vector<std::string> texts;
    // Of the type of all of its values, as long as they have one.
    std::size_t type = 0;
    bool complete = true;
  };

  std::vector<std::string> names_;
  std::map<std::string, Column> columns_;
  std::size_t rows_ = 0;
};

}  // namespace rubato::python
