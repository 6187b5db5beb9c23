// Hosts that come and go (docs/adr/0046, 0050): what is decided (membership.hpp), what is in the
// store (run_store.hpp), and the connections of a generation are brought together here.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/c10d/elastic_hosts.hpp>
#include <rubato/core/error.hpp>

#include "c10d/beacon.hpp"
#include "c10d/checked_meeting.hpp"
#include "c10d/group.hpp"
#include "c10d/membership.hpp"
#include "c10d/run_store.hpp"
#include "c10d/store.hpp"
#include "c10d/story.hpp"

namespace rubato {

namespace {

using namespace c10d_hosts_detail;

// Between two looks into the store.
constexpr milliseconds kLook{10};
// For the hosts of a generation to be connected.
constexpr milliseconds kConnection{10'000};
// For a store to answer a host that leaves.
constexpr milliseconds kFarewell{2'000};
// Generations in a row whose hosts did not come to be connected.
constexpr int kAttempts = 20;
// Of the time limit: how long a host that has lost the store tries to reach it.
constexpr int kPatience = 2;
// While hosts wait for each other, from one line about it to the next.
constexpr std::chrono::seconds kFromWordToWord{10};

class C10dElasticHosts final : public ElasticHosts {
 public:
  explicit C10dElasticHosts(ElasticOptions options)
      : options_(checked_elastic(std::move(options))), store_(options_.meeting) {
    beacon_ = std::make_unique<Beacon>(
        [this] { return store_.new_connection(std::min(options_.meeting.timeout, kConnection)); },
        store_.store_name());
    beacon_->set(store_.papers());
  }
  ~C10dElasticHosts() override { go(); }
  C10dElasticHosts(const C10dElasticHosts&) = delete;
  C10dElasticHosts& operator=(const C10dElasticHosts&) = delete;

  [[nodiscard]] int count() const override { return std::max(1, static_cast<int>(names_.size())); }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<double> weights() const override { return weights_; }
  [[nodiscard]] std::int64_t generation() const override { return place().generation; }
  [[nodiscard]] bool regroup_due() const override { return regroup_due_; }
  [[nodiscard]] std::int64_t steps_done() const override { return steps_done_; }
  void tell_steps(std::int64_t done) override {
    if (beacon_) beacon_->tell_steps(done);
  }
  [[nodiscard]] std::span<const HostStanding> standings() const override { return standings_; }
  void ask_to_pause() override { to_tell_ |= kPauseFlag; }
  [[nodiscard]] bool pause_asked() const override { return pause_asked_; }

  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    require_group();
    in_group([&] { hear(group_->exchange(out, in, flags())); });
  }
  void expect(std::span<const std::span<std::byte>> in) override {
    require_group();
    in_group([&] { group_->expect(in); });
  }
  // Once it is expected, it is completed: also when somebody is heard of who wants to come.
  void give(std::span<const std::span<const std::byte>> out) override {
    in_group([&] { group_->give(out, flags()); });
  }
  void take() override {
    in_group([&] { hear(group_->take()); });
  }
  void abandon() noexcept override {
    if (group_) group_->abandon(kAbandoned);
    regroup_due_ = true;
  }

  Meeting regroup(const HostStanding& standing) override {
    disconnect();
    const Clock::time_point start = Clock::now();
    const Members before = place();
    // Who has heard of it in the middle of a step tells the others again.
    if (pause_asked_) to_tell_ |= kPauseFlag;
    HostStanding own = standing;
    std::string why;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (form_whatever_the_store(own) == Meeting::ended) return Meeting::ended;
      try {
        connect();
        story_ = story_of(before, place(), std::exchange(reason_, {}), Clock::now() - start);
        return Meeting::formed;
      } catch (const Error& error) {
        // One of them has gone meanwhile.
        why = error.what();
        disconnect();
      }
    }
    throw HostLost(fmt::format("the hosts do not come to be connected: {}", why));
  }

  [[nodiscard]] std::string story() const override { return story_; }
  void announce_folder(const std::string& folder) override {
    try {
      store_.announce_folder(folder);
    } catch (const StoreLost&) {
      // The beacon tells it when there is a store again.
      store_.disconnect();
    }
    if (beacon_) beacon_->set(store_.papers());
  }
  [[nodiscard]] std::optional<RunWriter> writer() override {
    try {
      return store_.writer();
    } catch (const Error&) {
      store_.disconnect();
      return std::nullopt;
    }
  }

  bool leave(bool paused) noexcept override {
    if (has_left_) return has_ended_;
    // The connection may be one with a store that is no more.
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        store_.reconnect(kFarewell);
        has_ended_ = store_.end(paused ? RunEnd::paused : RunEnd::finished);
        break;
      } catch (const std::exception&) {
        store_.disconnect();
      }
    }
    go();
    return has_ended_;
  }

 private:
  [[nodiscard]] const Members& place() const { return store_.papers().members; }

  void disconnect() {
    group_.reset();
    group_store_.reset();
  }
  // Says that this host has gone.
  void go() noexcept {
    if (std::exchange(has_left_, true)) return;
    beacon_.reset();
    disconnect();
    try {
      store_.leave();
    } catch (const std::exception&) {
      // The others will see that this host is silent.
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
    const bool due = beacon_->calls_for_regroup() || !place().passed.empty();
    return to_tell_ | (due ? kRegroupFlag : 0);
  }
  void hear(std::uint64_t flags) {
    pause_asked_ = pause_asked_ || (flags & kPauseFlag) != 0;
    regroup_due_ = regroup_due_ || (flags & kRegroupFlag) != 0;
  }

  // --- Forming a generation ---

  // This host may be cut off from the store for a while.
  Meeting form_whatever_the_store(HostStanding& standing) {
    const Clock::time_point end = Clock::now() + kPatience * options_.meeting.timeout;
    bool has_told = false;
    while (true) {
      try {
        store_.reconnect(std::min(options_.meeting.timeout, kConnection));
        return form(standing);
      } catch (const StoreLost& lost) {
        store_.disconnect();
        if (Clock::now() >= end || is_interrupted()) throw HostLost(lost.what());
        if (!std::exchange(has_told, true)) tell(fmt::format("{}; trying again", lost.what()));
        std::this_thread::sleep_for(kBeat);
      }
    }
  }
  [[nodiscard]] bool is_interrupted() const {
    return options_.interrupted && options_.interrupted();
  }

  Meeting form(HostStanding& standing) {
    using Action = Decision::Action;
    const MembershipOptions membership{.begin = static_cast<std::size_t>(options_.meeting.count),
                                       .least = static_cast<std::size_t>(options_.least),
                                       .most = static_cast<std::size_t>(options_.most),
                                       .timeout = options_.meeting.timeout};
    beacon_->set(store_.papers());
    beacon_->tell_steps(standing.steps);
    store_.say_here(standing);
    last_told_ = Clock::now();
    for (;; std::this_thread::sleep_for(kLook)) {
      if (is_interrupted()) throw HostLost("interrupted while it waited for other hosts");
      const Snapshot snapshot = store_.look(standing);
      const Decision decision = decide(snapshot, membership);
      for (const auto& [host, why] : decision.refusals) {
        if (store_.refuse(host, why)) tell(fmt::format("a host is refused: {}", why));
      }
      switch (decision.action) {
        case Action::wait:
          if (decision.wanted > 0) tell_of_waiting(decision);
          break;
        case Action::take_place:
          take_place();
          return Meeting::formed;
        case Action::come_anew:
          // What it has come to is of no use: the others are ahead.
          standing = {};
          beacon_->tell_steps(standing.steps);
          store_.arrive();
          beacon_->set(store_.papers());
          break;
        case Action::propose:
          store_.propose(decision.proposal);
          break;
        case Action::end:
          pause_asked_ = pause_asked_ || snapshot.end == RunEnd::paused;
          return Meeting::ended;
        case Action::give_up_refused:
          throw Error(fmt::format("the hosts of the run refuse this one: {}", snapshot.refusal));
        case Action::give_up_alone:
          throw HostLost("the hosts of the run have gone, and its state with them");
      }
    }
  }

  void tell(const std::string& line) const {
    if (options_.tell) options_.tell(line);
  }
  void tell_of_waiting(const Decision& decision) {
    if (Clock::now() - last_told_ < kFromWordToWord) return;
    last_told_ = Clock::now();
    tell(fmt::format("waiting at {}:{}: {} of {} hosts are there", options_.meeting.address,
                     options_.meeting.port, decision.there, decision.wanted));
  }

  // --- A generation ---

  // What follows from its members.
  void take_place() {
    const std::vector<Greeting> greetings = store_.take_place();
    const auto own = std::ranges::find(place().hosts, store_.papers().own, &Member::host);
    rank_ = static_cast<int>(own - place().hosts.begin());
    names_ = names_of(greetings);
    weights_.clear();
    for (const Greeting& greeting : greetings) weights_.push_back(greeting.weight);
    standings_.clear();
    steps_done_ = 0;
    for (const Member& member : place().hosts) {
      standings_.push_back(member.standing);
      steps_done_ = std::max(steps_done_, member.standing.steps.value_or(0));
    }
    beacon_->set(store_.papers());
  }

  void connect() {
    const C10dOptions& meeting = options_.meeting;
    // Less than the others wait for whoever is not connected to come to the next generation.
    const milliseconds patience = std::min(meeting.timeout / 2, kConnection);
    group_store_ = store_.new_connection(patience, store_.papers().keys.group(generation()));
    group_ = std::make_unique<Group>(group_store_->shared(), names_,
                                     Group::Options{.rank = rank_,
                                                    .interface = meeting.interface,
                                                    .timeout = meeting.timeout,
                                                    .connection = patience});
    regroup_due_ = false;
  }

  ElasticOptions options_;
  RunStore store_;
  bool has_left_ = false;
  // For all hosts, by this one.
  bool has_ended_ = false;

  // Of the generation in which this host has its place.
  int rank_ = 0;
  std::vector<double> weights_{1.0};
  std::vector<HostStanding> standings_;
  std::vector<std::string> names_;
  std::int64_t steps_done_ = 0;

  std::unique_ptr<Store> group_store_;
  std::unique_ptr<Group> group_;
  std::uint64_t to_tell_ = 0;
  bool pause_asked_ = false;
  bool regroup_due_ = true;
  Clock::time_point last_told_{};
  // Why the last generation ended, where a host was lost, and how this one came about.
  std::string reason_;
  std::string story_;

  // Last: its thread is to end first.
  std::unique_ptr<Beacon> beacon_;
};

}  // namespace

std::shared_ptr<ElasticHosts> elastic_hosts(ElasticOptions options) {
  return std::make_shared<C10dElasticHosts>(std::move(options));
}

}  // namespace rubato
