#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "clients/app/line/signals.hpp"
#include "clients/app/train/terminal_run.hpp"
#include "clients/app/train/train_programs.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/resumption.hpp"
#include "runs/run/run_description.hpp"
#include "succession.hpp"

namespace rubato::app {

namespace {

namespace fs = std::filesystem;

// Returns the steps of the newest checkpoint that this host brings; empty if it brings none.
std::optional<std::int64_t> steps_to_go_on_from(const TrainArguments& arguments) {
  if (arguments.checkpoint) return CheckpointFolder::steps_of(*arguments.checkpoint);
  if (!arguments.resume && !arguments.continues) return std::nullopt;
  const fs::path& folder = arguments.resume ? *arguments.resume : *arguments.out;
  const auto files = CheckpointFolder(folder / RunFolder::kCheckpoints, 1).files();
  return files.empty() ? std::nullopt : CheckpointFolder::steps_of(files.front());
}

// One host's part of a run on elastic hosts.
//
// A state is never only in transit. Each host of a group has the whole of it, and keeps it while
// the next group meets, connects and hands over: a host gives from a copy, and one that is given a
// newer state keeps its older one until the newer one is there. So any one host that survives a
// loss, at whatever moment, can continue.
class ElasticTraining {
 public:
  ElasticTraining(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
                  const JoinHosts& join)
      : arguments_(arguments), workload_(std::move(workload)) {
    auto equal = what_is_asked_for(arguments.run, *workload_);
    equal.push_back(what_is_followed(load_run_steps(arguments.run)));
    equal.push_back({.name = "--hosts", .text = fmt::to_string(arguments.hosts.count)});
    equal.push_back({.name = "--min-hosts", .text = fmt::to_string(arguments.hosts.least)});
    equal.push_back({.name = "--max-hosts", .text = fmt::to_string(arguments.hosts.most)});
    hosts_ = join(arguments.hosts, {.meeting = {.equal = std::move(equal)},
                                    .brings = steps_to_go_on_from(arguments),
                                    .waits_for_opening = arguments.continues,
                                    .interrupted = [this] { return signal() != 0; },
                                    .tell = warn});
    signals_.emplace(nullptr, SignalRole::elastic_host, arguments.hosts.on_term);
  }

  ExitCode execute();

 private:
  ElasticHosts::Meeting meet();
  std::optional<ExitCode> take_part();
  std::optional<ExitCode> executed();
  [[nodiscard]] HostStanding standing() const;
  // The signal that has asked for an end; 0 if none has.
  [[nodiscard]] int signal() const { return signals_ ? signals_->received() : 0; }
  [[nodiscard]] bool wants_to_leave() const {
    return signals_ && signals_->action() == SignalAction::leave;
  }
  [[nodiscard]] bool is_first() const { return hosts_->rank() == 0; }
  void share_state();
  void begin();
  // Continues as a follower from a state that this host had or was given.
  void follow(const Handover& handover);
  // Makes this host the one that writes the run.
  void take_over();
  void write_in(RunLocation location);
  // Stops all hosts, because neither this host nor, as far as is known, another one can write the
  // run. The state that the run has reached is kept if possible.
  [[noreturn]] void stop_all(const Inheritance& inheritance, const std::string& why);
  // Keeps the state of this host as a copy of the run, which others may continue.
  void become_copy();
  [[nodiscard]] const fs::path& wanted_folder() const {
    return arguments_.resume ? *arguments_.resume : *arguments_.out;
  }
  [[nodiscard]] std::int64_t steps() const { return run_->run().trainer().result().steps; }
  void announce_folder();
  void note_group();
  void tell_of_groups();
  // Leaves the run to the other hosts.
  ExitCode leave();
  // Ends with the run, which no host continues.
  ExitCode end();
  ExitCode stop();
  ExitCode stop_unwritten(const RunWriter& writer);
  [[noreturn]] void give_up(const HostLost& lost);

  const TrainArguments& arguments_;
  std::shared_ptr<const Workload> workload_;
  std::shared_ptr<ElasticHosts> hosts_;
  // The folder of a follower; empty in other roles.
  std::optional<HostFolder> folder_;
  // Signals are handled from joining on and in every role, so that none is missed between two
  // roles.
  std::optional<StopSignals> signals_;
  std::unique_ptr<TerminalRun> run_;
  // The exit code of the run once it is final.
  std::optional<ExitCode> code_;
  // True if other hosts may continue the run without this one.
  bool is_alone_ = false;
  // True if this host leaves while it waits for a group.
  bool is_spared_ = false;
  // Groups that are not in hosts.log yet.
  struct Group {
    std::string time;
    std::int64_t steps;
    std::string story;
  };
  std::vector<Group> groups_;
};

ExitCode ElasticTraining::execute() {
  while (meet() == ElasticHosts::Meeting::formed) {
    try {
      if (const auto code = take_part()) return *code;
      if (hosts_->is_leaving()) return leave();
    } catch (const HostLost& lost) {
      if (!hosts_->regroup_due()) give_up(lost);
      // The group has lost a host before all of it had the state.
      if (!groups_.empty()) groups_.back().story += "; lost again in the handover";
    }
  }
  return is_spared_ ? leave() : end();
}

ElasticHosts::Meeting ElasticTraining::meet() {
  try {
    return hosts_->regroup(standing());
  } catch (const Error& error) {
    if (signal() == 0) {
      if (!run_) throw;
      give_up(HostLost(error.what()));
    }
    is_spared_ = wants_to_leave() && (!run_ || hosts_->can_be_spared());
    if (is_spared_) return ElasticHosts::Meeting::ended;
    // This host stops alone if the others have continued without it.
    is_alone_ = run_ && !hosts_->leave(true);
    return ElasticHosts::Meeting::ended;
  }
}

// Takes part in a group. Empty if the group has ended before the run.
std::optional<ExitCode> ElasticTraining::take_part() {
  note_group();
  share_state();
  if (is_first() && run_->role() == RunRole::follower) {
    take_over();
    code_.reset();
  }
  tell_of_groups();
  if (!code_) code_ = executed();
  if (!code_) return std::nullopt;
  if (run_->has_left()) return code_;
  const bool paused = hosts_->pause_asked();
  // The others may need this host until they have finished, too.
  if (!paused) {
    const std::vector<std::span<const std::byte>> out(static_cast<std::size_t>(hosts_->count()));
    const std::vector<std::span<std::byte>> in(out.size());
    hosts_->exchange(out, in);
  }
  static_cast<void>(hosts_->leave(paused));
  return code_;
}

std::optional<ExitCode> ElasticTraining::executed() {
  try {
    return run_->execute();
  } catch (const OutputError& error) {
    // The hosts that continue the run need to know this before they take the same folder.
    const std::string why = error.what();
    if (run_->role() != RunRole::follower) hosts_->announce_failure(why.substr(0, why.find('\n')));
    throw;
  }
}

HostStanding ElasticTraining::standing() const {
  if (!run_) return {};
  return {.steps = run_->run().trainer().result().steps, .finished = code_.has_value()};
}

void ElasticTraining::share_state() {
  const Giving giving = giving_of(*hosts_);
  const auto own = static_cast<std::size_t>(hosts_->rank());
  const bool takes = giving.to[own];
  // This host was left behind, and is given a newer state. It lets go of its folder before the
  // others continue, but keeps its older state: if the giving host is lost meanwhile, that may be
  // all that is left of the run.
  std::optional<Handover> older;
  if (takes && run_) {
    older = hand_over(run_->run());
    run_.reset();
  }
  if (giving.from == own && !run_) begin();
  if (!giving.any()) return;
  std::string bytes = giving.from == own ? handover_bytes(hand_over(run_->run())) : std::string();
  try {
    bytes = given(*hosts_, giving, std::move(bytes));
  } catch (const HostLost&) {
    if (older) follow(*older);
    throw;
  }
  if (takes) follow(parse_handover(bytes));
}

void ElasticTraining::begin() {
  try {
    run_ = std::make_unique<TerminalRun>(arguments_, workload_, location_of_first(arguments_),
                                         hosts_, RunRole::first, *signals_);
    announce_folder();
  } catch (const Error&) {
    // An error here would occur on every host.
    static_cast<void>(hosts_->leave(true));
    throw;
  }
}

void ElasticTraining::follow(const Handover& handover) {
  run_.reset();
  folder_.emplace();
  try {
    run_ = std::make_unique<TerminalRun>(
        arguments_, workload_, RunLocation::take_over(folder_->run(), arguments_.run, handover),
        hosts_, RunRole::follower, *signals_);
  } catch (const OutputError&) {
    throw;
  } catch (const Error& error) {
    // All options were compared when this host joined, so the difference is in a file.
    const std::string why = error.what();
    throw Error(
        fmt::format("the data of this host, or its model's file, differ from those of the "
                    "other hosts: {}; accepted: the same on all hosts",
                    why.substr(0, why.find('\n'))));
  }
}

void ElasticTraining::take_over() {
  const Handover own = hand_over(run_->run());
  const Inheritance inheritance{.wanted = wanted_folder(),
                                .configuration = arguments_.run,
                                .handover = own,
                                .steps = steps()};
  try {
    write_in(succeed(inheritance, *hosts_));
  } catch (const Error& error) {
    stop_all(inheritance, error.what());
  }
  announce_folder();
}

void ElasticTraining::stop_all(const Inheritance& inheritance, const std::string& why) {
  std::string kept;
  try {
    if (inheritance.steps > 0) {
      write_in(keep_copy(inheritance));
      run_->become_copy();
      static_cast<void>(run_->run().write_checkpoint());
      kept = fmt::format(
          "\nthe state of the run after {} steps is kept; to continue: rubato train "
          "--resume {}",
          inheritance.steps, run_->run().location().path().string());
    }
  } catch (const Error& error) {
    kept = fmt::format("\nnothing can be kept: {}", error.what());
  }
  hosts_->announce_failure(why);
  static_cast<void>(hosts_->leave(true));
  throw OutputError(fmt::format("no host can write the run: {}{}", why, kept));
}

void ElasticTraining::become_copy() {
  // There is nothing to keep before the first step.
  if (run_->role() == RunRole::follower && steps() > 0) {
    const Handover own = hand_over(run_->run());
    write_in(leave_copy({.wanted = wanted_folder(),
                         .configuration = arguments_.run,
                         .handover = own,
                         .steps = steps()}));
  }
  run_->become_copy();
}

void ElasticTraining::write_in(RunLocation location) {
  run_.reset();
  folder_.reset();
  run_ = std::make_unique<TerminalRun>(arguments_, workload_, std::move(location), hosts_,
                                       RunRole::successor, *signals_);
}

void ElasticTraining::announce_folder() {
  hosts_->announce_folder(absolute_path(run_->run().location().path()).string());
}

void ElasticTraining::note_group() {
  const auto now =
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  groups_.push_back({.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", now),
                     .steps = hosts_->steps_done(),
                     .story = hosts_->story()});
}

// Reports earlier groups, too, if they ended before any host could report them.
void ElasticTraining::tell_of_groups() {
  groups_.back().steps = steps();
  for (const Group& group : std::exchange(groups_, {})) {
    if (!is_first()) continue;
    const std::string line = fmt::format("after {} steps, {}", group.steps, group.story);
    std::ofstream(run_->run().location().path() / RunFolder::kHosts, std::ios::app)
        << fmt::format("{} {}\n", group.time, line);
    if (!arguments_.quiet && hosts_->generation() > 1) warn(line);
  }
}

// Nothing is lost, because the other hosts have done the same steps.
ExitCode ElasticTraining::leave() {
  const std::string told =
      run_ ? fmt::format("leaves the run after {} steps; the other hosts continue it", steps())
           : "leaves before it took part in the run";
  // The next host that writes the run opens the folder that this one closes.
  run_.reset();
  folder_.reset();
  hosts_->go();
  warn(told);
  return ExitCode::good;
}

ExitCode ElasticTraining::end() {
  const bool stopped = hosts_->pause_asked();
  if (!run_ && signal() == 0) {
    warn(fmt::format("the run of that name {}; another one needs another name at the rendezvous",
                     stopped ? "was stopped: hosts that bring its newest checkpoint open it again "
                               "(--continue, or --resume)"
                             : "has ended"));
    // The user of --continue wants the run to be complete, and it is.
    return arguments_.continues && !stopped ? ExitCode::good : ExitCode::run_ended;
  }
  // This host was left behind, and was waiting to take part again.
  if (signal() == 0 && !code_ && (!stopped || hosts_->generation() == 0)) {
    warn(fmt::format("the run {} on the other hosts, without this one",
                     stopped ? "was stopped" : "has ended"));
    return stopped ? ExitCode::run_ended : ExitCode::good;
  }
  if (stopped && signal() == 0) {
    const std::optional<RunWriter> writer = hosts_->writer();
    if (writer && !writer->failure.empty()) return stop_unwritten(*writer);
  }
  return stopped || signal() != 0 ? stop() : *code_;
}

// The host that found the error has kept what it could on its machine.
ExitCode ElasticTraining::stop_unwritten(const RunWriter& writer) {
  const std::string told =
      fmt::format("stopped after {} steps: no host can write the run: {}", steps(), writer.failure);
  std::string kept;
  if (!writer.is_here && run_->role() == RunRole::follower) {
    try {
      become_copy();
      kept = fmt::format("; a copy is {}", run_->run().write_checkpoint().string());
    } catch (const Error&) {
      // This host cannot write either.
    }
  }
  warn(told + kept);
  return ExitCode::output_lost;
}

// The host that writes the run folder leaves a checkpoint. If it is gone, another host that was
// asked to stop does so.
ExitCode ElasticTraining::stop() {
  if (!run_) {
    warn("stopped by a signal before it took part in the run");
    return exit_code_of_signal(signal());
  }
  if (is_alone_) {
    if (run_->role() == RunRole::follower) {
      warn("stopped by a signal; the other hosts may continue the run");
      return exit_code_of_signal(signal());
    }
    run_->become_copy();
  }
  if (run_->role() == RunRole::follower && !has_more(wanted_folder(), steps())) {
    try {
      const Handover own = hand_over(run_->run());
      write_in(RunLocation::take_over(wanted_folder(), arguments_.run, own));
    } catch (const Error&) {
      // The host that writes the folder is still alive.
      return exit_code_of_signal(signal());
    }
  }
  return run_->stop();
}

// The state of this host is kept, in every role.
void ElasticTraining::give_up(const HostLost& lost) {
  if (!run_) throw HostLost(lost);
  become_copy();
  run_->throw_lost(lost);
}

}  // namespace

ExitCode train_on_elastic_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                                const JoinHosts& join) {
  if (is_complete(arguments)) return tell_of_complete(arguments);
  HostFolder::remove_leftovers();
  return ElasticTraining(arguments, load(arguments.run), join).execute();
}

}  // namespace rubato::app
