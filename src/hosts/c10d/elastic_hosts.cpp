// Hosts that come and go (docs/adr/0046, 0050). This file brings together the decisions
// (membership.hpp), the contents of the store (run_store.hpp), the way in which a host gets its
// place (forming.hpp), and the connections of a generation.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/hosts/c10d_hosts.hpp>

#include "base/core/vectors.hpp"
#include "forming.hpp"
#include "group.hpp"
#include "links.hpp"
#include "meeting.hpp"
#include "membership.hpp"
#include "presence.hpp"
#include "run_store.hpp"
#include "store.hpp"

namespace rubato {

namespace {

using namespace hosts_detail;

// Time limit for the store to answer a host that leaves.
constexpr milliseconds kFarewell{2'000};
// gloo may use timeout / kParts to connect hosts that reach each other.
constexpr int kParts = 4;
constexpr milliseconds kLeastConnection{1'000};
// Interval between two probes of the others, while hosts wait to be connected.
constexpr milliseconds kProbeInterval{1'000};
// Number of generations in a row that may fail to connect.
constexpr int kAttempts = 20;

class C10dElasticHosts final : public RequestingHosts<ElasticHosts> {
 public:
  explicit C10dElasticHosts(ElasticOptions options)
      : options_(checked_elastic(std::move(options))),
        links_(options_.meeting.interface),
        store_(options_, links_.probe_address()) {
    heartbeat_ = std::make_unique<Heartbeat>(
        [this] { return store_.new_connection(std::min(options_.meeting.timeout, kConnection)); },
        store_.store_name());
    heartbeat_->set(store_.record());
    forming_.emplace(options_, store_, *heartbeat_);
  }
  ~C10dElasticHosts() override { go(); }
  C10dElasticHosts(const C10dElasticHosts&) = delete;
  C10dElasticHosts& operator=(const C10dElasticHosts&) = delete;

  [[nodiscard]] int count() const override { return std::max(1, static_cast<int>(peers_.size())); }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<double> weights() const override { return weights_; }
  [[nodiscard]] std::int64_t generation() const override { return place().generation; }
  [[nodiscard]] bool regroup_due() const override { return regroup_due_; }
  [[nodiscard]] std::int64_t steps_done() const override { return steps_done_; }
  void report_steps(std::int64_t done) override {
    if (heartbeat_) heartbeat_->report_steps(done);
  }
  [[nodiscard]] std::span<const HostStanding> standings() const override { return standings_; }
  void ask_to_leave() override { flags_to_send_ |= kLeaveFlag; }
  [[nodiscard]] bool is_leaving() const override { return is_leaving_; }

  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    require_group();
    in_group([&] { note_all_flags(group_->exchange(out, in, flags())); });
  }
  void post_receives(std::span<const std::span<std::byte>> in) override {
    require_group();
    in_group([&] { group_->post_receives(in); });
  }
  // An exchange whose receives have been posted is completed, even if another host has asked to
  // join meanwhile.
  void post_sends(std::span<const std::span<const std::byte>> out) override {
    in_group([&] { group_->post_sends(out, flags()); });
  }
  void wait() override {
    in_group([&] { note_all_flags(group_->wait()); });
  }
  void abandon() noexcept override {
    if (group_) group_->abandon(kAbandoned);
    regroup_due_ = true;
  }

  Regrouping regroup(const HostStanding& standing) override {
    disconnect();
    const Clock::time_point start = Clock::now();
    const Members before = place();
    // Some hosts may not know of the request to leave if the step failed; the next step sends it
    // again.
    is_leaving_ = false;
    // A host that heard of the pause in the middle of a step tells the others again.
    if (pause_asked_) flags_to_send_ |= kPauseFlag;
    HostStanding own = standing;
    std::string why;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (form(own) == Regrouping::ended) return Regrouping::ended;
      try {
        connect();
        story_ = story_of(before, place(), std::exchange(reason_, {}), Clock::now() - start);
        return Regrouping::formed;
      } catch (const Error& error) {
        // One of the hosts has gone meanwhile, or does not reach another one.
        disconnect();
        why = error.what();
        if (reason_.find(why) == std::string::npos) {
          reason_ += (reason_.empty() ? "" : "; ") + why;
        }
        forming_->report(fmt::format("group {} is not connected: {}", generation(), why));
      }
    }
    throw HostLost(fmt::format("the hosts could not be connected: {}", why));
  }

  [[nodiscard]] std::string story() const override { return story_; }
  // The heartbeat puts the folder into the next store if there is none now.
  void announce_folder(const std::string& folder) override {
    static_cast<void>(ask_store([&] { store_.announce_folder(folder); }));
    if (heartbeat_) heartbeat_->set(store_.record());
  }
  // The others will notice the failure themselves if there is no store now.
  void announce_failure(const std::string& why) override {
    static_cast<void>(ask_store([&] {
      store_.reconnect(kFarewell);
      store_.announce_failure(why);
    }));
    if (heartbeat_) heartbeat_->set(store_.record());
  }
  [[nodiscard]] std::optional<RunWriter> writer() override {
    std::optional<RunWriter> writer;
    static_cast<void>(ask_store([&] { writer = store_.writer(); }));
    return writer;
  }

  bool leave(bool paused) noexcept override {
    if (has_left_) return has_ended_;
    // The first attempt may use a connection with a store that no longer exists.
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        store_.reconnect(kFarewell);
        has_ended_ = store_.end(paused ? EndOfHosts::paused : EndOfHosts::finished);
        break;
      } catch (const std::exception&) {
        store_.disconnect();
      }
    }
    go();
    return has_ended_;
  }
  [[nodiscard]] bool can_be_spared() noexcept override {
    try {
      return store_.others_there() >= static_cast<std::size_t>(options_.least);
    } catch (const std::exception&) {
      // This host sees no other host.
      return false;
    }
  }
  void go() noexcept override {
    if (std::exchange(has_left_, true)) return;
    heartbeat_.reset();
    disconnect();
    try {
      store_.leave();
    } catch (const std::exception&) {
      // The others will see that this host is silent.
    }
  }

 private:
  [[nodiscard]] const Members& place() const { return store_.record().members; }

  void disconnect() {
    group_.reset();
    group_store_.reset();
  }
  // Returns false, without a connection, if the store does not answer.
  template <class Call>
  [[nodiscard]] bool ask_store(const Call& call) noexcept {
    try {
      call();
      return true;
    } catch (const std::exception&) {
      store_.disconnect();
      return false;
    }
  }

  // --- Exchanges ---

  void require_group() const {
    if (group_ && !regroup_due_) return;
    throw HostLost("there is no group of hosts; accepted: after regroup()");
  }
  template <class Call>
  void in_group(const Call& call) {
    try {
      call();
    } catch (const HostLost& lost) {
      regroup_due_ = true;
      reason_ = lost.what();
      throw;
    }
  }
  [[nodiscard]] std::uint64_t flags() const {
    const bool due = heartbeat_->calls_for_regroup() || !place().passed.empty();
    return flags_to_send_ | (due ? kRegroupFlag : 0);
  }
  void note_all_flags(const GroupFlags& received) {
    note_flags(received);
    regroup_due_ = regroup_due_ || (received.flags & kRegroupFlag) != 0;
    if (received.leaving == 0) return;
    // All hosts count alike, so they decide alike.
    if (peers_.size() - received.leaving >= static_cast<std::size_t>(options_.least)) {
      regroup_due_ = true;
      reason_ = "asked to leave";
      is_leaving_ = received.leaves;
    } else {
      pause_asked_ = true;
    }
  }

  // --- A generation ---

  Regrouping form(HostStanding& standing) {
    Here own{.standing = standing, .cuts = links_.cuts()};
    const auto formed = forming_->form(own);
    standing = own.standing;
    if (const auto* const end = std::get_if<EndOfHosts>(&formed)) {
      pause_asked_ = pause_asked_ || *end == EndOfHosts::paused;
      return Regrouping::ended;
    }
    take_place(std::get<std::vector<Greeting>>(formed));
    return Regrouping::formed;
  }

  // Takes over rank, names, weights and standings of the new generation.
  void take_place(const std::vector<Greeting>& greetings) {
    const auto own = std::ranges::find(place().hosts, store_.record().own, &Member::host);
    rank_ = static_cast<int>(own - place().hosts.begin());
    const auto numbers = vector_of(place().hosts, &Member::host);
    const std::vector<std::string> names = names_of(greetings, numbers);
    peers_.clear();
    weights_.clear();
    for (std::size_t i = 0; i < greetings.size(); ++i) {
      peers_.push_back(
          {.host = numbers[i], .name = names[i], .probe_address = greetings[i].probe_address});
      weights_.push_back(greetings[i].weight);
    }
    standings_.clear();
    steps_done_ = 0;
    for (const Member& member : place().hosts) {
      standings_.push_back(member.standing);
      steps_done_ = std::max(steps_done_, member.standing.steps.value_or(0));
    }
  }

  void connect() {
    const C10dOptions& meeting = options_.meeting;
    const milliseconds patience = std::min(meeting.timeout / 2, kConnection);
    group_store_ = store_.new_connection(patience, store_.record().keys.group(generation()));
    next_probe_ = Clock::now() + kProbeInterval;
    group_store_->attend([this] { require_peers(); });
    links_.probe_all(*group_store_, peers_, static_cast<std::size_t>(rank_), patience);
    auto names = vector_of(peers_, &Peer::name);
    // gloo has to give up before the others stop waiting for an unconnected host to come to the
    // next generation.
    const milliseconds connection =
        std::clamp(meeting.timeout / kParts, kLeastConnection, kConnection);
    group_ = std::make_unique<Group>(group_store_->shared(), std::move(names),
                                     Group::Options{.rank = rank_,
                                                    .interface = meeting.interface,
                                                    .token = meeting.token,
                                                    .timeout = meeting.timeout,
                                                    .connection = connection,
                                                    .look = [this] { require_peers(); }});
    regroup_due_ = false;
  }
  // Called while this host waits for the others: a host that has gone since they were listed will
  // not come.
  void require_peers() {
    for (const Peer& peer : peers_) {
      if (peer.host == store_.record().own || store_.life_of(peer.host) != Life::gone) continue;
      throw HostLost(fmt::format("{} has gone", peer.name));
    }
    if (Clock::now() < next_probe_) return;
    links_.require_reachable(peers_, static_cast<std::size_t>(rank_));
    next_probe_ = Clock::now() + kProbeInterval;
  }

  ElasticOptions options_;
  Links links_;
  RunStore store_;
  bool has_left_ = false;
  // This host has ended the run for all hosts.
  bool has_ended_ = false;

  // The members below belong to the generation in which this host has its place.
  int rank_ = 0;
  std::vector<double> weights_{1.0};
  std::vector<HostStanding> standings_;
  std::vector<Peer> peers_;
  std::int64_t steps_done_ = 0;
  // Time of the next probe of the others.
  Clock::time_point next_probe_{};

  std::unique_ptr<Store> group_store_;
  std::unique_ptr<Group> group_;
  bool is_leaving_ = false;
  bool regroup_due_ = true;
  // Why the last generation ended, if a host was lost, and how this one was formed.
  std::string reason_;
  std::string story_;

  std::optional<Forming> forming_;
  // The heartbeat is the last member so that its thread ends first.
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace

std::shared_ptr<ElasticHosts> elastic_hosts(ElasticOptions options) {
  return std::make_shared<C10dElasticHosts>(std::move(options));
}

}  // namespace rubato
