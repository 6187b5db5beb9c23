#pragma once

#include <memory>
#include <optional>
#include <string>

#include <pybind11/pybind11.h>

#include <rubato/base/state.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "callbacks.hpp"
#include "clients/app/hosts/host_arguments.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/run_request.hpp"

namespace rubato::python {

/// The state of a training that was interrupted and has no folder; a later one continues from it.
struct Unfinished {
  State state{};
  /// The steps that Python passed; empty if the configuration names them.
  std::optional<RunSteps> steps{};
};

/// The request of a call from Python.
struct Request : RunRequest {
  /// The rule "own" of its extensions; null if there is none.
  std::shared_ptr<RuleCalls> rule{};
  /// The training that this one continues; null if it begins, or continues in a folder.
  std::shared_ptr<const Unfinished> unfinished{};
  /// The meeting point of a host in an elastic run; empty if the run has one host.
  std::optional<app::HostArguments> hosts{};
};

/// Adds to the module:
///
///     Unfinished                           a class that Python only keeps
///     Request(config, resume, out, from, rule, weights, unfinished)
///                                          None or paths; RUN@STEP or empty; a dictionary
///                                          (callbacks.hpp); numbers by which samples are drawn;
///                                          None or an Unfinished
///     Request.set(name, text)              sets an option, in the text of the command line
///     Request.set_hosts(rendezvous, count, least, most, weight, interface, token_file, timeout)
///                                          takes part in an elastic run, as rubato.Hosts says
///
/// All throw Error.
void define_request(pybind11::module_& module);

/// Sets the option of that name. Throws Error, which names it as the command line does.
void set_option(RunConfiguration& run, const std::string& name, const std::string& text);

/// The checks that `rubato train` makes of its arguments, too: throws Error for options that
/// contradict each other or would have no effect.
void check(const RunRequest& request);

}  // namespace rubato::python
