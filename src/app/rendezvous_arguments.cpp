#include "app/rendezvous_arguments.hpp"

#include <fmt/format.h>

#include <rubato/core/number.hpp>

#include "app/command_line.hpp"

namespace rubato::app {

std::optional<RendezvousArguments> parse_rendezvous_arguments(
    std::span<const std::string> arguments) {
  constexpr std::int64_t kHighestPort = 65'535;
  RendezvousArguments read;
  CommandLine line("rubato rendezvous",
                   "Serves a place where hosts meet that train together, for any number of runs, "
                   "until it is interrupted: `rubato train --hosts N --rendezvous HOST:PORT/NAME` "
                   "with a new NAME for each run.");
  line.option("port", "PORT",
              "to listen at, on all network interfaces: only on a network whose every machine is "
              "trusted (docs/hosts.md); 0 takes one that is free",
              fmt::to_string(read.port), [&](const std::string& text) {
                read.port = static_cast<int>(parse_whole(text, 0, kHighestPort));
              });
  line.flag("quiet", "print nothing but errors", read.quiet);
  line.footer(
      "Exit codes: 0 after Ctrl-C or a request to terminate, 2 for a port that cannot\n"
      "be had.");
  if (!line.parse(arguments)) return std::nullopt;
  return read;
}

}  // namespace rubato::app
