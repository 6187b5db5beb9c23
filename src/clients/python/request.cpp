#include "request.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/throw_error.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/plugin.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/run/fork.hpp"
#include "runs/run/resumption.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;
using Path = std::optional<std::string>;

// Keyword arguments that no configuration file may contain.
constexpr std::array<std::string_view, 3> kArguments{"config", "resume", "out"};

std::shared_ptr<Request> request_of(const Path& config, const Path& resume, const Path& out,
                                    const std::string& from, const py::object& rule,
                                    std::optional<std::vector<double>> weights,
                                    std::shared_ptr<Unfinished> unfinished) {
  if (config && (resume || unfinished)) {
    throw Error("--config: --resume has a configuration of its own; accepted: one of them");
  }
  if (unfinished && out) {
    throw Error("--out: the result to resume has no folder; accepted: resume alone");
  }
  if (!from.empty() && (config || resume || unfinished)) {
    throw Error(
        "from_run: a fork begins with the options of its run; accepted: without config and "
        "resume");
  }
  auto request = std::make_shared<Request>();
  Extensions extensions;
  if (!rule.is_none()) {
    request->rule = rule_calls(rule.cast<py::dict>());
    extensions.rules.add(std::string(kOwn), [calls = request->rule](Spec& arguments) {
      // The name by which rubato.compare() distinguishes rules means nothing to the rule.
      static_cast<void>(arguments.text("name", Unset{"none"}, "a name"));
      return std::make_unique<PythonRule>(calls);
    });
  }
  if (weights) {
    const auto rows = std::make_shared<const std::vector<double>>(*std::move(weights));
    extensions.samplers.add(std::string(kOwn), [rows](Spec&) {
      return weighted_in_data(std::string(kOwn), {.rows = rows});
    });
  }
  request->run.extensions = extensions;
  if (out) request->out = *out;
  if (resume) ask_to_resume(*request, *resume);
  if (config || resume) {
    const auto file =
        config ? std::filesystem::path(*config) : *request->resume / RunFolder::kConfiguration;
    request->run = read_configuration(file, kArguments, request->run);
  }
  if (unfinished) request->run = configuration_in(unfinished->state, extensions);
  request->unfinished = std::move(unfinished);
  if (!from.empty()) {
    const Parsed<ForkPoint> point = from;
    request->run = configuration_of_run(point->run, request->run);
    request->run.from = point;
    request->given.add("from");
  }
  return request;
}

// Refuses options whose only effect is in a run's folder if there is none.
void require_folder(const RunRequest& request) {
  if (request.resume || request.out) return;
  for (const RunOption& option : run_options()) {
    if (!option.needs_folder || !request.given.contains(option.name)) continue;
    if (option.text(request.run) == "false") continue;
    throw_error("--{}: the run is kept nowhere; accepted: with out", option.name);
  }
}

void set_hosts(Request& request, const std::string& rendezvous, int count, int least, int most,
               double weight, const std::string& interface, const std::string& token_file,
               double timeout) {
  constexpr double kThousand = 1000;
  C10dOptions meeting{.count = count,
                      .interface = interface,
                      .weight = weight,
                      .timeout = std::chrono::milliseconds(std::llround(timeout * kThousand))};
  try {
    app::read_rendezvous(rendezvous, meeting);
  } catch (const Error& error) {
    throw_error("hosts: {}", error.what());
  }
  request.hosts = {.meeting = meeting, .token_file = token_file, .least = least, .most = most};
}

}  // namespace

void set_option(RunConfiguration& run, const std::string& name, const std::string& text) {
  try {
    // A plug-in's strategies are available to the options after it.
    name == kPluginOption ? add_plugins(run, text) : run_option(name).set(run, text);
  } catch (const Error& error) {
    throw_error("--{}: {}", name, error.what());
  }
}

void check(const RunRequest& request) {
  require_none_idle(request.given, request.run);
  require_consistent(request.run);
  require_folder(request);
}

void define_request(py::module_& module) {
  static_cast<void>(py::class_<Unfinished, std::shared_ptr<Unfinished>>(module, "Unfinished"));
  py::class_<Request, std::shared_ptr<Request>>(module, "Request")
      .def(py::init(&request_of))
      .def("set",
           [](Request& request, const std::string& name, const std::string& text) {
             set_option(request.run, name, text);
             request.given.add(name);
           })
      .def("set_hosts", &set_hosts);
}

}  // namespace rubato::python
