#include "serve_rendezvous.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

#include <rubato/hosts/rendezvous_server.hpp>

#include "clients/app/line/output.hpp"
#include "clients/app/line/stop_signals.hpp"
#include "clients/app/train/hosts/host_arguments.hpp"
#include "rendezvous_arguments.hpp"

namespace rubato::app {

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
