#include "python/table.hpp"

#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "report/record_numbers.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;

using Value = std::variant<std::int64_t, double, bool, std::string>;

// Indices of the types in Value.
constexpr std::size_t kWhole = 0;
constexpr std::size_t kReal = 1;
constexpr std::size_t kText = 3;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number_of(const Value& value) {
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

std::optional<Value> maybe(const std::optional<double>& value) {
  return value ? std::optional<Value>(*value) : std::nullopt;
}

void add_time(Row& row, const std::optional<ClockTime>& time) {
  if (!time) return;
  each_number(*time, [&](std::string_view name, auto value) {
    row.push_back({std::string(name), value});
  });
}

template <class T>
py::array_t<T> array_of(const std::vector<double>& values) {
  py::array_t<T> array(static_cast<py::ssize_t>(values.size()));
  auto element = array.template mutable_unchecked<1>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    element(static_cast<py::ssize_t>(i)) = static_cast<T>(values[i]);
  }
  return array;
}

}  // namespace

Row row_of(const StepRecord& step) {
  Row row{{"step", step.plan.index.value()},
          {"epoch", step.epoch.value()},
          {"batch", step.plan.batch_size},
          {"cores", step.plan.cores},
          {"scale", step.scale},
          {"lr", step.learning_rate},
          {"gain", step.gain},
          {"iterations", step.iterations},
          {"loss", step.loss},
          {"applied", step.applied}};
  each_measured_number(step, [&](std::string_view name, const std::optional<double>& value) {
    row.push_back({std::string(name), maybe(value)});
  });
  if (step.loss_scale) row.push_back({"skipped", step.skipped});
  add_time(row, step.time);
  for (const NamedNumber& input : step.decision_inputs) {
    row.push_back({fmt::format("decision_{}", input.name), input.value});
  }
  each_number(step.seconds, [&](std::string_view name, double seconds) {
    row.push_back({fmt::format("{}_seconds", name), seconds});
  });
  return row;
}

Row row_of(const MinibatchRecord& minibatch, StepIndex step) {
  return {{"step", step.value()},           {"minibatch", minibatch.minibatch.value()},
          {"core", minibatch.core.value()}, {"substep", minibatch.substep},
          {"loss", minibatch.loss},         {"gradient_norm", minibatch.gradient_norm}};
}

Row row_of(const EpochRecord& epoch) {
  Row row{{"epoch", epoch.epoch.value()},
          {"whole", epoch.whole},
          {"steps", epoch.steps},
          {"samples", epoch.samples},
          {"train_loss", epoch.train_loss}};
  if (epoch.test) {
    each_number(*epoch.test, [&](std::string_view name, const std::optional<double>& value) {
      row.push_back({fmt::format("test_{}", name), maybe(value)});
    });
  }
  for (const MetricValue& metric : epoch.metrics) row.push_back({metric.name, metric.value});
  add_time(row, epoch.time);
  row.push_back({"train_seconds", epoch.train_seconds});
  row.push_back({"test_seconds", epoch.test_seconds});
  return row;
}

Row row_of(const FaultRecord& fault, StepIndex step, std::int64_t cores_left) {
  return {{"step", step.value()},
          {"core", fault.core.value()},
          {"substep", fault.substep},
          {"cores_left", cores_left}};
}

Row row_of(const TensorStatistics& tensor, StepIndex step) {
  return {{"step", step.value()},
          {"tensor", tensor.name},
          {"of", std::string(tensor.gradient ? "gradient" : "parameter")},
          {"norm", tensor.norm},
          {"mean", tensor.mean},
          {"min", tensor.min},
          {"max", tensor.max}};
}

py::dict dict_of(const Row& row) {
  py::dict dict;
  for (const Field& field : row) {
    py::object value = py::none();
    if (field.value) {
      value = std::visit([](const auto& of) -> py::object { return py::cast(of); }, *field.value);
    }
    dict[py::str(field.name)] = value;
  }
  return dict;
}

void Table::add(const Row& row) {
  for (const Field& field : row) {
    if (!field.value) continue;
    const auto [found, is_new] = columns_.try_emplace(field.name);
    Column& column = found->second;
    if (is_new) {
      names_.push_back(field.name);
      column.type = field.value->index();
    }
    if (column.values.size() < rows_) {
      column.complete = false;
      column.values.resize(rows_, kNone);
    }
    if (column.type != field.value->index()) column.type = kReal;
    column.values.push_back(number_of(*field.value));
    if (const auto* const text = std::get_if<std::string>(&*field.value)) {
      column.texts.resize(rows_);
      column.texts.push_back(*text);
    }
  }
  ++rows_;
}

py::dict Table::columns() const {
  py::dict dict;
  for (const std::string& name : names_) {
    const Column& column = columns_.at(name);
    if (column.type == kText) {
      std::vector<std::string> texts = column.texts;
      texts.resize(rows_);
      dict[py::str(name)] = py::array::ensure(py::cast(texts));
      continue;
    }
    std::vector<double> values = column.values;
    values.resize(rows_, kNone);
    const bool complete = column.complete && column.values.size() == rows_;
    const std::size_t type = complete ? column.type : kReal;
    if (type == kWhole) {
      dict[py::str(name)] = array_of<std::int64_t>(values);
    } else if (type == kReal) {
      dict[py::str(name)] = array_of<double>(values);
    } else {
      dict[py::str(name)] = array_of<bool>(values);
    }
  }
  return dict;
}

}  // namespace rubato::python
