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

/// Another host that is gone, unreachable, or silent for too long. What this one has trained up to
/// the step before is not lost.
class HostLost : public Error {
 public:
  using Error::Error;
};

/// The processes that train one run together, on one machine or on several.
///
/// Every host has the whole run: objective, options, steps, observers, the shared update. Only the
/// minibatches of a step are divided: each host computes a run of them that is made of whole
/// subtrees of the one summation tree, the sums of those subtrees are exchanged, and all hosts add
/// them in the order of the tree. So parameters and records are the same bits on every host, and
/// the same as those of one host alone.
///
/// Whatever decides how training goes on has to decide the same on every host: observers that stop
/// it, and the user's own schedules and step sources.
///
/// Not to be used by two threads at once.
class Hosts {
 public:
  Hosts() = default;
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  virtual ~Hosts() = default;

  /// At least 1.
  [[nodiscard]] virtual int count() const = 0;
  /// Which one this process is, from 0.
  [[nodiscard]] virtual int rank() const = 0;
  /// The relative shares of a step that hosts compute, above 0: the same numbers on every host.
  /// They change no bit of the result. Equal by default.
  [[nodiscard]] virtual std::vector<double> weights() const;

  /// Gives out[h] to every other host h, and fills in[h] with what that gives to this one; both
  /// have count() elements, of which those of rank() are left alone. out[h] here and in[rank()] on
  /// host h have the same size, 0 included. All hosts call it, as often. Returns when `in` is
  /// there. Throws HostLost, or Error, where it cannot be; the step is then as if it had not been.
  virtual void exchange(std::span<const std::span<const std::byte>> out,
                        std::span<const std::span<std::byte>> in) = 0;

  // The same in parts, for those who compute meanwhile. An exchange is expected, given and taken;
  // several may be under way, and each of these calls is for the next of them in turn. The memory
  // stays where it is until the exchange is taken or abandoned. After an exception from any of the
  // calls nothing is under way. Hosts that know exchange() alone do all of it in take().

  /// Tells the hosts where their messages are to come, so that they can be sent without a question.
  virtual void expect(std::span<const std::span<std::byte>> in);
  /// Begins to send. Requires an exchange that is expected.
  virtual void give(std::span<const std::span<const std::byte>> out);
  /// Waits until what is expected is there. Requires an exchange that is given.
  virtual void take();
  /// What is under way will not be completed by this host: to the others it is lost.
  virtual void abandon() noexcept;

  // Requests, which go to all hosts with the next exchange that is given. They may be made at any
  // time, on any thread; hosts that do not pass one on ignore it.

  /// All are to pause.
  virtual void ask_to_pause() {}
  /// Whether a host had asked for it before the last exchange that was taken: the same answer on
  /// all hosts.
  [[nodiscard]] virtual bool pause_asked() const { return false; }
  /// Asks the host that writes the run for a checkpoint.
  virtual void ask_to_save() {}
  /// Returns whether a host had asked for a checkpoint before the last exchange that was taken;
  /// true once for each request.
  [[nodiscard]] virtual bool take_save_request() { return false; }
  /// Asks for this host to leave after the step while the others continue (elastic hosts only). If
  /// too few would remain, all pause.
  virtual void ask_to_leave() {}
  // Of hosts that come and go (ElasticHosts).

  /// Whether they do.
  [[nodiscard]] virtual bool elastic() const { return false; }
  /// Which group of hosts this is. count(), rank() and weights() change with it alone.
  [[nodiscard]] virtual std::int64_t generation() const { return 0; }
  /// Whether a new group is needed before the next exchange(), because a host is lost or one waits
  /// to join. Training then pauses after the last complete step.
  [[nodiscard]] virtual bool regroup_due() const { return false; }
  /// The most steps that any host had done when this group was formed. A host that has done fewer
  /// catches up by itself, without exchange(), to the same bits.
  [[nodiscard]] virtual std::int64_t steps_done() const { return 0; }
  /// That this host has done so many steps, for whoever looks at the run from outside. Called after
  /// every step: it waits for nobody.
  virtual void tell_steps(std::int64_t /*done*/) {}

 private:
  // Under way with hosts that know exchange() alone.
  struct UnderWay {
    std::vector<std::span<std::byte>> in;
    std::optional<std::vector<std::span<const std::byte>>> out{};
  };
  std::deque<UnderWay> under_way_;
};

/// Whether there are several hosts, or may come to be. Null is one.
[[nodiscard]] inline bool are_several(const Hosts* hosts) {
  return hosts != nullptr && (hosts->count() > 1 || hosts->elastic());
}

/// A text, and what it is of.
struct NamedText {
  std::string name;
  std::string text;

  friend bool operator==(const NamedText&, const NamedText&) = default;
};

/// Tells the other hosts these texts, in two exchanges. Throws Error on all hosts where one has
/// another text for a name, or other names, naming the host and what differs. Texts come to at most
/// kMaxEqualBytes.
void require_equal(Hosts& hosts, std::span<const NamedText> texts);

inline constexpr std::size_t kMaxEqualBytes = std::size_t{1} << 16U;

/// What a host that has `theirs` has otherwise than this one, which has `ours`; empty where nothing
/// is. For messages: "another data hash (12ab, here 34cd)".
[[nodiscard]] std::string difference_between(std::span<const NamedText> ours,
                                             std::span<const NamedText> theirs);

/// The progress of a host when it forms a group with others.
struct HostStanding {
  /// Steps that it has done; empty where it has no state to go on from.
  std::optional<std::int64_t> steps{};
  /// Whether it has finished; it then waits for nobody.
  bool finished = false;

  friend bool operator==(const HostStanding&, const HostStanding&) = default;
};

/// The host that writes a run, as it has said itself.
struct RunWriter {
  /// Absolute, on its machine.
  std::string folder;
  /// Whether that is the machine of whoever asks.
  bool is_here = false;
  enum class Process { runs, ended, unknown };
  Process process = Process::unknown;
  /// Why the run cannot be written there any more; empty while nothing is known of that.
  std::string failure{};
};

/// Hosts that come and go. They are a sequence of groups, the generations of a run. A host that is
/// lost, and one that wants to take part, ends a generation; those that are there then form the
/// next one.
///
/// A host is at most one step ahead of another, because each waits for all of them in every step.
/// So a host that lost the last step redoes it by itself (Hosts::steps_done()), and only a host
/// without state, which came later, receives one.
class ElasticHosts : public Hosts {
 public:
  enum class Meeting {
    formed,
    /// The run has ended for all: it is complete, or pause_asked().
    ended,
  };

  [[nodiscard]] bool elastic() const final { return true; }

  /// Forms the next group with all others that are there: once before anything else, and whenever
  /// regroup_due(). The host of rank 0 is one of those that have been there longest. Waits for as
  /// many hosts as there have to be. Throws HostLost where no group can be formed, and Error where
  /// this host may not take part, with the reason; the others go on.
  [[nodiscard]] virtual Meeting regroup(const HostStanding& standing) = 0;
  /// With what each of the group has come to it, by rank: the same on all hosts.
  [[nodiscard]] virtual std::span<const HostStanding> standings() const = 0;
  /// How the group came about, in words: who has gone and who has come, why, and how long it took.
  [[nodiscard]] virtual std::string story() const { return {}; }

  /// Tells the others that this host writes the run, in this folder. What the store does not take
  /// is not told.
  virtual void announce_folder(const std::string& folder) = 0;
  /// Tells the others why the run cannot be written in the folder that was announced last.
  virtual void announce_failure(const std::string& /*why*/) {}
  /// The host that last said so; empty if none has, or the store does not answer.
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
  /// Leaves for good, and lets the others go on.
  virtual void go() noexcept = 0;
};

}  // namespace rubato
