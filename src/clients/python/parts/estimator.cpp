#include "estimator.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/base/error.hpp>
#include <rubato/numbers/adascale_estimator.hpp>

#include "libtorch/torch/optimizer/adascale_checks.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;

double gain_of_group(const AdaScaleEstimator& estimator, double scale, std::int64_t group) {
  if (group < 0 || std::cmp_greater_equal(group, estimator.groups())) {
    throw Error(fmt::format("AdaScale: gain() of parameter group {}; accepted: 0 to {}", group,
                            estimator.groups() - 1));
  }
  return estimator.gain(scale, static_cast<std::size_t>(group));
}

// Takes pairs of minibatch_square and mean_square.
void update(AdaScaleEstimator& estimator, const std::vector<std::pair<double, double>>& pairs,
            std::int64_t gradients, double scale) {
  if (pairs.size() != estimator.groups()) {
    throw Error(fmt::format("AdaScale: norms of {} parameter groups; accepted: of {}", pairs.size(),
                            estimator.groups()));
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
