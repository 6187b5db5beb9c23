// The constructor adds to a Run what its owner wants to know and to decide: planned faults,
// progress, tests that cannot be watched, and Interruption, through which several hosts pause after
// the same step (docs/adr/0057). execute() handles every way in which training can end. Most
// exceptions are thrown again with a longer message: thrower() names the user's part, and
// left_of_step() writes the checkpoint of the step before, if possible, and says how to continue.
// Other classes derived from Error are passed on unchanged, as they carry more than a message.

#include "session.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "base/core/file.hpp"
#include "base/core/limits.hpp"
#include "run_request.hpp"
#include "runs/config/plugin.hpp"
#include "runs/config/run_option.hpp"

namespace rubato {

PlannedFaults::PlannedFaults(std::vector<Fault> planned, StepIndex first)
    : awaited_(std::move(planned)) {
  std::erase_if(awaited_, [first](const Fault& fault) { return fault.step < first; });
}

void PlannedFaults::on_fault(Training& /*training*/, const StepPlan& step,
                             std::span<const FaultRecord> faults, std::int64_t /*cores_left*/) {
  std::erase_if(awaited_, [&](const Fault& fault) {
    return fault.step == step.index &&
           std::ranges::find(faults, fault.core, &FaultRecord::core) != faults.end();
  });
}

void PlannedFaults::on_step(Training& /*training*/, const StepRecord& step) {
  const auto is_over = [&](const Fault& fault) { return fault.step == step.plan.index; };
  std::copy_if(awaited_.begin(), awaited_.end(), std::back_inserter(idle_), is_over);
  std::erase_if(awaited_, is_over);
}

std::vector<std::string> PlannedFaults::missed(std::int64_t steps) const {
  std::vector<std::string> lines;
  const auto add = [&](const Fault& fault, const std::string& why) {
    lines.push_back(fmt::format("--fault core={},step={} did not happen: {}", fault.core.value(),
                                fault.step.value() + 1, why));
  };
  for (const Fault& fault : idle_) add(fault, "the core had no substep in that step");
  for (const Fault& fault : awaited_) {
    add(fault, fmt::format("training ended after {} steps", steps));
  }
  return lines;
}

namespace {

constexpr const char* kLessMemory = "smaller minibatches or steps and fewer threads need less";
constexpr const char* kNoDevices =
    "the availability has no devices for the rest of the training; a longer one, or --on-trace-end "
    "hold or cycle, has them";

// Only the run folder that the user has asked for gets checkpoints.
RunConfiguration configuration_of(const RunRequest& request, bool follows) {
  RunConfiguration configuration = request.run;
  if (follows) configuration.checkpoint_every = "never";
  return configuration;
}

const std::shared_ptr<const Workload>& announced(const SessionParts& parts, SessionOwner& owner) {
  if (parts.workload && !parts.follows) {
    if (const std::string slow = parts.workload->warning(); !slow.empty()) owner.warn(slow);
  }
  return parts.workload;
}

}  // namespace

// Pauses training when the owner wants to stop: with several hosts on all of them, after the same
// step. Makes the host that writes the run write a checkpoint when an owner wants one.
class Session::Interruption final : public Observer {
 public:
  Interruption(std::shared_ptr<Hosts> hosts, Session& session)
      : hosts_(std::move(hosts)), session_(session) {}

  void between_steps(Training& training) override {
    SessionOwner& owner = session_.owner_;
    const bool to_stop = owner.wants_to_stop();
    bool to_save = owner.takes_checkpoint_request();
    if (hosts_) {
      if (to_stop) hosts_->ask_to_pause();
      if (owner.wants_to_leave()) hosts_->ask_to_leave();
      if (to_save && !session_.is_kept()) hosts_->ask_to_save();
      to_save = hosts_->take_save_request() || to_save;
    }
    if (to_save && session_.is_kept()) static_cast<void>(session_.run_.write_checkpoint());
    if (hosts_ ? hosts_->pause_asked() : to_stop) training.pause();
  }

 private:
  std::shared_ptr<Hosts> hosts_;
  Session& session_;
};

// Tells the owner, once, of options that wait for an accuracy which tests do not have.
class Session::WatchedTests final : public Observer {
 public:
  explicit WatchedTests(Session& session) : session_(session) {}

  void on_epoch(Training& /*training*/, const EpochRecord& epoch) override {
    if (has_reported_) return;
    const auto line = unwatchable(session_.request_.run, epoch);
    if (line) session_.owner_.warn(*line);
    has_reported_ = line.has_value();
  }

 private:
  Session& session_;
  bool has_reported_ = false;
};

Session::Session(const RunRequest& request, SessionParts parts, SessionOwner& owner) try
    : request_(request),
      owner_(owner),
      follows_(parts.follows),
      hosts_(parts.hosts),
      run_(configuration_of(request, follows_), announced(parts, owner), std::move(parts.location),
           std::move(parts.hosts), std::move(parts.steps)) {
  if (!follows_) {
    if (const std::string difference = run_.warning(); !difference.empty()) owner.warn(difference);
    Trainer& trainer = run_.trainer();
    planned_faults_ = trainer.add_observer<PlannedFaults>(trainer.options().faults.planned,
                                                          StepIndex{trainer.result().steps});
    const bool redrawn = parts.progress && parts.progress->style != ProgressStyle::lines;
    for (const std::string& line : idle_arguments(request, run_.steps(), redrawn)) owner.warn(line);
    if (parts.progress) show(*parts.progress);
    trainer.add_observer<WatchedTests>(*this);
  }
  run_.trainer().add_observer<Interruption>(hosts_, *this);
} catch (...) {
  rethrow_of_plugins(*request.run.plugin);
}

Session::~Session() = default;

void Session::show(const ProgressOut& out) {
  const RunConfiguration& run = request_.run;
  // Samples that do not fill a minibatch are carried or dropped.
  const std::int64_t minibatch = run.remainder == Remainder::carry ? 1 : run.minibatch;
  progress_ = run_.trainer().add_observer<Progress>(
      out, ProgressOptions{.epochs = run.epochs,
                           .samples_per_epoch = run_.workload().samples() / minibatch * minibatch,
                           .log_steps = run.log_steps,
                           .threads = run_.trainer().threads(),
                           .top_k = test_metrics_of(run).top_k,
                           .budget = run_.trainer().options().budget});
}

SessionOutcome Session::execute() {
  try {
    RunOutcome outcome;
    try {
      outcome = run_.execute();
    } catch (const Interrupted&) {
      outcome.end = RunEnd::paused;
    }
    if (outcome.end != RunEnd::paused) {
      finish_progress();
      return ended(outcome);
    }
    if (hosts_ && hosts_->regroup_due() && !hosts_->pause_asked()) {
      return {.end = RunEnd::paused, .must_regroup = true};
    }
    return stop();
  } catch (const OutputError& error) {
    finish_progress();
    throw OutputError(error.what() + left_without_output());
  } catch (const HostLost& lost) {
    throw_lost(lost);
  } catch (...) {
    finish_progress();
    throw_with_rest();
  }
}

void Session::throw_with_rest() {
  try {
    throw;
  } catch (const std::exception& error) {
    if (const auto memory = memory_failure(error, kLessMemory)) {
      throw MemoryError(*memory + left_of_step());
    }
    if (const auto* const training = dynamic_cast<const TrainingError*>(&error)) {
      throw TrainingError(*training, left_of_steps());
    }
    const bool is_error = dynamic_cast<const Error*>(&error) != nullptr;
    // Classes derived from Error carry more than their message.
    if (is_error && typeid(error) != typeid(Error)) throw;
    const bool named = is_error && run_.trainer().part_under_way() != "rule";
    const std::string who = named ? std::string() : thrower();
    if (!is_error && who.empty()) throw;
    throw Error(who + error.what() + left_of_steps());
  } catch (...) {
    const std::string who = thrower();
    if (who.empty()) throw;
    throw Error(who + "an exception that is not a std::exception" + left_of_steps());
  }
}

std::string Session::thrower() const {
  const RunConfiguration& run = request_.run;
  const std::string_view part = run_.trainer().part_under_way();
  const std::string plugins = in_words(*run.plugin);
  if (part.empty() && plugins.empty()) return {};
  const TrainResult& result = run_.trainer().result();
  const std::string epoch = fmt::format("epoch {}", result.epochs + 1);
  const std::string place = part == "metric"
                                ? "after " + epoch
                                : fmt::format("at {}, step {} of the run", epoch, result.steps + 1);
  const std::string who =
      part.empty() ? plugins
                   : fmt::format("{} {}{}", part, run_option(part).text(run).value_or(""),
                                 plugins.empty() ? "" : fmt::format(" (of {})", plugins));
  return fmt::format("{} {}: ", who, place);
}

SessionOutcome Session::stop() {
  finish_progress();
  SessionOutcome outcome{.end = RunEnd::paused};
  if (is_kept() && run_.trainer().has_state()) outcome.checkpoint = run_.write_checkpoint();
  return outcome;
}

std::optional<std::int64_t> Session::save_in_step() {
  return is_kept() ? run_.write_checkpoint_in_step() : std::nullopt;
}

void Session::throw_lost(const HostLost& lost) {
  finish_progress();
  throw HostLost(lost.what() + left_of_step());
}

SessionOutcome Session::ended(const RunOutcome& run) {
  SessionOutcome outcome{.end = run.end, .summary = run.summary};
  if (run.end == RunEnd::diverged) {
    outcome.reason = run.reason + '\n' + run.advice;
    return outcome;
  }
  const TrainResult& result = run.summary->result;
  if (planned_faults_) {
    for (const std::string& line : planned_faults_->missed(result.steps)) owner_.warn(line);
  }
  if (const auto line = ended_schedule(request_.run, result, run_.workload().samples())) {
    owner_.warn(*line);
  }
  if (const auto missed = missed_target(request_.run, result)) {
    outcome.end = RunEnd::target_missed;
    outcome.reason = *missed;
  }
  if (run.end == RunEnd::out_of_devices) {
    outcome.end = run.end;
    outcome.reason =
        fmt::format("{}{}{}", kNoDevices, outcome.reason.empty() ? "" : "\n", outcome.reason);
  }
  return outcome;
}

void Session::finish_progress() {
  if (progress_) progress_->finish();
}

// Without a checkpoint, the weights are saved if possible.
std::string Session::left_without_output() {
  if (!is_kept()) return {};
  if (has_checkpoint()) {
    return fmt::format("\nthe checkpoints before it are kept; {}", owner_.to_go_on(run_));
  }
  try {
    return fmt::format("\nthe weights after {} steps are in {}", run_.trainer().result().steps,
                       run_.write_weights().string());
  } catch (const OutputError&) {
    return "\nthere is no checkpoint to continue from";
  }
}

std::string Session::left_of_steps() {
  return run_.trainer().result().steps == 0 ? std::string() : left_of_step();
}

// Writes the checkpoint of the step before if possible, else says why not.
std::string Session::left_of_step() {
  if (!is_kept()) return {};
  const std::int64_t steps = run_.trainer().result().steps;
  if (steps == 0) return "\nit was in the first step: nothing is lost";
  std::string why;
  try {
    if (run_.trainer().has_state()) {
      return fmt::format("\nafter {} steps; the checkpoint is {}; {}", steps,
                         run_.write_checkpoint().string(), owner_.to_go_on(run_));
    }
  } catch (const std::exception& error) {
    why = fmt::format("\nno checkpoint of {} steps: {}", steps, error.what());
  }
  if (!has_checkpoint()) return why + "\nthere is no checkpoint to continue from";
  return fmt::format("{}\nthe checkpoints before it are kept; {}", why, owner_.to_go_on(run_));
}

bool Session::is_kept() const {
  return !follows_ && !run_.location().path().empty();
}

// The folder may have been removed, and then recreated in part.
bool Session::has_checkpoint() const {
  return is_there(run_.location().path() / RunFolder::kConfiguration) &&
         !run_.checkpoints().files().empty();
}

}  // namespace rubato
