#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

#include <rubato/hosts/rendezvous_server.hpp>

#include "clients/app/commands.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/signals.hpp"
#include "host_arguments.hpp"
#include "hosts/run_status/run_status.hpp"
#include "hosts_table.hpp"

namespace rubato::app {

int show_hosts(std::span<const std::string> arguments) {
  const auto options = parse_hosts_arguments(arguments);
  const HostArguments& meeting = options.meeting;
  const c10d_hosts_detail::RunPlace place{
      .host = meeting.address,
      .port = meeting.port,
      .run = meeting.run,
      .token = meeting.token_file.empty() ? "" : token_in(meeting.token_file)};
  const auto status = c10d_hosts_detail::status_of(c10d_hosts_detail::read_run(place));
  if (options.json) {
    print_out(hosts_json(status));
  } else {
    print_text(hosts_text(status, output_width()));
  }
  return 0;
}

namespace {

// The time between two checks for a signal.
constexpr std::chrono::milliseconds kPause{100};

// Raises the limit of open files to the maximum, as each connection is one.
void allow_many_connections() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &files));
}

}  // namespace

int serve_rendezvous(std::span<const std::string> arguments) {
  const auto options = parse_rendezvous_arguments(arguments);
  const StopSignals signals(nullptr);
  allow_many_connections();
  const RendezvousServer server(
      options.port, {.address = options.address,
                     .token = options.token_file.empty() ? "" : token_in(options.token_file)});
  if (!options.quiet) print_text(fmt::format("hosts may meet at port {}\n", server.port()));
  while (signals.received() == 0) std::this_thread::sleep_for(kPause);
  return 0;
}

}  // namespace rubato::app
