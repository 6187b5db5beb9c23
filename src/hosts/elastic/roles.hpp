#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include <rubato/loop/hosts.hpp>

namespace rubato::hosts_detail {

/// The state transfer at the start of a group: the rank of the host that sends its state, and the
/// hosts that need it.
struct StateTransfer {
  std::size_t from = 0;
  /// True for each rank that receives the state.
  std::vector<bool> to{};
};

/// The host that has done the most steps sends its state to those that have none or are more than
/// one step behind; a single step is redone instead. If no host has a state, the first one begins
/// the run and sends its state to all others. `standings` are those of the group, by rank.
[[nodiscard]] StateTransfer transfer_among(std::span<const HostStanding> standings);

enum class HostRole {
  /// The host has no state of the run.
  newcomer,
  /// The host computes along, and could continue the run.
  follower,
  /// The host shows the run and writes its folder.
  writer,
};

/// The part that a host has in an elastic run.
struct HostPart {
  HostRole role = HostRole::newcomer;
  /// The result of the run is final on this host.
  bool finished = false;

  friend bool operator==(const HostPart&, const HostPart&) = default;
};

// The events of a host.

/// The host wants to take part.
struct Arrived {};

/// The host has a place in a group whose hosts are connected.
struct GroupFormed {
  std::size_t rank = 0;
  StateTransfer transfer{};
};

/// The host has trained as far as the group could.
struct TrainingEnded {
  /// The group has ended before the run (Hosts::regroup_due()).
  bool to_regroup = false;
  /// All hosts know that this one leaves (ElasticHosts::is_leaving()).
  bool leaves = false;
  /// This host alone has ended, because nobody reads its output any more.
  bool alone = false;
  /// A host had asked for a pause.
  bool paused = false;
};

/// Another host is lost before the group has ended its work.
struct GroupLost {
  /// The remaining hosts can form another group.
  bool may_regroup = false;
};

/// No group could be formed, or the user has asked for an end meanwhile.
struct MeetingFailed {
  bool asked_to_end = false;
  /// The request was to leave.
  bool asked_to_leave = false;
  /// Enough other hosts are there to continue (ElasticHosts::can_be_spared()).
  bool can_be_spared = false;
};

/// The run has ended, for all hosts or for this one.
struct RunOver {
  /// The run was stopped, and is not complete.
  bool paused = false;
  bool asked_to_end = false;
  /// This host has its place in a group.
  bool has_place = false;
  /// The others may continue without this host.
  bool alone = false;
  /// The host that wrote the run cannot write it any more; on this machine.
  bool write_failed = false;
  bool failed_here = false;
  /// The wanted folder holds more of the run than this host has done.
  bool folder_has_more = false;
};

/// This host has failed, but not because of another one.
struct Failed {
  enum class In {
    /// It began the run: every host would fail.
    begin,
    /// It trained, and could not write its output.
    train,
    /// It should have taken over the run, and found no folder for it.
    take_over,
  };
  In in = In::begin;
  /// Steps that it has done.
  std::int64_t steps = 0;
};

using HostEvent =
    std::variant<Arrived, GroupFormed, TrainingEnded, GroupLost, MeetingFailed, RunOver, Failed>;

enum class HostAction {
  /// Drops a state that is too old. The host becomes a newcomer.
  forget,
  /// Begins the run, or continues it from a checkpoint, and announces its folder. The host becomes
  /// the writer.
  begin,
  /// Makes the exchanges of the transfer, as all hosts of the group do.
  transfer,
  /// Continues from the state that was received. The host becomes a follower.
  follow,
  /// Continues the run in its folder or another one, and announces that. The host becomes the
  /// writer, and has the result still to write.
  take_over,
  /// Reports how the group was formed.
  report_group,
  /// Waits for the others, which may need this host until they have finished, too.
  wait_for_all,
  /// Ends the run for all hosts of the group: complete, or stopped.
  end_complete,
  end_stopped,
  /// Tells the others that this host cannot write the run.
  announce_failure,
  /// Keeps a follower's state in a folder, as a copy of a run that others may continue.
  keep_copy,
  /// The same with a checkpoint, as far as possible; the second in a temporary folder.
  keep_checkpoint,
  keep_in_temporary_folder,
  /// Makes the wanted folder that of the run, unless another host still writes it.
  take_wanted_folder,
  /// Calls the folder a copy in messages.
  call_it_a_copy,

  // The actions below lead to another event.

  /// Forms the next group: GroupFormed, MeetingFailed or RunOver.
  meet,
  /// Trains until the group or the run ends, unless the host has finished: TrainingEnded, Failed.
  train,
  /// Finds out how the run has ended: RunOver.
  see_end,

  // The actions below are a host's last.

  /// Ends with the result of the training.
  conclude,
  /// Leaves the run to the others.
  leave,
  /// Stops, with a checkpoint in the writer's folder.
  stop,
  /// Stops without a state.
  stop_as_newcomer,
  /// Stops as a follower whose state the others have.
  stop_as_follower,
  /// Ends because the run had ended before this host took part, or since it was left behind.
  miss_run,
  miss_end,
  /// Ends because no host can write the run.
  give_up_writing,
  /// Ends with the error of the event: as it is, or with what is left of the run.
  rethrow,
  fail,
};

/// The actions of a host with this part after an event; the last one leads to another event, or is
/// the host's last. A pure function, as decide() is: the driver performs the actions
/// (host_driver.hpp), and the model check goes through what may happen to several hosts between
/// them.
[[nodiscard]] std::vector<HostAction> actions_after(const HostEvent& event, const HostPart& part);

/// The part of a host that has performed the action.
[[nodiscard]] HostPart part_after(HostAction action, HostPart part);

}  // namespace rubato::hosts_detail
