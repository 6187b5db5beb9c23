#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/base/error.hpp>

namespace rubato {

/// Another host has gone, is unreachable, or has been silent for too long. All that this host has
/// trained up to the step before is kept.
class HostLost : public Error {
 public:
  using Error::Error;
};

/// The processes that train one run together, on one machine or on several.
///
/// Every host has the whole run: objective, options, steps, observers, the shared update. Only the
/// minibatches of a step are divided: each host computes consecutive minibatches that form whole
/// subtrees of the one summation tree, the hosts exchange the sums of those subtrees, and all add
/// them in the order of the tree. So parameters and records are the same bits on every host, and
/// the same as those of a single host.
///
/// Everything that decides how training continues must decide the same on every host: observers
/// that stop it, and the user's own schedules and step sources.
///
/// Must not be used by two threads at once.
class Hosts {
 public:
  Hosts() = default;
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  virtual ~Hosts() = default;

  /// The number of hosts, at least 1.
  [[nodiscard]] virtual int count() const = 0;
  /// The index of this process, from 0.
  [[nodiscard]] virtual int rank() const = 0;
  /// The relative shares of a step that the hosts compute, above 0: the same numbers on every host,
  /// equal by default. They change no bit of the result.
  [[nodiscard]] virtual std::vector<double> weights() const;

  /// Sends out[h] to every other host h, and fills in[h] with the message of that host. Both have
  /// count() elements, and those at rank() are left alone. out[h] here and in[rank()] on host h
  /// have the same size, which may be 0. All hosts must call it equally often. Returns once `in` is
  /// complete. Throws HostLost, or Error, if that is impossible; the step is then undone.
  virtual void exchange(std::span<const std::span<const std::byte>> out,
                        std::span<const std::span<std::byte>> in) = 0;

  // The same in three parts, so that a host can compute meanwhile: post_receives(), post_sends(),
  // wait(). Several exchanges may be under way, and each call is for the next of them in turn. The
  // memory must stay in place until wait() or abandon(). After an exception from any of the calls
  // nothing is under way. Implementations that only have exchange() do everything in wait().

  /// Announces the memory for incoming messages, so that they can be sent without asking first.
  virtual void post_receives(std::span<const std::span<std::byte>> in);
  /// Begins to send. Requires an exchange whose receives have been posted.
  virtual void post_sends(std::span<const std::span<const std::byte>> out);
  /// Waits until all messages have arrived. Requires an exchange whose sends have been posted.
  virtual void wait();
  /// Gives up the exchanges under way, after which this host is lost to the others.
  virtual void abandon() noexcept;

  // Requests, which reach all hosts with the next exchange that is sent. They may be made at any
  // time, on any thread; implementations that do not pass one on ignore it.

  /// Asks all hosts to pause.
  virtual void ask_to_pause() {}
  /// Returns whether a host had asked for a pause before the last exchange that was waited for: the
  /// same answer on all hosts.
  [[nodiscard]] virtual bool pause_asked() const { return false; }
  /// Asks the host that writes the run for a checkpoint.
  virtual void ask_to_save() {}
  /// Returns whether a host had asked for a checkpoint before the last exchange that this host
  /// waited for; true once for each request.
  [[nodiscard]] virtual bool take_save_request() { return false; }
  /// Asks for this host to leave after the step while the others continue (elastic hosts only). If
  /// too few would remain, all pause.
  virtual void ask_to_leave() {}
  // The members below are for hosts that join and leave (ElasticHosts).

  /// Returns whether hosts can join and leave.
  [[nodiscard]] virtual bool elastic() const { return false; }
  /// The number of the current group of hosts. count(), rank() and weights() change only with it.
  [[nodiscard]] virtual std::int64_t generation() const { return 0; }
  /// Returns whether a new group is needed before the next exchange(), because a host is lost or
  /// one waits to join. Training then pauses after the last complete step.
  [[nodiscard]] virtual bool regroup_due() const { return false; }
  /// The largest number of steps that any host had done when this group was formed. A host that has
  /// done fewer catches up by itself, without exchange(), to the same bits.
  [[nodiscard]] virtual std::int64_t steps_done() const { return 0; }
  /// Publishes the number of steps that this host has done, for those who watch the run from
  /// outside. Called after every step; it does not block.
  virtual void report_steps(std::int64_t /*done*/) {}

 private:
  // An exchange under way in implementations that only have exchange().
  struct UnderWay {
    std::vector<std::span<std::byte>> in;
    std::optional<std::vector<std::span<const std::byte>>> out{};
  };
  std::deque<UnderWay> under_way_;
};

/// Returns whether there are several hosts, or may be later. Null means a single host.
[[nodiscard]] inline bool are_several(const Hosts* hosts) {
  return hosts != nullptr && (hosts->count() > 1 || hosts->elastic());
}

/// A text and its name.
struct NamedText {
  std::string name;
  std::string text;

  friend bool operator==(const NamedText&, const NamedText&) = default;
};

/// Exchanges these texts with the other hosts, in two exchanges. Throws Error on all hosts if one
/// has a different text for a name, or different names; the message names the host and the
/// difference. The texts have at most kMaxEqualBytes together.
void require_equal(Hosts& hosts, std::span<const NamedText> texts);

inline constexpr std::size_t kMaxEqualBytes = std::size_t{1} << 16U;

/// Describes how a host with `theirs` differs from this one, which has `ours`; empty if it does
/// not. For messages: "another data hash (12ab, here 34cd)".
[[nodiscard]] std::string difference_between(std::span<const NamedText> ours,
                                             std::span<const NamedText> theirs);

/// The progress of a host when it forms a group with others.
struct HostStanding {
  /// The steps that it has done; empty if it has no state from which it could continue.
  std::optional<std::int64_t> steps{};
  /// True once it has finished; it then waits for no other host.
  bool finished = false;

  friend bool operator==(const HostStanding&, const HostStanding&) = default;
};

/// The host that writes a run, as announced by itself.
struct RunWriter {
  /// The run folder: an absolute path on that host's machine.
  std::string folder;
  /// True if that is the caller's machine.
  bool is_here = false;
  enum class Process { runs, ended, unknown };
  Process process = Process::unknown;
  /// The reason why the run can no longer be written there; empty unless one was announced.
  std::string failure{};
};

/// Hosts that join and leave. They form a sequence of groups, the generations of a run. A host that
/// is lost, or one that wants to join, ends a generation; the hosts that are present then form the
/// next one.
///
/// A host is at most one step ahead of another, because each waits for all of them in every step.
/// So a host that lost the last step redoes it by itself (Hosts::steps_done()), and only a host
/// that joined later, and has no state, receives one.
class ElasticHosts : public Hosts {
 public:
  enum class Regrouping {
    formed,
    /// The run has ended for all hosts: it is complete, or pause_asked().
    ended,
  };

  [[nodiscard]] bool elastic() const final { return true; }

  /// Forms the next group with all other hosts that are present. Called once before anything else,
  /// and whenever regroup_due(). The host of rank 0 is one of those that have been present longest.
  /// Waits for the required number of hosts. Throws HostLost if no group can be formed, and Error
  /// if this host may not join, with the reason; the other hosts continue.
  [[nodiscard]] virtual Regrouping regroup(const HostStanding& standing) = 0;
  /// The standing that each host of the group brought to it, by rank: the same on all hosts.
  [[nodiscard]] virtual std::span<const HostStanding> standings() const = 0;
  /// Describes how the group was formed: who has left and who has joined, why, and how long it
  /// took.
  [[nodiscard]] virtual std::string story() const { return {}; }

  /// Tells the others that this host writes the run, in this folder. Does nothing if the store
  /// cannot be reached.
  virtual void announce_folder(const std::string& folder) = 0;
  /// Tells the others why the run cannot be written in the folder that was announced last.
  virtual void announce_failure(const std::string& /*why*/) {}
  /// The host that announced its folder last; empty if none has, or if the store does not answer.
  [[nodiscard]] virtual std::optional<RunWriter> writer() = 0;

  /// Leaves for good and ends the run, complete or `paused`, for all hosts of this group. False if
  /// it may not have ended, because the others have formed another group without this host or
  /// cannot be reached. A second call does nothing.
  virtual bool leave(bool paused) noexcept = 0;

  /// Returns whether the others know that this host leaves after this step (ask_to_leave()), and
  /// only wait for it to be gone.
  [[nodiscard]] virtual bool is_leaving() const { return false; }
  /// Returns whether enough other hosts are there to continue without this one, as far as is known
  /// between two groups.
  [[nodiscard]] virtual bool can_be_spared() noexcept { return false; }
  /// Leaves for good, and lets the others continue.
  virtual void go() noexcept = 0;
};

}  // namespace rubato
