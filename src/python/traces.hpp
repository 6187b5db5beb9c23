#pragma once

#include <optional>
#include <variant>

#include <pybind11/pybind11.h>

#include <rubato/trace/availability.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato::python {

/// Adds to `module` the classes Trace and Availability, and what reads and makes them.
void define_traces(pybind11::module_& module);

/// What an object of one of those classes has; empty for None. Throws pybind11::cast_error for
/// others.
[[nodiscard]] std::optional<std::variant<Trace, Availability>> steps_in(
    const pybind11::object& object);

}  // namespace rubato::python
