#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <rubato/runtime/hosts.hpp>

namespace rubato {

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
  /// The host that last said so; empty if none has, or the store does not answer.
  [[nodiscard]] virtual std::optional<RunWriter> writer() = 0;

  /// Leaves for good and ends the run, complete or `paused`, for all hosts of this group. False if
  /// it may not have ended, because the others have formed another group without this host or
  /// cannot be reached. A second call does nothing.
  virtual bool leave(bool paused) noexcept = 0;
};

}  // namespace rubato
