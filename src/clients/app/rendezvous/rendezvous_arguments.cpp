#include "rendezvous_arguments.hpp"

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "clients/app/line/command_line.hpp"

namespace rubato::app {

RendezvousArguments parse_rendezvous_arguments(std::span<const std::string> arguments) {
  constexpr std::int64_t kHighestPort = 65'535;
  RendezvousArguments read;
  CommandLine line("rubato rendezvous",
                   "Serves a meeting place for hosts that train together, for any number of runs, "
                   "until interrupted: `rubato train --hosts N --rendezvous HOST:PORT/NAME`, with "
                   "a new NAME for each run.");
  line.option("port", "PORT", "the port to listen on; 0 chooses a free one",
              fmt::to_string(read.port), [&](const std::string& text) {
                read.port = static_cast<int>(parse_whole(text, 0, kHighestPort));
              });
  line.option("address", "ADDRESS",
              "the address of this machine to listen on, such as 127.0.0.1, instead of all its "
              "network interfaces",
              "", [&](const std::string& text) { read.address = text; });
  line.option("token-file", "FILE",
              "a file with the hosts' secret, which keeps out everybody else; do without only on a "
              "network on which you trust every machine (docs/hosts.md)",
              "", [&](const std::string& text) { read.token_file = text; });
  line.flag("quiet", "print nothing but errors", read.quiet);
  line.footer(
      "Exit codes: 0 after Ctrl-C or a request to terminate, 2 if the port is not\n"
      "available.");
  line.parse(arguments);
  return read;
}

}  // namespace rubato::app
