// rubato._rubato is the C++ part of the package. The package's own modules are what users see.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "clients/python/parts/estimator.hpp"
#include "clients/python/parts/turn.hpp"
#include "clients/python/planning/planning.hpp"
#include "clients/python/planning/traces.hpp"
#include "clients/python/results/trained.hpp"
#include "errors.hpp"
#include "options.hpp"
#include "request.hpp"
#include "training.hpp"

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
  module.def("train", &train);
  module.def("first_inputs", &first_inputs);
  module.def("end_training", &end_training);
}
