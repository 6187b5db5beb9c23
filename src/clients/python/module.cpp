// rubato._rubato is the C++ part of the package. The package's own modules are what users see. This
// file defines the exceptions, the table of options and AdaScaleEstimator, and puts together what
// the other files define. rethrow_for_users() is called around work on other threads: it turns
// exceptions of libtorch and failures to get memory into rubato's own, which register_exception()
// then makes exceptions of Python.

#include "module.hpp"

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"
#include "calling_thread.hpp"
#include "libtorch/torch/adascale_checks.hpp"
#include "request.hpp"
#include "runs/config/run_option.hpp"
#include "training.hpp"

namespace rubato::python {

namespace py = pybind11;

void define_errors(py::module_& module) {
  // Exceptions that were registered last are tried first.
  const auto& error = py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  py::register_exception<OutputError>(module, "OutputError", error);
  py::register_exception<TrainingError>(module, "TrainingError", error);
  py::register_exception<MemoryError>(module, "OutOfMemory",
                                      py::make_tuple(error, py::handle(PyExc_MemoryError)));
}

void rethrow_for_users() {
  try {
    throw;
  } catch (const MemoryError&) {
    throw;
  } catch (const std::exception& error) {
    constexpr const char* kLess = "smaller minibatches or steps and fewer threads need less";
    if (const auto memory = memory_failure(error, kLess)) throw MemoryError(*memory);
    if (const auto* const torch = dynamic_cast<const c10::Error*>(&error)) {
      throw Error(torch->what_without_backtrace());
    }
    throw;
  }
}

namespace {

using namespace py::literals;

constexpr std::array<Choice<OptionKind>, 5> kKinds{
    {{OptionKind::flag, "flag"},
     {OptionKind::whole, "whole"},
     {OptionKind::real, "real"},
     {OptionKind::text, "text"},
     {OptionKind::text_or_number, "text_or_number"}}};
constexpr std::array<Choice<Affects>, 3> kAffects{
    {{Affects::bits, "bits"}, {Affects::speed, "speed"}, {Affects::output, "output"}}};

py::dict dict_of_option(const RunOption& option) {
  const auto text = default_text(option);
  // A default that depends on the machine is described in words.
  const bool said = !option.shown_default.empty();
  return py::dict(
      "name"_a = option.name, "value"_a = option.value, "help"_a = option.help,
      "group"_a = option.group, "kind"_a = choice_name(kKinds, option.kind),
      "affects"_a = choice_name(kAffects, option.affects), "accepted"_a = option.accepted,
      "default"_a = said ? py::cast(option.shown_default) : py::cast(text),
      "is_literal"_a = !said && text.has_value(), "names_file"_a = option.map_path != nullptr,
      "is_planned"_a = meet(option.commands, Commands::plan),
      "is_simulated"_a = meet(option.commands, Commands::simulate),
      "not_here"_a = option.not_in_python);
}

}  // namespace

void define_options(py::module_& module) {
  module.def("options", [] {
    py::list list;
    for (const RunOption& option : run_options()) list.append(dict_of_option(option));
    return list;
  });
  module.def("families", [] {
    py::dict all;
    for (const Family& family : families()) {
      py::list names;
      for (const auto& strategy : family.strategies) names.append(std::string(strategy.name));
      all[py::str(std::string(family.name))] = names;
    }
    return all;
  });
}

namespace {

double gain_of_group(const AdaScaleEstimator& estimator, double scale, std::int64_t group) {
  if (group < 0 || std::cmp_greater_equal(group, estimator.groups())) {
    throw_error("AdaScale: gain() of parameter group {}; accepted: 0 to {}", group,
                estimator.groups() - 1);
  }
  return estimator.gain(scale, static_cast<std::size_t>(group));
}

// Takes pairs of minibatch_square and mean_square.
void update(AdaScaleEstimator& estimator, const std::vector<std::pair<double, double>>& pairs,
            std::int64_t gradients, double scale) {
  if (pairs.size() != estimator.groups()) {
    throw_error("AdaScale: norms of {} parameter groups; accepted: of {}", pairs.size(),
                estimator.groups());
  }
  std::vector<GradientNorms> norms(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    norms[i].minibatch_square = pairs[i].first;
    norms[i].mean_square = pairs[i].second;
  }
  estimator.update(norms, gradients, scale);
}

}  // namespace

void define_estimator(py::module_& module) {
  py::class_<AdaScaleEstimator>(module, "AdaScaleEstimator")
      .def(py::init([](std::optional<double> smoothing, bool debias,
                       std::optional<double> smallest_variance, std::size_t groups) {
        return AdaScaleEstimator({.smoothing = smoothing,
                                  .averaging = debias ? Averaging::debiased : Averaging::mean_first,
                                  .smallest_variance = smallest_variance},
                                 groups);
      }))
      .def("update", &update)
      .def("rescale_variance", &AdaScaleEstimator::rescale_variance)
      .def("set_smoothing", &AdaScaleEstimator::set_smoothing)
      .def("fixed_smoothing", &AdaScaleEstimator::fixed_smoothing)
      .def("add_group", &AdaScaleEstimator::add_group)
      .def("gain",
           [](const AdaScaleEstimator& estimator, double scale) { return estimator.gain(scale); })
      .def("gain_of_group", &gain_of_group)
      .def("smoothing", &AdaScaleEstimator::smoothing)
      .def("state", &numbers_of<AdaScaleEstimator>)
      .def("load_state", [](AdaScaleEstimator& estimator, const std::vector<double>& state) {
        load_numbers(estimator, state, fmt::format("AdaScale of {} groups", estimator.groups()));
      });
  module.def("require_gradients", &require_gradients);
  module.def("checked_scale", &checked_scale);
}

}  // namespace rubato::python

PYBIND11_MODULE(_rubato, module) {
  using namespace rubato::python;
  module.attr("__version__") = RUBATO_VERSION;
  define_errors(module);
  define_options(module);
  define_traces(module);
  define_planning(module);
  define_request(module);
  define_estimator(module);
  define_trained(module);
  define_showing(module);
  module.def("train", &train);
  module.def("first_inputs", &list_of_first_inputs);
  module.def("end_training", &end_training);
}
