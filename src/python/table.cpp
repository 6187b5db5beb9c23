#include "python/table.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <pybind11/numpy.h>

namespace rubato::python {

namespace {

namespace py = pybind11;

using Value = std::variant<std::int64_t, double, bool>;

// Indices of the types in Value.
constexpr std::size_t kWhole = 0;
constexpr std::size_t kReal = 1;

double number_of(const Value& value) {
  return std::visit([](auto number) { return static_cast<double>(number); }, value);
}

std::optional<Value> maybe(const std::optional<double>& value) {
  return value ? std::optional<Value>(*value) : std::nullopt;
}

void add_time(Row& row, const std::optional<ClockTime>& time) {
  if (!time) return;
  constexpr double kHour = 3600;
  row.push_back({"hours", time->seconds / kHour});
  row.push_back({"core_hours", time->core_seconds / kHour});
  row.push_back({"money", time->money});
  row.push_back({"idle_hours", time->idle_seconds / kHour});
  row.push_back({"lost_hours", time->lost_seconds / kHour});
  row.push_back({"restarts", time->restarts});
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
          {"applied", step.applied},
          {"gradient_norm", maybe(step.gradient_norm)},
          {"noise_scale", maybe(step.noise_scale)},
          {"measured_gain", maybe(step.measured_gain)},
          {"loss_scale", maybe(step.loss_scale)}};
  if (step.loss_scale) row.push_back({"skipped", step.skipped});
  add_time(row, step.time);
  for (const NamedNumber& input : step.decision_inputs) {
    row.push_back({fmt::format("decision_{}", input.name), input.value});
  }
  row.push_back({"data_seconds", step.seconds.data});
  row.push_back({"compute_seconds", step.seconds.compute});
  row.push_back({"reduce_seconds", step.seconds.reduce});
  row.push_back({"update_seconds", step.seconds.update});
  row.push_back({"wall_seconds", step.seconds.wall});
  return row;
}

Row row_of(const MinibatchRecord& minibatch, std::int64_t step) {
  return {{"step", step},
          {"minibatch", minibatch.minibatch.value()},
          {"core", minibatch.core.value()},
          {"substep", minibatch.substep},
          {"loss", minibatch.loss},
          {"gradient_norm", minibatch.gradient_norm}};
}

Row row_of(const EpochRecord& epoch) {
  Row row{{"epoch", epoch.epoch.value()},
          {"whole", epoch.whole},
          {"steps", epoch.steps},
          {"samples", epoch.samples},
          {"train_loss", epoch.train_loss}};
  if (epoch.test) {
    row.push_back({"test_loss", epoch.test->loss});
    row.push_back({"test_accuracy", maybe(epoch.test->accuracy)});
    row.push_back({"test_top_k_accuracy", maybe(epoch.test->top_k_accuracy)});
  }
  for (const MetricValue& metric : epoch.metrics) row.push_back({metric.name, metric.value});
  add_time(row, epoch.time);
  row.push_back({"train_seconds", epoch.train_seconds});
  row.push_back({"test_seconds", epoch.test_seconds});
  return row;
}

py::dict dict_of(const Row& row) {
  py::dict dict;
  for (const Field& field : row) {
    py::object value = py::none();
    if (field.value) {
      value = std::visit([](auto number) -> py::object { return py::cast(number); }, *field.value);
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
      column.values.resize(rows_, std::numeric_limits<double>::quiet_NaN());
    }
    if (column.type != field.value->index()) column.type = kReal;
    column.values.push_back(number_of(*field.value));
  }
  ++rows_;
}

py::dict Table::columns() const {
  py::dict dict;
  for (const std::string& name : names_) {
    const Column& column = columns_.at(name);
    std::vector<double> values = column.values;
    values.resize(rows_, std::numeric_limits<double>::quiet_NaN());
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
