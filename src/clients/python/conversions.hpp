#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/pybind11.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/model.hpp>

#include "loop/train/record_schemas.hpp"

namespace rubato::python {

/// A cell with the name of its column.
struct Field {
  std::string name;
  Cell value{};
};
using Row = std::vector<Field>;

/// Adds the columns of a cell: one, or one for each of several named numbers.
inline void put_cell(const std::string& name, Cell cell, Row& row) {
  if (const auto* numbers = std::get_if<std::vector<NamedNumber>>(&cell)) {
    for (const NamedNumber& of : *numbers) row.push_back({with_name(name, of.name), of.value});
  } else {
    row.push_back({name, std::move(cell)});
  }
}

/// The columns of a record by their names (ColumnInfo::name), including those that have no value.
template <class Record>
[[nodiscard]] Row row_of(const RecordSchema<Record>& schema, const Record& record) {
  Row row;
  for (const RecordColumn<Record>& column : schema.columns) {
    put_cell(column.info().name, column.read(record), row);
  }
  return row;
}

/// {name: value or None}.
[[nodiscard]] pybind11::dict dict_of(const Row& row);

/// Rows as columns. A row may lack columns that others have. A list, such as the substeps of a
/// step, has no column.
class Table {
 public:
  void add(const Row& row);
  /// Adds fields to the newest row, which must exist; values that it has are kept.
  void extend(const Row& row);
  /// {name: numpy array}, of int64, float64, bool or text; values that were not measured in a row
  /// are NaN (or "" in texts). Columns without any value are left out.
  [[nodiscard]] pybind11::dict columns() const;

 private:
  struct Column {
    // Numbers, or texts in a column of texts.
    std::vector<double> values;
    std::vector<std::string> texts;
    // Type of all values of the column so far.
    ColumnType type = ColumnType::real;
    bool complete = true;
  };

  std::vector<std::string> names_;
  std::map<std::string, Column> columns_;
  std::size_t rows_ = 0;
};

// Tensors are passed as handles of the same memory: nothing is copied.

/// The tensors in a list of torch.Tensor, each as a handle of its own on the same values, so that
/// changes that Python makes to its handle (resize_, requires_grad_, deleting it) do not affect
/// this one. Throws Error if an element is not a tensor.
[[nodiscard]] Tensors tensors_in(const pybind11::list& list);

/// Copies of arrays, as they are now.
[[nodiscard]] std::vector<NamedTensor> copies_of(std::span<const NamedArray> arrays);

/// A list of torch.Tensor.
[[nodiscard]] pybind11::list list_of(std::span<const at::Tensor> tensors);

/// {name: torch.Tensor}.
[[nodiscard]] pybind11::dict dict_of(std::span<const NamedTensor> tensors);

}  // namespace rubato::python
