#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/machine.hpp>

#include "base/core/fork_server.hpp"
#include "base/core/process.hpp"
#include "clients/app/line/command_line.hpp"
#include "runs/run/workload/kept_workload.hpp"
#include "train_programs.hpp"

namespace rubato::app {

namespace {

// `rubato train` in a process that has been forked for it, with the workload that is there already.
int train_forked(const ForkRequest& request, const KeptWorkload& kept) {
  const auto options = parse_train_arguments(std::span(request.words).subspan(2));
  if (!kept.is_for(options.run)) {
    // Its configuration was changed since it was planned, or is that of a resumed run, which names
    // its own copies of files. The program that asked for it starts it as any other.
    const std::string program = fmt::format("/proc/{}/exe", getppid());
    execv(program.c_str(), exec_pointers(request.words).data());
    return kCannotStart;
  }
  check_trace(options.run);
  return run_program(options, [&] {
    return train(options, [&](const RunConfiguration& run) { return kept.workload_of(run); });
  });
}

}  // namespace

ExitCode serve_runs(const TrainArguments& arguments, const LoadWorkload& load) {
  ForkServer server;
  // Most often the runs wait for it, and leave all CPUs to it.
  RunConfiguration run = arguments.run;
  run.threads = cpus().usable();
  KeptWorkload kept(run, load);
  const auto request = server.next_child([&] { return kept.is_current(); }, [&] { kept.load(); });
  if (!request) return ExitCode::good;
  return static_cast<ExitCode>(
      run_reporting_errors("rubato train", [&] { return train_forked(*request, kept); }));
}

}  // namespace rubato::app
