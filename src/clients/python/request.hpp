#pragma once

#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include <rubato/runs/run_configuration.hpp>

#include "callbacks.hpp"
#include "runs/run/run_request.hpp"

namespace rubato::python {

/// The request of a call from Python.
struct Request : RunRequest {
  /// The rule "own" of its extensions; null if there is none.
  std::shared_ptr<RuleCalls> rule{};
};

/// Adds to the module:
///
///     Request(config, resume, out, rule)   None or paths; the rule a dictionary (callbacks.hpp)
///     Request.set(name, text)              sets an option, in the text of the command line
///
/// Both throw Error.
void define_request(pybind11::module_& module);

/// Sets the option of that name. Throws Error, which names it as the command line does.
void set_option(RunConfiguration& run, const std::string& name, const std::string& text);

/// The checks that `rubato train` makes of its arguments, too: throws Error for options that
/// contradict each other or would have no effect.
void check(const RunRequest& request);

}  // namespace rubato::python
