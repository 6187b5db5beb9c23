#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "train_arguments.hpp"

namespace rubato::app {

/// Trains as `arguments` say what `load` loads, shows how it goes on stdout, and leaves a run
/// folder. Throws Error for what the user got wrong; no run folder is made then.
[[nodiscard]] ExitCode train(const TrainArguments& arguments, const LoadWorkload& load);

/// Where the run of a command is kept: what it is asked to go on with, or a new folder. Throws
/// Error where it cannot be.
[[nodiscard]] RunLocation location_of_first(const TrainArguments& arguments);

/// Answers a command that asks to continue a run which is_complete().
[[nodiscard]] ExitCode tell_of_complete(const TrainArguments& arguments);

/// Meets the other hosts; what is `equal` has to be the same on all. Throws Error.
using ConnectHosts =
    std::function<std::shared_ptr<Hosts>(const HostArguments& hosts, std::vector<NamedText> equal)>;

/// train() on several hosts, of which the first alone shows how it goes on and leaves a run folder.
/// It leaves a checkpoint when another one is lost.
[[nodiscard]] ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                                      const ConnectHosts& connect);

}  // namespace rubato::app
