#pragma once

#include <optional>
#include <variant>

#include <pybind11/pybind11.h>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato::python {

/// Adds to `module` the classes Trace and Availability, and the functions that read and make them.
void define_traces(pybind11::module_& module);

/// The steps in an object of one of these classes; empty for None. Throws pybind11::cast_error for
/// other objects.
[[nodiscard]] std::optional<std::variant<Trace, Availability>> steps_in(
    const pybind11::object& object);

/// The same steps with another end; unchanged if `end` is empty.
[[nodiscard]] std::variant<Trace, Availability> with_end(std::variant<Trace, Availability> steps,
                                                         std::optional<TraceEnd> end);

}  // namespace rubato::python
