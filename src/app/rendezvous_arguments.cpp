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
  line.option("port", "PORT", "to listen at; 0 takes one that is free", fmt::to_string(read.port),
              [&](const std::string& text) {
                read.port = static_cast<int>(parse_whole(text, 0, kHighestPort));
              });
  line.option("address", "ADDRESS",
              "an address of this machine to listen at, such as 127.0.0.1, in place of all its "
              "network interfaces",
              "", [&](const std::string& text) { read.address = text; });
  line.option("token-file", "FILE",
              "a secret in a file, without which nobody reaches the rendezvous: that of the hosts; "
              "without it only on a network whose every machine is trusted (docs/hosts.md)",
              "", [&](const std::string& text) { read.token_file = text; });
  line.flag("quiet", "print nothing but errors", read.quiet);
  line.footer(
      "Exit codes: 0 after Ctrl-C or a request to terminate, 2 for a port that cannot\n"
      "be had.");
  if (!line.parse(arguments)) return std::nullopt;
  return read;
}

}  // namespace rubato::app
