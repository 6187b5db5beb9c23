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

/// Trains the workload that `load` returns, with progress on stdout, and writes a run folder.
/// Throws Error for a mistake of the user; no run folder is made then.
[[nodiscard]] ExitCode train(const TrainArguments& arguments, const LoadWorkload& load);

/// The location of the run: the one that the command resumes, or a new folder. Throws Error if it
/// cannot be used.
[[nodiscard]] RunLocation location_of_first(const TrainArguments& arguments);

/// Answers a command that continues a run which is_complete().
[[nodiscard]] ExitCode tell_of_complete(const TrainArguments& arguments);

/// Connects the hosts; the texts in `equal` must be the same on all of them. Throws Error.
using ConnectHosts =
    std::function<std::shared_ptr<Hosts>(const HostArguments& hosts, std::vector<NamedText> equal)>;

/// train() on several hosts, of which the first alone shows the progress and writes the run folder.
/// It leaves a checkpoint if another host is lost.
[[nodiscard]] ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                                      const ConnectHosts& connect);

}  // namespace rubato::app
