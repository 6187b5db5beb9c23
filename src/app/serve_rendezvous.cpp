#include "app/serve_rendezvous.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include <rubato/c10d/c10d_hosts.hpp>

#include "app/output.hpp"
#include "app/rendezvous_arguments.hpp"
#include "app/stop_signals.hpp"

namespace rubato::app {

namespace {

// From one look for a signal to the next.
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

int serve_rendezvous(std::span<const std::string> arguments) {
  const auto options = parse_rendezvous_arguments(arguments);
  if (!options) return 0;
  const StopSignals signals(nullptr);
  const RendezvousServer server(options->port);
  if (!options->quiet) print_out(fmt::format("hosts may meet at port {}\n", server.port()));
  while (signals.received() == 0) std::this_thread::sleep_for(kPause);
  return 0;
}

}  // namespace rubato::app
