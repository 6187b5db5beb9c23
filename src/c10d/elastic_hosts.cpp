// Hosts that come and go (docs/adr/0046). In the store, under the name of the run:
//
//     challenge          random, of whoever came first: part of every proof
//     arrivals           how many hosts have come; the count that a host raised it to is its number
//     process/N          the process of host N
//     greeting/N         what host N says of itself
//     proof/N            that it knows the token
//     refusal/N          why it may not take part
//     life/N             moves while host N lives; "left" when it has gone
//     newest             a generation that there is, from which newer ones are found
//     G/here/N           that host N of generation G-1 wants to be in G, with its standing
//     G/members          the hosts of generation G, put once: whoever puts it second takes the
//     first's G/group/...        c10d's, for their connections ended              that the run is
//     over for all, and how
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/c10d/elastic_hosts.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>

#include "c10d/beacon.hpp"
#include "c10d/checked_meeting.hpp"
#include "c10d/greeting.hpp"
#include "c10d/group.hpp"
#include "c10d/members.hpp"
#include "c10d/process_name.hpp"
#include "c10d/store.hpp"
#include "c10d/watch.hpp"

namespace rubato {

namespace {

using namespace c10d_hosts_detail;

// Between two looks into the store.
constexpr milliseconds kLook{10};
// For a host to introduce itself and to be seen alive.
constexpr milliseconds kIntroduction{2000};
// For the hosts of a generation to be connected.
constexpr milliseconds kConnection{10'000};
// Generations in a row whose hosts did not come to be connected.
constexpr int kAttempts = 20;

// Of the time limit: how long a host that has lost the store tries to reach it.
constexpr int kPatience = 2;

constexpr const char* kChallenge = "challenge";
constexpr const char* kNewest = "newest";
constexpr const char* kEnded = "ended";
constexpr const char* kPaused = "paused";
constexpr const char* kFinished = "finished";

std::string members_key(std::int64_t generation) {
  return fmt::format("{}/members", generation);
}
std::string here_key(std::int64_t generation, HostNumber host) {
  return fmt::format("{}/here/{}", generation, host);
}

ElasticOptions checked(ElasticOptions options) {
  C10dOptions& meeting = options.meeting;
  meeting.rank = 0;
  check_meeting(meeting);
  if (meeting.run.empty()) {
    throw Error(
        "hosts that come and go meet at host 0, which may go; accepted: a store that outlives all "
        "hosts, and a name for the run in it");
  }
  if (options.least < 1 || options.least > meeting.count) {
    throw Error(fmt::format("at least {} hosts; accepted: 1 to {}, of which the run begins",
                            options.least, meeting.count));
  }
  if (options.most < meeting.count || options.most > kMaxHosts) {
    throw Error(fmt::format("at most {} hosts; accepted: {}, of which the run begins, to {}",
                            options.most, meeting.count, kMaxHosts));
  }
  return options;
}

class C10dElasticHosts final : public ElasticHosts {
 public:
  explicit C10dElasticHosts(ElasticOptions options)
      : options_(checked(std::move(options))), store_(new_store("", options_.meeting.timeout)) {
    watch_.emplace(*store_);
    read_challenge();
    find_newest();
    arrive();
    beacon_ = std::make_unique<Beacon>(
        [this] { return new_store("", std::min(options_.meeting.timeout, kConnection)); });
    beacon_->set(own_, members_);
  }
  ~C10dElasticHosts() override { go(nullptr); }
  C10dElasticHosts(const C10dElasticHosts&) = delete;
  C10dElasticHosts& operator=(const C10dElasticHosts&) = delete;

  [[nodiscard]] int count() const override {
    return std::max(1, static_cast<int>(members_.hosts.size()));
  }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<double> weights() const override { return weights_; }
  [[nodiscard]] std::int64_t generation() const override { return members_.generation; }
  [[nodiscard]] bool regroup_due() const override { return regroup_due_; }
  [[nodiscard]] std::int64_t steps_done() const override { return steps_done_; }
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
    group_.reset();
    group_store_.reset();
    // Who has heard of it in the middle of a step tells the others again.
    if (pause_asked_) to_tell_ |= kPauseFlag;
    look_again_ = false;
    HostStanding own = standing;
    std::string why;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (form_whatever_the_store(own) == Meeting::ended) return Meeting::ended;
      try {
        connect();
        return Meeting::formed;
      } catch (const Error& error) {
        // One of them has gone meanwhile.
        why = error.what();
        group_.reset();
        group_store_.reset();
      }
    }
    throw HostLost(fmt::format("the hosts do not come to be connected: {}", why));
  }

  void leave(bool paused) noexcept override { go(paused ? kPaused : kFinished); }

 private:
  [[nodiscard]] std::unique_ptr<Store> new_store(const std::string& within,
                                                 milliseconds timeout) const {
    const C10dOptions& meeting = options_.meeting;
    return std::make_unique<Store>(
        StoreAddress{.host = meeting.address, .port = meeting.port}, Store::Role::client,
        fmt::format("rubato/{}/elastic{}", meeting.run, within), timeout);
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
    } catch (const HostLost&) {
      regroup_due_ = true;
      throw;
    }
  }
  [[nodiscard]] std::uint64_t flags() const {
    return to_tell_ | (beacon_->has_arrivals() || look_again_ ? kRegroupFlag : 0);
  }
  void hear(std::uint64_t flags) {
    pause_asked_ = pause_asked_ || (flags & kPauseFlag) != 0;
    regroup_due_ = regroup_due_ || (flags & kRegroupFlag) != 0;
  }

  // --- This host ---

  // What is signed with the key of a run is of no use in another one.
  void read_challenge() {
    static_cast<void>(store_->put(kChallenge, greeting_from_here().nonce));
    key_ = signature_of(options_.meeting.token, fmt::format("rubato run {} {}", kProtocol,
                                                            store_->find(kChallenge).value_or("")));
  }

  // Tells the others of this host, under a new number.
  void arrive() {
    const C10dOptions& meeting = options_.meeting;
    if (own_ != 0) store_->set(life_key(own_), kLeft);
    greeting_ = greeting_from_here();
    greeting_.count = meeting.count;
    greeting_.weight = meeting.weight;
    greeting_.interface = meeting.interface;
    greeting_.equal = meeting.equal;
    own_ = store_->raise(kArrivals);
    store_->set(process_key(own_), name_of_this_process());
    store_->set(life_key(own_), "0");
    const std::string text = greeting_text(greeting_);
    store_->set(greeting_key(own_), text);
    store_->set(proof_key(own_), proof_of_arrival(own_, text));
    if (beacon_) beacon_->set(own_, members_);
  }

  [[nodiscard]] std::string proof_of_arrival(HostNumber host, const std::string& greeting) const {
    return signature_of(key_, fmt::format("host {}\n{}", host, greeting));
  }

  // Says how it is with the run, and that this host has gone.
  void go(const char* end) noexcept {
    if (has_left_) return;
    has_left_ = true;
    beacon_.reset();
    group_.reset();
    group_store_.reset();
    if (!store_) return;
    try {
      if (end != nullptr) static_cast<void>(store_->put(kEnded, end));
      store_->set(life_key(own_), kLeft);
    } catch (const std::exception&) {
      // The others will see that this host is silent.
    }
  }

  // --- Forming a generation ---

  void find_newest() {
    if (const auto newest = store_->find(kNewest)) {
      members_.generation = parse_whole(*newest, 1, std::int64_t{1} << 40U);
      adopt(members_at(members_.generation).value_or(members_));
    }
    while (const auto members = members_at(members_.generation + 1)) adopt(*members);
  }

  [[nodiscard]] std::optional<Members> members_at(std::int64_t generation) {
    const auto text = store_->find(members_key(generation));
    if (!text) return std::nullopt;
    return parse_members(*text, generation, key_);
  }

  void adopt(const Members& members) {
    // Those that are left out are so for good, under these numbers.
    for (const Member& before : members_.hosts) {
      if (!members.contains(before.host)) settled_.insert(before.host);
    }
    members_ = members;
    settled_.erase(settled_.begin(), settled_.lower_bound(members.first_open));
  }

  // This host may be cut off from the store for a while.
  Meeting form_whatever_the_store(HostStanding& standing) {
    const Clock::time_point end = Clock::now() + kPatience * options_.meeting.timeout;
    bool has_told = false;
    for (;;) {
      try {
        if (!store_) open_again();
        return form(standing);
      } catch (const StoreLost& lost) {
        store_.reset();
        if (Clock::now() >= end || is_interrupted()) throw HostLost(lost.what());
        if (!std::exchange(has_told, true)) tell(fmt::format("{}; trying again", lost.what()));
        std::this_thread::sleep_for(kBeat);
      }
    }
  }
  void open_again() {
    store_ = new_store("", std::min(options_.meeting.timeout, kConnection));
    watch_.emplace(*store_);
  }
  [[nodiscard]] bool is_interrupted() const {
    return options_.interrupted && options_.interrupted();
  }

  Meeting form(HostStanding& standing) {
    bool takes_part = members_.contains(own_);
    if (takes_part) say_here(standing);
    Clock::time_point since = Clock::now();
    last_told_ = since;
    for (;; std::this_thread::sleep_for(kLook)) {
      if (is_interrupted()) {
        throw HostLost("interrupted while it waited for other hosts");
      }
      if (const auto end = store_->find(kEnded)) {
        pause_asked_ = pause_asked_ || *end == kPaused;
        return Meeting::ended;
      }
      if (const auto reason = store_->find(refusal_key(own_))) {
        throw Error(fmt::format("the hosts of the run refuse this one: {}", *reason));
      }
      if (const auto members = members_at(members_.generation + 1)) {
        adopt(*members);
        if (members_.contains(own_)) {
          take_place();
          return Meeting::formed;
        }
        // The others go on without it, and it comes as a new host.
        if (std::exchange(takes_part, false)) {
          standing = {};
          arrive();
        }
        since = Clock::now();
        continue;
      }
      const bool patient = Clock::now() - since < options_.meeting.timeout;
      if (members_.generation == 0) {
        if (leads_first()) propose(first_members(patient));
      } else if (takes_part) {
        if (leads(patient)) propose(next_members(standing, patient));
      } else {
        require_some_left();
        // It may have been taken for one that has gone.
        if (!patient) {
          arrive();
          since = Clock::now();
        }
      }
    }
  }

  void say_here(const HostStanding& standing) {
    store_->set(here_key(members_.generation + 1, own_), text_of(standing));
  }

  // Whether all that have come before are gone.
  [[nodiscard]] bool leads_first() {
    for (HostNumber host = 1; host < own_; ++host) {
      if (!is_settled(host) && watch_->life_of(host) != Watch::Life::gone) return false;
    }
    return true;
  }
  [[nodiscard]] bool leads(bool patient) {
    for (const Member& member : members_.hosts) {
      if (member.host == own_) return true;
      if (watch_->life_of(member.host) == Watch::Life::gone) continue;
      if (patient || store_->find(here_key(members_.generation + 1, member.host))) return false;
    }
    return false;
  }

  void require_some_left() {
    const bool all_gone = std::ranges::all_of(members_.hosts, [this](const Member& member) {
      return watch_->life_of(member.host) == Watch::Life::gone;
    });
    if (!all_gone) return;
    // The last of them may have said so just before it went.
    if (store_->find(kEnded) || members_at(members_.generation + 1)) return;
    throw HostLost("the hosts of the run have gone, and its state with them");
  }

  void propose(const std::optional<Members>& members) {
    if (!members) return;
    const std::string text = signed_text(*members, key_);
    // Another one may have come first: whoever it was, its list is found next.
    if (store_->put(members_key(members->generation), text)) {
      store_->set(kNewest, fmt::to_string(members->generation));
    }
  }

  // Of the first generation; empty while hosts are missing.
  [[nodiscard]] std::optional<Members> first_members(bool patient) {
    Members members{.generation = 1};
    if (!add_arrivals(members)) return std::nullopt;
    const auto least = static_cast<std::size_t>(patient ? options_.meeting.count : options_.least);
    if (members.hosts.size() < least) {
      tell_of_waiting(members.hosts.size(), least);
      return std::nullopt;
    }
    return members;
  }

  // Of the next one: those left, in their order, and then those who have come.
  [[nodiscard]] std::optional<Members> next_members(const HostStanding& standing, bool patient) {
    Members members{.generation = members_.generation + 1};
    for (const Member& member : members_.hosts) {
      if (member.host == own_) {
        members.hosts.push_back({.host = own_, .standing = standing});
      } else if (const auto here = store_->find(here_key(members.generation, member.host))) {
        // It may have gone again since.
        if (watch_->life_of(member.host) == Watch::Life::gone) continue;
        members.hosts.push_back({.host = member.host, .standing = parse_standing(*here)});
      } else if (patient && watch_->life_of(member.host) != Watch::Life::gone) {
        return std::nullopt;
      }
    }
    const bool finished = std::ranges::any_of(
        members.hosts, [](const Member& member) { return member.standing.finished; });
    if (!add_arrivals(members)) return std::nullopt;
    const auto least = static_cast<std::size_t>(finished ? 1 : options_.least);
    if (members.hosts.size() < least) {
      tell_of_waiting(members.hosts.size(), least);
      return std::nullopt;
    }
    return members;
  }

  // False while it is not known of one whether it lives.
  [[nodiscard]] bool add_arrivals(Members& members) {
    const HostNumber last =
        parse_whole(store_->find(kArrivals).value_or("0"), 0, std::int64_t{1} << 40U);
    bool all_known = true;
    for (HostNumber host = members_.first_open; host <= last; ++host) {
      if (members.contains(host) || members_.contains(host) || is_settled(host)) continue;
      switch (newcomer(host)) {
        case Newcomer::ready:
          if (members.hosts.size() < static_cast<std::size_t>(options_.most)) {
            members.hosts.push_back({.host = host});
          } else if (passed_over_.emplace(host, members.generation).first->second <
                     members.generation) {
            // They are as many after a generation that was connected, too.
            refuse(host, fmt::format("there are {} hosts already; accepted: up to as many "
                                     "(--max-hosts)",
                                     options_.most));
          } else {
            look_again_ = true;
          }
          break;
        case Newcomer::gone:
          settled_.insert(host);
          break;
        case Newcomer::unknown:
          all_known = all_known && Clock::now() - watch_->first_look(host) >= kIntroduction;
          break;
      }
    }
    members.first_open = members_.first_open;
    while (members.first_open <= last &&
           (members.contains(members.first_open) || is_settled(members.first_open) ||
            members_.contains(members.first_open))) {
      ++members.first_open;
    }
    return all_known;
  }

  enum class Newcomer { ready, gone, unknown };

  [[nodiscard]] Newcomer newcomer(HostNumber host) {
    const Watch::Life life = watch_->life_of(host);
    if (life == Watch::Life::gone || store_->find(refusal_key(host))) return Newcomer::gone;
    const auto proof = store_->find(proof_key(host));
    const auto text = store_->find(greeting_key(host));
    if (life == Watch::Life::unknown || !proof || !text) return Newcomer::unknown;
    const std::string objection = objection_to_newcomer(host, *text, *proof);
    if (objection.empty()) return Newcomer::ready;
    refuse(host, objection);
    return Newcomer::gone;
  }

  [[nodiscard]] std::string objection_to_newcomer(HostNumber host, const std::string& text,
                                                  const std::string& proof) const {
    if (proof != proof_of_arrival(host, text)) {
      return "it knows another token; accepted: the same on all hosts";
    }
    try {
      const std::string difference =
          objection_to(greeting_, parse_greeting(text, static_cast<int>(host)));
      if (difference.empty()) return {};
      return fmt::format("it has {}; accepted: the same on all hosts", difference);
    } catch (const Error& error) {
      return error.what();
    }
  }

  void refuse(HostNumber host, const std::string& reason) {
    settled_.insert(host);
    if (store_->put(refusal_key(host), reason)) {
      tell(fmt::format("a host is refused: {}", reason));
    }
  }

  [[nodiscard]] bool is_settled(HostNumber host) const { return settled_.contains(host); }

  void tell(const std::string& line) const {
    if (options_.tell) options_.tell(line);
  }
  void tell_of_waiting(std::size_t there, std::size_t wanted) {
    constexpr std::chrono::seconds kFromWordToWord{10};
    if (Clock::now() - last_told_ < kFromWordToWord) return;
    last_told_ = Clock::now();
    tell(fmt::format("waiting at {}:{}: {} of {} hosts are there", options_.meeting.address,
                     options_.meeting.port, there, wanted));
  }

  // --- A generation ---

  // What follows from its members.
  void take_place() {
    const auto own = std::ranges::find(members_.hosts, own_, &Member::host);
    rank_ = static_cast<int>(own - members_.hosts.begin());
    weights_.clear();
    standings_.clear();
    steps_done_ = 0;
    std::vector<Greeting> greetings;
    for (const Member& member : members_.hosts) {
      const auto text = store_->find(greeting_key(member.host));
      greetings.push_back(parse_greeting(text.value_or(""), static_cast<int>(member.host)));
      weights_.push_back(greetings.back().weight);
      standings_.push_back(member.standing);
      steps_done_ = std::max(steps_done_, member.standing.steps.value_or(0));
    }
    names_ = names_of(greetings);
    beacon_->set(own_, members_);
  }

  void connect() {
    const C10dOptions& meeting = options_.meeting;
    const milliseconds patience = std::min(meeting.timeout, kConnection);
    group_store_ = new_store(fmt::format("/{}/group", members_.generation), patience);
    group_ = std::make_unique<Group>(group_store_->shared(), names_,
                                     Group::Options{.rank = rank_,
                                                    .interface = meeting.interface,
                                                    .timeout = meeting.timeout,
                                                    .connection = patience});
    regroup_due_ = false;
  }

  ElasticOptions options_;
  std::unique_ptr<Store> store_;
  std::optional<Watch> watch_;

  // This host.
  HostNumber own_ = 0;
  Greeting greeting_;
  // Of the token and the challenge.
  std::string key_;
  bool has_left_ = false;

  // The newest generation that is known; 0 is none. This host may not be in it.
  Members members_;
  // Hosts from its first open one on that will not take part.
  std::set<HostNumber> settled_;
  // Those for which there was no room in that generation. One of its members may have died, and
  // not be known for it yet: whoever is started in its place is not refused before the next one.
  std::map<HostNumber, std::int64_t> passed_over_;
  // Whether there is one of them: a step later it is looked at again.
  bool look_again_ = false;
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

  // Last: its thread is to end first.
  std::unique_ptr<Beacon> beacon_;
};

}  // namespace

std::shared_ptr<ElasticHosts> elastic_hosts(ElasticOptions options) {
  return std::make_shared<C10dElasticHosts>(std::move(options));
}

}  // namespace rubato
