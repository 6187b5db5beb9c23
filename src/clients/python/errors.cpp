#include "errors.hpp"

#include <exception>

#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/objective.hpp>

#include "base/core/system/file.hpp"
#include "base/core/system/memory.hpp"

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

}  // namespace rubato::python
