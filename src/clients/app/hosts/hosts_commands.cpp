#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

#include <rubato/hosts/rendezvous_server.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/signals.hpp"
#include "host_arguments.hpp"
#include "hosts/rendezvous/socket.hpp"
#include "hosts/run_status/run_status.hpp"
#include "hosts_table.hpp"

namespace rubato::app {

int show_hosts(std::span<const std::string> arguments) {
  constexpr const char* kPlace = "HOST:PORT/NAME";
  C10dOptions meeting;
  std::string place;
  std::string token_file;
  bool json = false;
  CommandLine line(
      "rubato hosts",
      "Shows a run of hosts that come and go, from their rendezvous and without taking part: which "
      "hosts there are, what they do, how far they are, and which of them writes the run.");
  line.operands(OperandCount::one, kPlace,
                "the rendezvous and the name of the run, as in --rendezvous of `rubato train`",
                [&](const std::string& text) {
                  read_rendezvous(text, meeting);
                  place = text;
                });
  line.text("token-file", "FILE", "a file with the secret of the run's hosts", "", token_file);
  line.flag("json", "print JSON: the same, with absent values as null", json);
  line.footer(
      "Exit codes: 0 whatever the run does, 2 for an unknown run or a wrong token,\n"
      "28 for a rendezvous that does not answer.\n"
      "Example:\n"
      "  rubato hosts node0:29500/spring --token-file token");
  line.parse(arguments);
  if (meeting.run.empty()) {
    throw_error("'{}' names no run; accepted: {}", short_line(place), kPlace);
  }
  meeting.token = token_in(token_file);
  const auto status = hosts_detail::status_of(hosts_detail::read_run(meeting));
  json ? print_out(hosts_json(status)) : print_text(hosts_text(status, output_width()));
  return 0;
}

namespace {

// Raises the limit of open files to the maximum, as each connection is one.
void allow_many_connections() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &files));
}

}  // namespace

int serve_rendezvous(std::span<const std::string> arguments) {
  int port = 29500;
  std::string address;
  std::string token_file;
  bool quiet = false;
  CommandLine line("rubato rendezvous",
                   "Serves a meeting place for hosts that train together, for any number of runs, "
                   "until interrupted: `rubato train --hosts N --rendezvous HOST:PORT/NAME`, with "
                   "a new NAME for each run.");
  line.whole("port", "PORT", "the port to listen on; 0 chooses a free one", fmt::to_string(port),
             port, 0, rendezvous_detail::kMaxPort);
  line.text("address", "ADDRESS",
            "the address of this machine to listen on, such as 127.0.0.1, instead of all its "
            "network interfaces",
            "", address);
  line.text("token-file", "FILE",
            "a file with the hosts' secret, which keeps out everybody else; do without only on a "
            "network on which you trust every machine (docs/hosts.md)",
            "", token_file);
  line.flag("quiet", "print nothing but errors", quiet);
  line.footer(
      "Exit codes: 0 after Ctrl-C or a request to terminate, 2 if the port is not\n"
      "available.");
  line.parse(arguments);
  const StopSignals signals(nullptr);
  allow_many_connections();
  const RendezvousServer server(port, {.address = address, .token = token_in(token_file)});
  if (!quiet) print_text(fmt::format("hosts may meet at port {}\n", server.port()));
  constexpr std::chrono::milliseconds kBetweenLooks{100};
  while (signals.received() == 0) std::this_thread::sleep_for(kBetweenLooks);
  return 0;
}

}  // namespace rubato::app
