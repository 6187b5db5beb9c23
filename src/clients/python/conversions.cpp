// All functions here that make or read Python objects require the GIL; Table::add() does not, so
// that records are collected on the thread that trains. A column keeps all numbers as doubles, and
// its type beside them. A whole or boolean column in which a row lacks a value becomes real,
// because numpy has no missing value but NaN; a column of texts has "" there. Tensors cross by
// torch's own binding (THPVariable_Wrap and THPVariable_Unpack), which shares their memory.

#include "conversions.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

// Python's headers come after pybind11's.
#include <torch/csrc/autograd/python_variable.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>

namespace rubato::python {

namespace {

namespace py = pybind11;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number_of(const Cell& value) {
  return std::visit(
      [](const auto& of) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(of)>>) {
          return static_cast<double>(of);
        } else {
          return kNone;
        }
      },
      value);
}

// The type of the value's column, if it has one. Whole and real numbers together make a real
// column.
std::optional<ColumnType> type_of(const Cell& value) {
  if (std::holds_alternative<std::int64_t>(value)) return ColumnType::whole;
  if (std::holds_alternative<double>(value)) return ColumnType::real;
  if (std::holds_alternative<bool>(value)) return ColumnType::flag;
  if (std::holds_alternative<std::string>(value)) return ColumnType::text;
  return std::nullopt;
}

template <class T>
py::array_t<T> numpy_of(const std::vector<double>& values) {
  py::array_t<T> array(static_cast<py::ssize_t>(values.size()));
  auto element = array.template mutable_unchecked<1>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    element(static_cast<py::ssize_t>(i)) = static_cast<T>(values[i]);
  }
  return array;
}

}  // namespace

py::dict dict_of(const Row& row) {
  py::dict dict;
  for (const Field& field : row) {
    dict[py::str(field.name)] = std::visit(
        [](const auto& of) -> py::object {
          using Value = std::remove_cvref_t<decltype(of)>;
          if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string> ||
                        std::is_same_v<Value, std::vector<std::int64_t>>) {
            return py::cast(of);
          } else {
            return py::none();
          }
        },
        field.value);
  }
  return dict;
}

void Table::add(const Row& row) {
  ++rows_;
  extend(row);
}

void Table::extend(const Row& row) {
  const std::size_t before = rows_ - 1;
  for (const Field& field : row) {
    const std::optional<ColumnType> type = type_of(field.value);
    if (!type) continue;
    const auto [found, is_new] = columns_.try_emplace(field.name);
    Column& column = found->second;
    if (is_new) {
      names_.push_back(field.name);
      column.type = *type;
    }
    if (column.values.size() == rows_) continue;
    if (column.values.size() < before) {
      column.complete = false;
      column.values.resize(before, kNone);
    }
    if (column.type != *type) column.type = ColumnType::real;
    column.values.push_back(number_of(field.value));
    if (const auto* const text = std::get_if<std::string>(&field.value)) {
      column.texts.resize(before);
      column.texts.push_back(*text);
    }
  }
}

py::dict Table::columns() const {
  py::dict dict;
  for (const std::string& name : names_) {
    const Column& column = columns_.at(name);
    if (column.type == ColumnType::text) {
      std::vector<std::string> texts = column.texts;
      texts.resize(rows_);
      dict[py::str(name)] = py::array::ensure(py::cast(texts));
      continue;
    }
    std::vector<double> values = column.values;
    values.resize(rows_, kNone);
    const bool complete = column.complete && column.values.size() == rows_;
    const ColumnType type = complete ? column.type : ColumnType::real;
    if (type == ColumnType::whole) {
      dict[py::str(name)] = numpy_of<std::int64_t>(values);
    } else if (type == ColumnType::real) {
      dict[py::str(name)] = numpy_of<double>(values);
    } else {
      dict[py::str(name)] = numpy_of<bool>(values);
    }
  }
  return dict;
}

namespace {

py::object object_of(const at::Tensor& tensor) {
  return py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
}

}  // namespace

Tensors tensors_in(const py::list& list) {
  Tensors tensors;
  for (const py::handle item : list) {
    if (!THPVariable_Check(item.ptr())) {
      throw Error(std::string(Py_TYPE(item.ptr())->tp_name) +
                  " is not a tensor; accepted: torch.Tensor");
    }
    tensors.push_back(THPVariable_Unpack(item.ptr()).detach());
  }
  return tensors;
}

std::vector<NamedTensor> copies_of(std::span<const NamedArray> arrays) {
  std::vector<NamedTensor> copies = tensors_of(arrays);
  for (NamedTensor& copy : copies) copy.tensor = copy.tensor.clone();
  return copies;
}

py::list list_of(std::span<const at::Tensor> tensors) {
  py::list list;
  for (const at::Tensor& tensor : tensors) list.append(object_of(tensor));
  return list;
}

py::dict dict_of(std::span<const NamedTensor> tensors) {
  py::dict dict;
  for (const NamedTensor& named : tensors) dict[py::str(named.name)] = object_of(named.tensor);
  return dict;
}

}  // namespace rubato::python
