#include "train_run.hpp"

#include <chrono>
#include <utility>

#include "clients/app/line/stop_signals.hpp"
#include "runs/run/host_texts.hpp"
#include "terminal_run.hpp"

namespace rubato::app {

namespace {

RunLocation location_of_host(const TrainArguments& arguments) {
  // The run is kept by the first host.
  if (arguments.hosts.rank == 0) return location_of_first(arguments);
  if (!arguments.resume) return {};
  return RunLocation::follow(*arguments.resume, arguments.run, arguments.checkpoint);
}

// None where `connect` is empty.
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

ExitCode train(const TrainArguments& arguments, const LoadWorkload& load) {
  return train_on_hosts(arguments, load, {});
}

ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                        const ConnectHosts& connect) {
  // Before anything takes time.
  RunLocation location = location_of_host(arguments);
  auto workload = load(arguments.run);
  const auto hosts = connected(arguments, *workload, connect);
  const RunRole role = arguments.hosts.rank == 0 ? RunRole::first : RunRole::follower;
  StopSignals signals(nullptr);
  TerminalRun run(arguments, std::move(workload), std::move(location), hosts, role, signals);
  // Where hosts do not come and go there is always an answer.
  return run.execute().value();
}

}  // namespace rubato::app
