#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/runs/run.hpp>

#include "clients/app/line/signals.hpp"
#include "clients/app/train/terminal_run.hpp"
#include "clients/app/train/train_programs.hpp"
#include "hosts/elastic/host_driver.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato::app {

namespace {

// A host of an elastic run at a terminal.
class ElasticTraining final : private HostClient {
 public:
  ElasticTraining(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
                  const JoinElasticHosts& join)
      : arguments_(arguments),
        workload_(std::move(workload)),
        driver_(arguments, *workload_, load_run_steps(arguments.run), join,
                {.meeting = meeting_of(arguments.hosts),
                 .least = arguments.hosts.least,
                 .most = arguments.hosts.most},
                *this) {
    signals_.emplace(nullptr, SignalRole::elastic_host, arguments.hosts.on_term);
  }

  ExitCode execute() { return report_end(driver_.execute()); }

 private:
  [[nodiscard]] RunLocation location_of_first() override {
    return app::location_of_first(arguments_);
  }
  [[nodiscard]] std::unique_ptr<HostSession> session_in(RunLocation location,
                                                        std::shared_ptr<Hosts> hosts,
                                                        RunRole role) override {
    auto run = std::make_unique<TerminalRun>(arguments_, workload_, std::move(location),
                                             std::move(hosts), role, *signals_);
    run_ = run.get();
    return run;
  }
  [[nodiscard]] bool wants_to_end() override { return signal() != 0; }
  [[nodiscard]] bool wants_to_leave() override {
    return signals_ && signals_->action() == SignalAction::leave;
  }
  void warn(const std::string& text) override { app::warn(text); }
  void report_group(const std::string& line) override {
    if (!arguments_.quiet) app::warn(line);
  }

  // The signal that has asked for an end; 0 if none has.
  [[nodiscard]] int signal() const { return signals_ ? signals_->received() : 0; }
  [[nodiscard]] ExitCode report_end(const ElasticOutcome& outcome) const;

  const TrainArguments& arguments_;
  std::shared_ptr<const Workload> workload_;
  // Signals are handled from joining on and in every role, so that none is missed between two
  // roles.
  std::optional<StopSignals> signals_;
  // The session of the driver's that was made last.
  TerminalRun* run_ = nullptr;
  HostDriver driver_;
};

// Tells how the run has ended, unless the training itself has.
ExitCode ElasticTraining::report_end(const ElasticOutcome& outcome) const {
  using End = ElasticOutcome::End;
  const char* const over = outcome.was_stopped ? "was stopped" : "has ended";
  switch (outcome.end) {
    case End::trained:
    case End::stopped:
      return run_->code().value();
    case End::stopped_beside_writer:
      return exit_code_of_signal(signal());
    case End::stopped_alone:
      app::warn("stopped by a signal; the other hosts may continue the run");
      return exit_code_of_signal(signal());
    case End::stopped_as_newcomer:
      app::warn("stopped by a signal before it took part in the run");
      return exit_code_of_signal(signal());
    case End::left:
      app::warn(outcome.steps
                    ? fmt::format("leaves the run after {} steps; the other hosts continue it",
                                  *outcome.steps)
                    : "leaves before it took part in the run");
      return ExitCode::good;
    case End::missed_run:
      if (!outcome.reason.empty()) {
        app::warn(outcome.reason);
        return ExitCode::usage;
      }
      app::warn(fmt::format(
          "the run of that name {}; another one needs another name at the rendezvous",
          outcome.was_stopped ? "was stopped: hosts that bring its newest checkpoint open it again "
                                "(--continue, or --resume)"
                              : over));
      // The user of --continue wants the run to be complete, and it is.
      return arguments_.continues && !outcome.was_stopped ? ExitCode::good : ExitCode::run_ended;
    case End::missed_end:
      app::warn(fmt::format("the run {} on the other hosts, without this one", over));
      return outcome.was_stopped ? ExitCode::run_ended : ExitCode::good;
    case End::unwritten:
      break;
  }
  app::warn(fmt::format("stopped after {} steps: no host can write the run: {}{}",
                        outcome.steps.value_or(0), outcome.reason,
                        outcome.kept.empty() ? "" : "; a copy is " + outcome.kept));
  return ExitCode::output_lost;
}

}  // namespace

ExitCode train_on_elastic_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                                const JoinElasticHosts& join) {
  if (is_complete(arguments)) return report_complete(arguments);
  hosts_detail::HostFolder::remove_leftovers();
  return ElasticTraining(arguments, load(arguments.run), join).execute();
}

}  // namespace rubato::app
