#include "train_run.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/core/system/file.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/stop_signals.hpp"
#include "runs/run/run_description.hpp"
#include "terminal_run.hpp"

namespace rubato::app {

namespace {

RunLocation location_of_host(const TrainArguments& arguments) {
  // The first host keeps the run.
  if (arguments.hosts.rank == 0) return location_of_first(arguments);
  if (arguments.continues && is_there(*arguments.out)) {
    return RunLocation::follow(*arguments.out, arguments.run, {}, /*again=*/true);
  }
  if (!arguments.resume) return {};
  return RunLocation::follow(*arguments.resume, arguments.run, arguments.checkpoint);
}

// Returns null if `connect` is empty.
std::shared_ptr<Hosts> connected(const TrainArguments& arguments, const Workload& workload,
                                 const ConnectHosts& connect) {
  if (!connect) return nullptr;
  return connect(arguments.hosts, what_is_asked_for(arguments.run, workload));
}

}  // namespace

RunLocation location_of_first(const TrainArguments& arguments) {
  const RunRequest& asked = arguments;
  RunRequest request = asked;
  if (!request.out && !request.resume) {
    request.out = default_run_folder(std::chrono::system_clock::now());
  }
  return location_of(request, warn);
}

ExitCode tell_of_complete(const TrainArguments& arguments) {
  if (!arguments.quiet)
    print_text(fmt::format("{}: the run is complete\n", arguments.out->string()));
  return ExitCode::good;
}

ExitCode train(const TrainArguments& arguments, const LoadWorkload& load) {
  return train_on_hosts(arguments, load, {});
}

ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                        const ConnectHosts& connect) {
  if (is_complete(arguments)) return tell_of_complete(arguments);
  // The folder is checked before anything takes time.
  RunLocation location = location_of_host(arguments);
  auto workload = load(arguments.run);
  const auto hosts = connected(arguments, *workload, connect);
  const RunRole role = arguments.hosts.rank == 0 ? RunRole::first : RunRole::follower;
  StopSignals signals(nullptr, SignalRole::run);
  TerminalRun run(arguments, std::move(workload), std::move(location), hosts, role, signals);
  // A run without elastic hosts never has to regroup, so there is always an exit code.
  return run.execute().value();
}

}  // namespace rubato::app
