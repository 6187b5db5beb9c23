#include "app/elastic_train.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/report/run_folder.hpp>
#include <rubato/run/run_location.hpp>

#include "app/host_folder.hpp"
#include "app/output.hpp"
#include "app/stop_signals.hpp"
#include "app/terminal_run.hpp"
#include "app/train_run.hpp"
#include "config/trace_source.hpp"
#include "core/file.hpp"
#include "run/handover.hpp"
#include "run/host_texts.hpp"

namespace rubato::app {

namespace {

namespace fs = std::filesystem;

// Of a run's folder, what is beside it where it cannot be written to: runs/a-2.
fs::path name_beside(const fs::path& folder) {
  std::error_code ignored;
  fs::path name;
  int i = 2;
  do {
    name = fmt::format("{}-{}", folder.string(), i++);
  } while (fs::exists(name, ignored));
  return name;
}

// Bytes from one host of a group to some others: all of them call its functions.
class Gift {
 public:
  Gift(Hosts& hosts, std::size_t from, std::vector<bool> to)
      : hosts_(hosts), from_(from), to_(std::move(to)) {}

  // Returns what the host that gives has as `bytes`; on one that takes no part, nothing.
  std::string give(std::string bytes) {
    std::uint64_t size = bytes.size();
    exchange(std::as_writable_bytes(std::span(&size, 1)), std::vector(to_.size(), true));
    if (size > kMost) {
      throw Error(
          fmt::format("another host gives a state of {} bytes; accepted: up to {}", size, kMost));
    }
    if (takes()) bytes.resize(size);
    for (std::uint64_t begin = 0; begin < size; begin += kPiece) {
      const std::uint64_t count = std::min(kPiece, size - begin);
      const bool has_part = gives() || takes();
      exchange(has_part ? std::as_writable_bytes(std::span(bytes)).subspan(begin, count)
                        : std::span<std::byte>(),
               to_);
    }
    return bytes;
  }

 private:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 36U;
  static constexpr std::uint64_t kPiece = std::uint64_t{1} << 26U;

  [[nodiscard]] std::size_t own() const { return static_cast<std::size_t>(hosts_.rank()); }
  [[nodiscard]] bool gives() const { return own() == from_; }
  [[nodiscard]] bool takes() const { return to_[own()]; }

  void exchange(std::span<std::byte> bytes, const std::vector<bool>& to) {
    std::vector<std::span<const std::byte>> out(to.size());
    std::vector<std::span<std::byte>> in(to.size());
    for (std::size_t host = 0; host < to.size(); ++host) {
      if (gives() && to[host]) out[host] = bytes;
    }
    if (!gives() && to[own()]) in[from_] = bytes;
    hosts_.exchange(out, in);
  }

  Hosts& hosts_;
  std::size_t from_;
  std::vector<bool> to_;
};

// A run on hosts that come and go, on one of them.
class ElasticTraining {
 public:
  ElasticTraining(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
                  const JoinHosts& join)
      : arguments_(arguments), workload_(std::move(workload)) {
    auto equal = what_is_asked_for(arguments.run, *workload_);
    equal.push_back(what_is_followed(load_run_steps(arguments.run)));
    hosts_ = join(
        arguments.hosts, std::move(equal), [this] { return signal() != 0; }, warn);
    signals_.emplace(nullptr);
  }

  ExitCode execute();

 private:
  // Who gives its state to those that have none, in a group.
  struct Giving {
    std::size_t from = 0;
    std::vector<bool> to{};
    [[nodiscard]] bool any() const { return std::ranges::find(to, true) != to.end(); }
  };

  ElasticHosts::Meeting meet();
  std::optional<ExitCode> take_part();
  [[nodiscard]] HostStanding standing() const;
  [[nodiscard]] Giving giving() const;
  // 0 while none has come.
  [[nodiscard]] int signal() const { return signals_ ? signals_->received() : 0; }
  [[nodiscard]] bool is_first() const { return hosts_->rank() == 0; }
  void share_state();
  void begin();
  // With what this host has come to, or been given.
  void follow(const Handover& handover);
  void succeed(const Handover& handover);
  [[nodiscard]] const fs::path& wanted_folder() const {
    return arguments_.resume ? *arguments_.resume : *arguments_.out;
  }
  [[nodiscard]] RunLocation successor_location(const Handover& handover) const;
  void tell_of_change();
  // Nobody goes on.
  ExitCode end();
  ExitCode stop();
  [[noreturn]] void give_up(const HostLost& lost);

  const TrainArguments& arguments_;
  std::shared_ptr<const Workload> workload_;
  std::shared_ptr<ElasticHosts> hosts_;
  // Of a follower.
  std::optional<HostFolder> folder_;
  // Of all its roles: a signal that comes between two is one, too. From when it has joined.
  std::optional<StopSignals> signals_;
  std::unique_ptr<TerminalRun> run_;
  // What the run has come to, where that is final.
  std::optional<ExitCode> code_;
  int last_count_ = 0;
};

ExitCode ElasticTraining::execute() {
  while (meet() == ElasticHosts::Meeting::formed) {
    try {
      if (const auto code = take_part()) return *code;
    } catch (const HostLost& lost) {
      if (!hosts_->regroup_due()) give_up(lost);
    }
  }
  return end();
}

ElasticHosts::Meeting ElasticTraining::meet() {
  try {
    return hosts_->regroup(standing());
  } catch (const Error& error) {
    if (signal() == 0) {
      if (!run_) throw;
      give_up(HostLost(error.what()));
    }
    if (run_) hosts_->leave(true);
    return ElasticHosts::Meeting::ended;
  }
}

// In a group. Empty where it has come to its end before the run has.
std::optional<ExitCode> ElasticTraining::take_part() {
  share_state();
  if (is_first() && run_->role() == RunRole::follower) {
    succeed(hand_over(run_->run()));
    code_.reset();
  }
  tell_of_change();
  if (!code_) code_ = run_->execute();
  if (!code_) return std::nullopt;
  const bool paused = hosts_->pause_asked();
  // The others may need this host until they have come as far.
  if (!paused) {
    const std::vector<std::span<const std::byte>> out(static_cast<std::size_t>(hosts_->count()));
    const std::vector<std::span<std::byte>> in(out.size());
    hosts_->exchange(out, in);
  }
  hosts_->leave(paused);
  return code_;
}

HostStanding ElasticTraining::standing() const {
  if (!run_) return {};
  return {.steps = run_->run().trainer().result().steps, .finished = code_.has_value()};
}

ElasticTraining::Giving ElasticTraining::giving() const {
  const std::span<const HostStanding> standings = hosts_->standings();
  const auto steps_of = [](const HostStanding& host) { return host.steps.value_or(-1); };
  const auto furthest = std::ranges::max_element(standings, {}, steps_of);
  Giving giving{.from = static_cast<std::size_t>(furthest - standings.begin())};
  // Where nobody has a state the first host begins. One step is redone.
  for (std::size_t host = 0; host < standings.size(); ++host) {
    const bool lacks = !standings[host].steps || *standings[host].steps + 1 < steps_of(*furthest);
    giving.to.push_back(lacks && host != giving.from);
  }
  return giving;
}

void ElasticTraining::share_state() {
  Giving giving = this->giving();
  const auto own = static_cast<std::size_t>(hosts_->rank());
  // Was left behind, and is given a newer state.
  if (giving.to[own]) run_.reset();
  if (giving.from == own && !run_) begin();
  if (!giving.any()) return;
  const bool takes = giving.to[own];
  std::string bytes = giving.from == own ? handover_bytes(hand_over(run_->run())) : std::string();
  bytes = Gift(*hosts_, giving.from, std::move(giving.to)).give(std::move(bytes));
  if (takes) follow(parse_handover(bytes));
}

void ElasticTraining::begin() {
  try {
    run_ = std::make_unique<TerminalRun>(arguments_, workload_, location_of_first(arguments_),
                                         hosts_, RunRole::first, *signals_);
  } catch (const Error&) {
    // What is wrong here is wrong everywhere.
    hosts_->leave(true);
    throw;
  }
}

void ElasticTraining::follow(const Handover& handover) {
  run_.reset();
  folder_.emplace();
  run_ = std::make_unique<TerminalRun>(
      arguments_, workload_, RunLocation::take_over(folder_->run(), arguments_.run, handover),
      hosts_, RunRole::follower, *signals_);
}

void ElasticTraining::succeed(const Handover& handover) {
  run_.reset();
  folder_.reset();
  run_ = std::make_unique<TerminalRun>(arguments_, workload_, successor_location(handover), hosts_,
                                       RunRole::successor, *signals_);
}

RunLocation ElasticTraining::successor_location(const Handover& handover) const {
  const fs::path& wanted = wanted_folder();
  try {
    return RunLocation::take_over(wanted, arguments_.run, handover);
  } catch (const OutputError&) {
    throw;
  } catch (const Error& error) {
    // It is another run's, or the host that was first is not dead.
    const fs::path beside = name_beside(wanted);
    warn(fmt::format("{}\nthe run goes on in {}", error.what(), beside.string()));
    return RunLocation::take_over(beside, arguments_.run, handover);
  }
}

void ElasticTraining::tell_of_change() {
  const int count = hosts_->count();
  if (is_first() && !arguments_.quiet && last_count_ != 0 && count != last_count_) {
    warn(fmt::format("{} after {} steps: {} host{} on",
                     count < last_count_ ? "a host is lost" : "a host has come",
                     run_->run().trainer().result().steps, count, count == 1 ? " goes" : "s go"));
  }
  last_count_ = count;
}

ExitCode ElasticTraining::end() {
  if (hosts_->pause_asked() || signal() != 0) return stop();
  if (code_) return *code_;
  if (run_) {
    warn("the run has ended without this host, at the others");
    return ExitCode::good;
  }
  warn("the run of that name has ended; another one needs another name at the rendezvous");
  return ExitCode::good;
}

// The host that writes the run folder leaves a checkpoint; where it is gone, another one that has
// been asked to stop does.
ExitCode ElasticTraining::stop() {
  if (!run_) {
    warn(signal() != 0 ? "stopped by a signal before it took part in the run"
                       : "the run was stopped at another host");
    return exit_code_of_signal(signal());
  }
  if (run_->role() == RunRole::follower) {
    try {
      const Handover own = hand_over(run_->run());
      RunLocation location = RunLocation::take_over(wanted_folder(), arguments_.run, own);
      run_.reset();
      run_ = std::make_unique<TerminalRun>(arguments_, workload_, std::move(location), hosts_,
                                           RunRole::successor, *signals_);
    } catch (const Error&) {
      // It is not gone.
      if (!run_) return ExitCode::terminated;
    }
  }
  return run_->stop();
}

// Whatever role this host had, what it has come to is kept.
void ElasticTraining::give_up(const HostLost& lost) {
  if (!run_) throw HostLost(lost);
  if (run_->role() == RunRole::follower) succeed(hand_over(run_->run()));
  run_->throw_lost(lost);
}

}  // namespace

ExitCode train_on_elastic_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                                const JoinHosts& join) {
  HostFolder::remove_leftovers();
  return ElasticTraining(arguments, load(arguments.run), join).execute();
}

}  // namespace rubato::app
