#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rubato/hosts/elastic_run.hpp>
#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>

#include "failover.hpp"
#include "roles.hpp"
#include "runs/run/resumption.hpp"
#include "runs/run/run_request.hpp"
#include "runs/run/session.hpp"

namespace rubato {

/// The role of a process in a run.
enum class RunRole {
  /// Begins or continues the run, shows it and writes its folder.
  first,
  /// Has taken over from a lost host.
  successor,
  /// Computes along with the host that shows and writes the run.
  follower,
};

/// A host's session of a run in one role.
class HostSession {
 public:
  HostSession() = default;
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;
  virtual ~HostSession() = default;

  /// Trains to the end or until the user wants to stop. False if the hosts have to form a new group
  /// first (Hosts::regroup_due()); it may then be called again. Throws as Session::execute() does.
  [[nodiscard]] virtual bool execute() = 0;
  /// Ends the run early, with a checkpoint if it writes the folder.
  virtual void stop() = 0;
  /// Throws as Session::throw_lost() does.
  [[noreturn]] virtual void throw_lost(const HostLost& lost) = 0;
  /// Makes the following messages speak of a copy of the run, which others may continue.
  virtual void become_copy() = 0;
  /// True if this host alone has ended in execute().
  [[nodiscard]] virtual bool has_left() const = 0;
  /// SessionOwner::to_go_on() of the run.
  [[nodiscard]] virtual std::string how_to_go_on() const = 0;
  [[nodiscard]] virtual Run& run() = 0;
};

/// A session that tells nobody anything but its owner.
class QuietSession final : public HostSession {
 public:
  /// Takes what Session's constructor takes.
  QuietSession(const RunRequest& request, SessionParts parts, SessionOwner& owner)
      : owner_(owner), session_(request, std::move(parts), owner) {}

  [[nodiscard]] bool execute() override {
    outcome_ = session_.execute();
    return !outcome_.must_regroup;
  }
  void stop() override { outcome_ = session_.stop(); }
  [[noreturn]] void throw_lost(const HostLost& lost) override { session_.throw_lost(lost); }
  void become_copy() override {}
  [[nodiscard]] bool has_left() const override { return false; }
  [[nodiscard]] std::string how_to_go_on() const override {
    return owner_.to_go_on(session_.run());
  }
  [[nodiscard]] Run& run() override { return session_.run(); }
  /// The outcome of the last execute() or stop().
  [[nodiscard]] const SessionOutcome& outcome() const { return outcome_; }

 private:
  SessionOwner& owner_;
  Session session_;
  SessionOutcome outcome_{};
};

/// The program, or the caller from C++ or Python, for which a host takes part.
class HostClient {
 public:
  HostClient() = default;
  HostClient(const HostClient&) = delete;
  HostClient& operator=(const HostClient&) = delete;
  virtual ~HostClient() = default;

  /// The location of a run that this host begins or continues. Throws Error.
  [[nodiscard]] virtual RunLocation location_of_first() = 0;
  /// Makes a session in that role. There is one at a time; it is destroyed before the driver.
  [[nodiscard]] virtual std::unique_ptr<HostSession> session_in(RunLocation location,
                                                                std::shared_ptr<Hosts> hosts,
                                                                RunRole role) = 0;
  /// True if the user has asked for an end; the second if the request was to leave.
  [[nodiscard]] virtual bool wants_to_end() = 0;
  [[nodiscard]] virtual bool wants_to_leave() = 0;
  /// Tells the user something they should know.
  virtual void warn(const std::string& text) = 0;
  /// Tells the user of the host that writes the run how a new group was formed.
  virtual void report_group(const std::string& line) { warn(line); }
};

/// One host's part in an elastic run: performs what actions_after() says.
///
/// A state is never only in transit. Each host of a group has the whole of it, and keeps it while
/// the next group meets, connects and hands over: a host gives from a copy, and one that is given a
/// newer state keeps its older one until the newer one is there. So any one host that survives a
/// loss, at whatever moment, can continue.
class HostDriver {
 public:
  /// Joins the hosts of the run, whose steps are `steps`. The request names the folder that this
  /// host wants for the run. In `options`, `equal`, `brings`, `waits_for_opening`, `interrupted`
  /// and `report` are set by the driver. The request and the client must outlive it. Throws Error.
  HostDriver(const RunRequest& request, const Workload& workload, const RunSteps& steps,
             const JoinElasticHosts& join, ElasticOptions options, HostClient& client);

  /// Takes part until the run has ended for this host. Throws what the sessions throw; HostLost if
  /// the other hosts are lost, and OutputError if no host can write the run.
  ElasticOutcome execute();

  /// The last session; null if the host has no state.
  [[nodiscard]] HostSession* session() { return session_.get(); }
  /// True if the last session writes a folder that is kept.
  [[nodiscard]] bool writes() const {
    return session_ && part_.role == hosts_detail::HostRole::writer;
  }

 private:
  using Action = hosts_detail::HostAction;
  using Event = hosts_detail::HostEvent;

  // Performs an action. Returns the event to which it leads, or which interrupts the actions; the
  // last action of a host sets `outcome_` or throws.
  std::optional<Event> perform(Action action);
  // The same for actions within a group, which may lose hosts.
  std::optional<Event> perform_in_group(Action action);

  // Actions.
  Event meet();
  Event train();
  Event see_end();
  std::optional<Event> begin();
  void transfer();
  void follow(const Handover& handover);
  std::optional<Event> take_over();
  void report_groups();
  void wait_for_all();
  void keep_copy();
  void keep_checkpoint();
  void keep_in_temporary_folder();
  void take_wanted_folder();
  void leave();
  void fail();

  void note_loss();
  void write_in(RunLocation location);
  void announce_folder();
  void end_with(ElasticOutcome::End end);
  [[nodiscard]] std::optional<std::int64_t> steps() const;
  [[nodiscard]] HostStanding standing() const;
  [[nodiscard]] const std::filesystem::path& wanted_folder() const;
  [[nodiscard]] hosts_detail::Failover failover_with(const Handover& own, std::int64_t done) const;

  const RunRequest& request_;
  HostClient& client_;
  std::shared_ptr<ElasticHosts> hosts_;
  hosts_detail::HostPart part_;
  // The folder of a follower; empty in other roles.
  std::optional<hosts_detail::HostFolder> folder_;
  std::unique_ptr<HostSession> session_;
  // The state on its way between two actions.
  std::optional<Handover> handover_;
  // The state of a host that was left behind, until it has the newer one: if the giving host is
  // lost meanwhile, this may be all that is left of the run.
  std::optional<Handover> older_;
  // The error of the last event, and why this host cannot write the run.
  std::exception_ptr error_;
  std::string why_;
  // True if this host has ended, and other hosts may continue the run without it.
  bool is_alone_ = false;
  // The part of the outcome that is known before the end.
  ElasticOutcome so_far_;
  std::optional<ElasticOutcome> outcome_;
  // Groups that are not in hosts.log yet.
  struct Group {
    std::string time;
    std::int64_t steps;
    std::string story;
  };
  std::vector<Group> groups_;
};

}  // namespace rubato
