#include <string>
#include <vector>

#include <fmt/format.h>

#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"

namespace {

using namespace rubato::app;

// How errors are signed: with the command where there is one.
std::string signature(std::span<const std::string> arguments) {
  const Command& program = rubato::app::program();
  for (const Command& command : program.commands()) {
    if (!arguments.empty() && arguments.front() == command.name) {
      return fmt::format("{} {}", program.name, command.name);
    }
  }
  return std::string(program.name);
}

}  // namespace

int main(int argc, char** argv) {
  prepare_streams();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_reporting_errors(signature(arguments), [&] { return program().run(arguments); });
}
