#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/core/process.hpp"
#include "base/machine/kernels.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "commands.hpp"

namespace {

using namespace rubato::app;

// The name that precedes error messages: that of the command, such as "rubato trace show".
std::string signature(std::span<const std::string> arguments) {
  const Command* command = &kProgram;
  std::string name(command->name);
  for (const std::string& argument : arguments) {
    const std::span<const Command> within = command->commands();
    const auto found = std::ranges::find(within, argument, &Command::name);
    if (found == within.end()) break;
    command = &*found;
    name += fmt::format(" {}", command->name);
  }
  return name;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_streams();
  rubato::ignore_openmp_binding();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return rubato::run_with_enough_stack([&] {
    return run_reporting_errors(signature(arguments), [&] { return kProgram.run(arguments); });
  });
}
