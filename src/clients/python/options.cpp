#include "options.hpp"

#include <array>
#include <string>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/config/run_option.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;
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
  const auto text = option.text(RunConfiguration());
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

}  // namespace rubato::python
