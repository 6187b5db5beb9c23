#include "roles.hpp"

#include <algorithm>

namespace rubato::hosts_detail {

StateTransfer transfer_among(std::span<const HostStanding> standings) {
  const auto steps_of = [](const HostStanding& host) { return host.steps.value_or(-1); };
  const auto furthest = std::ranges::max_element(standings, {}, steps_of);
  StateTransfer transfer{.from = static_cast<std::size_t>(furthest - standings.begin())};
  for (std::size_t host = 0; host < standings.size(); ++host) {
    const bool lacks = !standings[host].steps || *standings[host].steps + 1 < steps_of(*furthest);
    transfer.to.push_back(lacks && host != transfer.from);
  }
  return transfer;
}

HostPart part_after(HostAction action, HostPart part) {
  switch (action) {
    case HostAction::forget:
      return {.role = HostRole::newcomer, .finished = part.finished};
    case HostAction::follow:
      return {.role = HostRole::follower, .finished = part.finished};
    case HostAction::begin:
      return {.role = HostRole::writer, .finished = part.finished};
    case HostAction::take_over:
    case HostAction::take_wanted_folder:
    case HostAction::keep_copy:
    case HostAction::keep_checkpoint:
    case HostAction::keep_in_temporary_folder:
      return {.role = HostRole::writer};
    default:
      return part;
  }
}

namespace {

using Actions = std::vector<HostAction>;

// Derives the actions of a host from its part and one event.
class Actor {
 public:
  explicit Actor(const HostPart& part) : part_(part) {}

  Actions operator()(const Arrived& /*event*/) const { return {HostAction::meet}; }

  Actions operator()(const GroupFormed& event) const {
    const StateTransfer& transfer = event.transfer;
    const bool receives = transfer.to[event.rank];
    Actions actions;
    HostRole role = part_.role;
    const auto act = [&](HostAction action) {
      actions.push_back(action);
      role = part_after(action, {.role = role}).role;
    };
    // A host that was left behind is given a newer state.
    if (receives && role != HostRole::newcomer) act(HostAction::forget);
    if (transfer.from == event.rank && role == HostRole::newcomer) act(HostAction::begin);
    if (std::ranges::find(transfer.to, true) != transfer.to.end()) act(HostAction::transfer);
    if (receives) act(HostAction::follow);
    if (event.rank == 0 && role == HostRole::follower) act(HostAction::take_over);
    act(HostAction::report_group);
    act(HostAction::train);
    return actions;
  }

  Actions operator()(const TrainingEnded& event) const {
    if (event.alone) return {HostAction::conclude};
    if (event.to_regroup) return {event.leaves ? HostAction::leave : HostAction::meet};
    if (event.paused) return {HostAction::end_stopped, HostAction::conclude};
    return {HostAction::wait_for_all, HostAction::end_complete, HostAction::conclude};
  }

  Actions operator()(const GroupLost& event) const {
    return event.may_regroup ? Actions{HostAction::meet} : give_up();
  }

  Actions operator()(const MeetingFailed& event) const {
    if (!event.asked_to_end) return give_up();
    if (event.asked_to_leave && (is_newcomer() || event.can_be_spared)) return {HostAction::leave};
    if (is_newcomer()) return {HostAction::see_end};
    return {HostAction::end_stopped, HostAction::see_end};
  }

  Actions operator()(const RunOver& event) const {
    if (event.asked_to_end) return stop(event);
    if (is_newcomer()) return {HostAction::miss_run};
    if (!part_.finished && (!event.paused || !event.has_place)) return {HostAction::miss_end};
    if (!event.paused) return {HostAction::conclude};
    if (!event.write_failed) return stop(event);
    // The host that found the error has kept what it could on its machine.
    if (event.failed_here || !is_follower()) return {HostAction::give_up_writing};
    return {HostAction::keep_checkpoint, HostAction::give_up_writing};
  }

  Actions operator()(const Failed& event) const {
    switch (event.in) {
      case Failed::In::begin:
        return {HostAction::announce_failure, HostAction::end_stopped, HostAction::rethrow};
      case Failed::In::train:
        // The hosts that continue the run need to know this before they take the same folder.
        if (part_.role == HostRole::writer)
          return {HostAction::announce_failure, HostAction::rethrow};
        return {HostAction::rethrow};
      case Failed::In::take_over:
        break;
    }
    Actions actions{HostAction::announce_failure, HostAction::end_stopped, HostAction::rethrow};
    if (event.steps > 0) actions.insert(actions.begin(), HostAction::keep_in_temporary_folder);
    return actions;
  }

 private:
  [[nodiscard]] bool is_newcomer() const { return part_.role == HostRole::newcomer; }
  [[nodiscard]] bool is_follower() const { return part_.role == HostRole::follower; }

  // The state of a host is kept, in every role.
  [[nodiscard]] Actions give_up() const {
    if (is_newcomer()) return {HostAction::rethrow};
    if (is_follower()) return {HostAction::keep_copy, HostAction::call_it_a_copy, HostAction::fail};
    return {HostAction::call_it_a_copy, HostAction::fail};
  }

  // The host that writes the run folder leaves a checkpoint. If it is gone, another host that was
  // asked to stop does so.
  [[nodiscard]] Actions stop(const RunOver& event) const {
    if (is_newcomer()) return {HostAction::stop_as_newcomer};
    if (event.alone && is_follower()) return {HostAction::stop_as_follower};
    if (event.alone) return {HostAction::call_it_a_copy, HostAction::stop};
    if (is_follower() && !event.folder_has_more)
      return {HostAction::take_wanted_folder, HostAction::stop};
    return {HostAction::stop};
  }

  const HostPart& part_;
};

}  // namespace

std::vector<HostAction> actions_after(const HostEvent& event, const HostPart& part) {
  return std::visit(Actor(part), event);
}

}  // namespace rubato::hosts_detail
