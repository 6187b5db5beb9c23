#pragma once

#include <optional>
#include <variant>

#include <pybind11/pybind11.h>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato::python {

/// Adds to `module` the classes Trace and Availability, and what reads and makes them.
void define_traces(pybind11::module_& module);

/// What an object of one of those classes has; empty for None. Throws pybind11::cast_error for
/// others.
[[nodiscard]] std::optional<std::variant<Trace, Availability>> steps_in(
    const pybind11::object& object);

/// The same steps with what `end` says behind them; as they are where it says nothing.
[[nodiscard]] std::variant<Trace, Availability> with_end(std::variant<Trace, Availability> steps,
                                                         std::optional<TraceEnd> end);

}  // namespace rubato::python
