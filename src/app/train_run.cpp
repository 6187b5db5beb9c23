#include "app/train_run.hpp"

#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/output.hpp"
#include "app/run_folder_name.hpp"
#include "app/stop_signals.hpp"
#include "app/terminal_run.hpp"
#include "run/host_texts.hpp"

namespace rubato::app {

namespace {

RunLocation location_of(const TrainArguments& arguments) {
  // The run is kept by the first host.
  if (arguments.hosts.rank == 0) return location_of_first(arguments);
  if (!arguments.resume) return {};
  return RunLocation::follow(*arguments.resume, arguments.run, arguments.checkpoint);
}

std::shared_ptr<const Workload> loaded(const TrainArguments& arguments, const LoadWorkload& load) {
  auto workload = load(arguments.run);
  const std::string slow = workload->warning();
  if (arguments.hosts.rank == 0 && !slow.empty()) warn(slow);
  return workload;
}

// None where `connect` is empty.
std::shared_ptr<Hosts> connected(const TrainArguments& arguments, const Workload& workload,
                                 const ConnectHosts& connect) {
  if (!connect) return nullptr;
  return connect(arguments.hosts, what_is_asked_for(arguments.run, workload));
}

}  // namespace

RunLocation location_of_first(const TrainArguments& arguments) {
  if (!arguments.resume) {
    auto path = arguments.out.value_or(default_run_folder(std::chrono::system_clock::now()));
    check_run_folder(path);
    return RunLocation::create(std::move(path));
  }
  RunLocation location =
      RunLocation::resume(*arguments.resume, arguments.run, arguments.checkpoint);
  for (const std::string& why : location.rejected()) warn(why);
  return location;
}

ExitCode train(const TrainArguments& arguments, const LoadWorkload& load) {
  return train_on_hosts(arguments, load, {});
}

ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                        const ConnectHosts& connect) {
  // Before anything takes time.
  RunLocation location = location_of(arguments);
  auto workload = loaded(arguments, load);
  const auto hosts = connected(arguments, *workload, connect);
  const RunRole role = arguments.hosts.rank == 0 ? RunRole::first : RunRole::follower;
  StopSignals signals(nullptr);
  TerminalRun run(arguments, std::move(workload), std::move(location), hosts, role, signals);
  // Where hosts do not come and go there is always an answer.
  return run.execute().value();
}

}  // namespace rubato::app
