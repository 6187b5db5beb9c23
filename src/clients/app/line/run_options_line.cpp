#include "run_options_line.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "runs/config/configuration_file.hpp"
#include "runs/config/plugin.hpp"

namespace rubato::app {

namespace {

// The default as a value ("0.01"), or in the words of the option with their value on this machine.
std::string default_of(const RunOption& option) {
  const auto text = default_text(option);
  if (option.shown_default.empty()) return text.value_or("");
  return text ? fmt::format("{}, here {}", option.shown_default, *text) : option.shown_default;
}

void define_run_option(CommandLine& line, RunConfiguration& configuration,
                       const RunOption& option) {
  line.group(option.group);
  if (option.name == kPluginOption) return define_plugins(line, configuration);
  const auto set = [option = &option, &configuration](const std::string& text) {
    option->set(configuration, text);
  };
  if (option.kind == OptionKind::flag) {
    line.flag(option.name, option.help, set);
  } else {
    line.option(option.name, option.value, option.help, default_of(option), set);
  }
}

}  // namespace

void define_plugins(CommandLine& line, RunConfiguration& configuration) {
  const RunOption& option = run_option(kPluginOption);
  line.list(option.name, option.value, option.help, "",
            [&](const std::string& text) { add_plugins(configuration, text); });
  line.first(option.name);
}

void define_run_options(CommandLine& line, RunConfiguration& configuration) {
  for (const RunOption& option : run_options()) define_run_option(line, configuration, option);
}

void define_run_options(CommandLine& line, RunConfiguration& configuration, Commands command) {
  for (const RunOption* option : run_options(command)) {
    define_run_option(line, configuration, *option);
  }
}

void define_fork_options(CommandLine& line, RunConfiguration& configuration) {
  constexpr std::array<std::string_view, 4> kOthers{kPluginOption, "kernels", "exact", "from"};
  for (const RunOption& option : run_options()) {
    const bool changes = option.affects == Affects::bits && option.fixed_in_fork.empty();
    if (!(changes || option.name == "threads") ||
        std::ranges::find(kOthers, option.name) != kOthers.end())
      continue;
    define_run_option(line, configuration, option);
  }
}

std::vector<OptionHelp> own_options(const CommandLine& line) {
  std::vector<OptionHelp> own = line.descriptions();
  std::erase_if(own, [](const OptionHelp& described) {
    return std::ranges::find(run_options(), described.name, &RunOption::name) !=
           run_options().end();
  });
  return own;
}

}  // namespace rubato::app
