// execute() is an interpreter: actions_after() (roles.hpp) maps an event to a list of actions,
// perform() carries out one action, part_after() updates this host's part, and an action that leads
// to another event interrupts the list. The order of the actions is thus decided by pure functions,
// which the model check goes through, and this file has only the effects. Within a group an action
// may throw HostLost: perform_in_group() then restores the older state, if there is one, and makes
// it the event GroupLost. error_ and why_ keep a failure for the later actions that report it.

#include "host_driver.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "runs/run/run_description.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

using namespace hosts_detail;

constexpr const char* kUnwritten = "no host can write the run: ";
constexpr std::string_view kUnbegun = "the run cannot begin: ";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Returns the steps of the newest checkpoint that this host brings; empty if it brings none.
std::optional<std::int64_t> steps_to_go_on_from(const RunRequest& request) {
  if (request.checkpoint) return CheckpointFolder::steps_of(*request.checkpoint);
  if (!request.resume && !request.continues) return std::nullopt;
  const fs::path& folder = request.resume ? *request.resume : *request.out;
  const auto files = CheckpointFolder(folder / RunFolder::kCheckpoints, 1).files();
  return files.empty() ? std::nullopt : CheckpointFolder::steps_of(files.front());
}

// The end of a host whose last action does nothing else.
ElasticOutcome::End end_of(HostAction last) {
  using End = ElasticOutcome::End;
  constexpr std::array<std::pair<HostAction, End>, 6> kEnds{
      {{HostAction::conclude, End::trained},
       {HostAction::stop_as_newcomer, End::stopped_as_newcomer},
       {HostAction::stop_as_follower, End::stopped_alone},
       {HostAction::miss_run, End::missed_run},
       {HostAction::miss_end, End::missed_end},
       {HostAction::give_up_writing, End::unwritten}}};
  return std::ranges::find(kEnds, last, &std::pair<HostAction, End>::first)->second;
}

}  // namespace

HostDriver::HostDriver(const RunRequest& request, const Workload& workload, const RunSteps& steps,
                       const JoinElasticHosts& join, ElasticOptions options, HostClient& client)
    : request_(request), client_(client) {
  // A host that could not follow is no help to the others.
  static_cast<void>(HostFolder());
  std::vector<NamedText> equal = what_is_asked_for(request.run, workload);
  equal.push_back(what_is_followed(steps));
  equal.push_back({.name = "--hosts", .text = fmt::to_string(options.meeting.count)});
  equal.push_back({.name = "--min-hosts", .text = fmt::to_string(options.least)});
  equal.push_back({.name = "--max-hosts", .text = fmt::to_string(options.most)});
  options.meeting.equal = std::move(equal);
  options.brings = steps_to_go_on_from(request);
  options.waits_for_opening = request.continues;
  options.interrupted = [&client] { return client.wants_to_end(); };
  options.report = [&client](const std::string& line) { client.warn(line); };
  hosts_ = join(std::move(options));
}

ElasticOutcome HostDriver::execute() {
  Event event = Arrived{};
  while (true) {
    const bool in_group =
        std::holds_alternative<GroupFormed>(event) || std::holds_alternative<TrainingEnded>(event);
    for (const Action action : actions_after(event, part_)) {
      if (auto next = in_group ? perform_in_group(action) : perform(action)) {
        event = *std::move(next);
        break;
      }
      if (outcome_) return *outcome_;
      part_ = part_after(action, part_);
    }
  }
}

std::optional<HostDriver::Event> HostDriver::perform_in_group(Action action) {
  try {
    return perform(action);
  } catch (const HostLost&) {
    error_ = std::current_exception();
    if (older_) {
      follow(*std::exchange(older_, std::nullopt));
      part_ = part_after(Action::follow, part_);
    }
    const bool may_regroup = hosts_->regroup_due();
    if (may_regroup) note_loss();
    return GroupLost{.may_regroup = may_regroup};
  }
}

std::optional<HostDriver::Event> HostDriver::perform(Action action) {
  using End = ElasticOutcome::End;
  switch (action) {
    case Action::meet:
      return meet();
    case Action::train:
      return train();
    case Action::see_end:
      return see_end();
    case Action::begin:
      return begin();
    case Action::take_over:
      return take_over();
    case Action::forget:
      older_ = hand_over(session_->run());
      session_.reset();
      break;
    case Action::transfer:
      transfer();
      break;
    case Action::follow:
      follow(*std::exchange(handover_, std::nullopt));
      older_.reset();
      break;
    case Action::report_group:
      report_groups();
      break;
    case Action::wait_for_all:
      wait_for_all();
      break;
    case Action::end_complete:
      static_cast<void>(hosts_->leave(false));
      break;
    case Action::end_stopped:
      is_alone_ = !hosts_->leave(true);
      break;
    case Action::announce_failure:
      hosts_->announce_failure(why_);
      break;
    case Action::keep_copy:
      keep_copy();
      break;
    case Action::keep_checkpoint:
      keep_checkpoint();
      break;
    case Action::keep_in_temporary_folder:
      keep_in_temporary_folder();
      break;
    case Action::take_wanted_folder:
      take_wanted_folder();
      break;
    case Action::call_it_a_copy:
      session_->become_copy();
      break;
    case Action::leave:
      leave();
      break;
    case Action::stop:
      session_->stop();
      end_with(End::stopped);
      break;
    case Action::fail:
      fail();
      break;
    case Action::rethrow:
      std::rethrow_exception(error_);
    case Action::conclude:
    case Action::stop_as_newcomer:
    case Action::stop_as_follower:
    case Action::miss_run:
    case Action::miss_end:
    case Action::give_up_writing:
      end_with(end_of(action));
  }
  return std::nullopt;
}

HostDriver::Event HostDriver::meet() {
  try {
    const auto meeting = hosts_->regroup(standing());
    if (meeting == ElasticHosts::Regrouping::ended) return see_end();
  } catch (const Error&) {
    error_ = std::current_exception();
    const bool leaves = client_.wants_to_leave();
    return MeetingFailed{.asked_to_end = client_.wants_to_end(),
                         .asked_to_leave = leaves,
                         .can_be_spared = leaves && session_ && hosts_->can_be_spared()};
  }
  const auto now =
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  groups_.push_back({.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", now),
                     .steps = hosts_->steps_done(),
                     .story = hosts_->story()});
  return GroupFormed{.rank = static_cast<std::size_t>(hosts_->rank()),
                     .transfer = transfer_among(hosts_->standings())};
}

HostDriver::Event HostDriver::train() {
  if (!part_.finished) {
    try {
      if (!session_->execute()) {
        return TrainingEnded{.to_regroup = true, .leaves = hosts_->is_leaving()};
      }
    } catch (const OutputError& error) {
      error_ = std::current_exception();
      why_ = first_line(error.what());
      return Failed{.in = Failed::In::train};
    }
    part_.finished = true;
  }
  return TrainingEnded{.alone = session_->has_left(), .paused = hosts_->pause_asked()};
}

HostDriver::Event HostDriver::see_end() {
  RunOver over{.paused = hosts_->pause_asked(),
               .asked_to_end = client_.wants_to_end(),
               .has_place = hosts_->generation() != 0,
               .alone = is_alone_};
  so_far_.was_stopped = over.paused;
  if (!session_) {
    const std::optional<RunWriter> writer = over.paused ? hosts_->writer() : std::nullopt;
    if (writer && writer->failure.starts_with(kUnbegun)) so_far_.reason = writer->failure;
    return over;
  }
  if (part_.role == HostRole::follower) {
    over.folder_has_more = has_more(wanted_folder(), *steps());
  }
  if (!over.paused || over.asked_to_end) return over;
  if (const std::optional<RunWriter> writer = hosts_->writer()) {
    over.write_failed = !writer->failure.empty();
    over.failed_here = writer->is_here;
    so_far_.reason = writer->failure;
  }
  return over;
}

std::optional<HostDriver::Event> HostDriver::begin() {
  try {
    session_ = client_.session_in(client_.location_of_first(), hosts_, RunRole::first);
    announce_folder();
    return std::nullopt;
  } catch (const Error& error) {
    // An error here would occur on every host.
    error_ = std::current_exception();
    why_ = fmt::format("{}{}", kUnbegun, first_line(error.what()));
    // The failure is that of the host that writes.
    hosts_->announce_folder(absolute_path(wanted_folder()).string());
    return Failed{.in = Failed::In::begin};
  }
}

void HostDriver::transfer() {
  const StateTransfer transfer = transfer_among(hosts_->standings());
  const auto own = static_cast<std::size_t>(hosts_->rank());
  std::string bytes =
      transfer.from == own ? handover_bytes(hand_over(session_->run())) : std::string();
  bytes = transferred(*hosts_, transfer, std::move(bytes));
  if (transfer.to[own]) handover_ = parse_handover(bytes);
}

void HostDriver::follow(const Handover& handover) {
  folder_.emplace();
  try {
    session_ = client_.session_in(RunLocation::take_over(folder_->run(), request_.run, handover),
                                  hosts_, RunRole::follower);
  } catch (const OutputError&) {
    throw;
  } catch (const Error& error) {
    // All options were compared when this host joined, so the difference is in a file.
    throw_error(
        "the data of this host, or its model's file, differ from those of the other hosts: {}; "
        "accepted: the same on all hosts",
        first_line(error.what()));
  }
}

std::optional<HostDriver::Event> HostDriver::take_over() {
  Handover own = hand_over(session_->run());
  const std::int64_t done = *steps();
  try {
    write_in(fail_over(failover_with(own, done), *hosts_,
                       [this](const std::string& line) { client_.warn(line); }));
  } catch (const Error& error) {
    why_ = error.what();
    error_ = std::make_exception_ptr(OutputError(kUnwritten + why_));
    handover_ = std::move(own);
    return Failed{.in = Failed::In::take_over, .steps = done};
  }
  announce_folder();
  return std::nullopt;
}

// Reports earlier groups, too, if they ended before any host could report them.
void HostDriver::report_groups() {
  groups_.back().steps = *steps();
  for (const Group& group : std::exchange(groups_, {})) {
    if (hosts_->rank() != 0) continue;
    const std::string line = fmt::format("after {} steps, {}", group.steps, group.story);
    std::ofstream(session_->run().location().path() / RunFolder::kHosts, std::ios::app)
        << fmt::format("{} {}\n", group.time, line);
    if (hosts_->generation() > 1) client_.report_group(line);
  }
}

// The group has lost a host before all of it had the state.
void HostDriver::note_loss() {
  if (!groups_.empty()) groups_.back().story += "; lost again in the handover";
}

void HostDriver::wait_for_all() {
  const std::vector<std::span<const std::byte>> out(static_cast<std::size_t>(hosts_->count()));
  const std::vector<std::span<std::byte>> in(out.size());
  hosts_->exchange(out, in);
}

void HostDriver::keep_copy() {
  // There is nothing to keep before the first step.
  if (*steps() == 0) return;
  const Handover own = hand_over(session_->run());
  write_in(leave_copy(failover_with(own, *steps())));
}

void HostDriver::keep_checkpoint() {
  try {
    keep_copy();
    session_->become_copy();
    so_far_.kept = session_->run().write_checkpoint().string();
  } catch (const Error&) {
    // This host cannot write either.
  }
}

void HostDriver::keep_in_temporary_folder() {
  std::string left;
  try {
    write_in(temporary_copy({.wanted = wanted_folder(),
                             .configuration = request_.run,
                             .handover = *std::exchange(handover_, std::nullopt)}));
    static_cast<void>(session_->run().write_checkpoint());
    left = fmt::format("\nthe state of the run after {} steps is kept; {}", *steps(),
                       session_->how_to_go_on());
  } catch (const Error& error) {
    left = fmt::format("\nnothing can be kept: {}", error.what());
  }
  error_ = std::make_exception_ptr(OutputError(kUnwritten + why_ + left));
}

void HostDriver::take_wanted_folder() {
  try {
    const Handover own = hand_over(session_->run());
    write_in(RunLocation::take_over(wanted_folder(), request_.run, own));
  } catch (const Error&) {
    // The host that writes the folder is still alive.
    end_with(ElasticOutcome::End::stopped_beside_writer);
  }
}

// Nothing is lost, because the other hosts have done the same steps.
void HostDriver::leave() {
  end_with(ElasticOutcome::End::left);
  // The next host that writes the run opens the folder that this one closes.
  session_.reset();
  folder_.reset();
  hosts_->go();
}

// Fails as the training of a host does when another one is lost.
void HostDriver::fail() {
  try {
    std::rethrow_exception(error_);
  } catch (const Error& error) {
    session_->throw_lost(HostLost(error.what()));
  }
}

void HostDriver::write_in(RunLocation location) {
  session_.reset();
  folder_.reset();
  session_ = client_.session_in(std::move(location), hosts_, RunRole::successor);
}

void HostDriver::announce_folder() {
  hosts_->announce_folder(absolute_path(session_->run().location().path()).string());
}

void HostDriver::end_with(ElasticOutcome::End end) {
  outcome_ = so_far_;
  outcome_->end = end;
  outcome_->steps = steps();
}

std::optional<std::int64_t> HostDriver::steps() const {
  if (!session_) return std::nullopt;
  return session_->run().trainer().result().steps;
}

HostStanding HostDriver::standing() const {
  return {.steps = steps(), .finished = session_ && part_.finished};
}

const fs::path& HostDriver::wanted_folder() const {
  return request_.resume ? *request_.resume : *request_.out;
}

Failover HostDriver::failover_with(const Handover& own, std::int64_t done) const {
  return {.wanted = wanted_folder(), .configuration = request_.run, .handover = own, .steps = done};
}

}  // namespace rubato
