#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <rubato/hosts/elastic_run.hpp>
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
[[nodiscard]] ExitCode report_complete(const TrainArguments& arguments);

/// Connects the hosts: c10d_hosts().
using ConnectHosts = std::function<std::shared_ptr<Hosts>(const C10dOptions& meeting)>;

/// train() on several hosts, of which the first alone shows the progress and writes the run folder.
/// It leaves a checkpoint if another host is lost.
[[nodiscard]] ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                                      const ConnectHosts& connect);

/// train() on elastic hosts. The first host shows the progress and writes the run folder. If it is
/// lost, the next host takes over, in the same folder if it can reach it. The others keep the
/// necessary files in a temporary folder of their own, which is removed with them.
[[nodiscard]] ExitCode train_on_elastic_hosts(const TrainArguments& arguments,
                                              const LoadWorkload& load,
                                              const JoinElasticHosts& join);

/// Trains the first steps of a configuration in several ways that must not matter, prints a hash of
/// each result, and says where the first difference is. Throws Error for a mistake of the user.
[[nodiscard]] ExitCode verify(const TrainArguments& arguments, const LoadWorkload& load);

/// `rubato calibrate`: measures how long a substep and an update of the workload take on one thread
/// of this machine, and prints the times in the form that --cluster takes. Throws as calibrate()
/// does.
ExitCode calibrate(const TrainArguments& arguments, const LoadWorkload& load);

/// `rubato serve-runs`: loads the workload of a run, which is that of `arguments`, and forks a
/// process for each run that the process which started it asks for (ForkServer). Not for users:
/// `rubato compare` starts it. Returns the exit code of the run in the process of a run. Throws
/// Error if it was started by anybody else.
[[nodiscard]] ExitCode serve_runs(const TrainArguments& arguments, const LoadWorkload& load);

/// Finds the errors of a trace that can be found before the data are read, and throws them. The
/// number of samples in data files is unknown here, so no step is too large for them and no number
/// of epochs too high.
void check_trace(const RunConfiguration& run);

/// Runs one of these and returns its exit code. An error says all that is known about it with
/// --verbose, and which plug-in it is from.
[[nodiscard]] int run_program(const TrainArguments& arguments,
                              const std::function<ExitCode()>& program);

/// A command that computes a workload, in this program or in the one that loads libtorch.
struct TrainProgram {
  std::string_view name;
  TrainCommand command;
  ExitCode (*execute)(const TrainArguments& arguments, const LoadWorkload& load);
};

/// The command of that name; null if there is none.
[[nodiscard]] const TrainProgram* train_program_of(std::string_view name);

}  // namespace rubato::app
