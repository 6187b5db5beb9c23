#include "c10d/membership_model.hpp"

#include <algorithm>
#include <chrono>
#include <variant>

#include <fmt/format.h>

namespace rubato::hosts_detail {

namespace {

constexpr std::chrono::milliseconds kModelTimeout = std::chrono::seconds(60);
constexpr MembershipOptions kModelOptions{
    .begin = 2, .least = 1, .most = 3, .timeout = kModelTimeout};

std::string text_of_members(const Members& members) {
  std::string text = fmt::format("{}:{}:", members.generation, members.first_open);
  for (const Member& member : members.hosts) {
    text += fmt::format("{}={},", member.host, member.standing.steps.value_or(-1));
  }
  for (const HostNumber host : members.out) text += fmt::format("o{}", host);
  for (const HostNumber host : members.passed) text += fmt::format("p{}", host);
  for (const auto& [host, why] : members.cut_off) text += fmt::format("c{}", host);
  return text;
}

}  // namespace

std::string World::text() const {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}|", store, has_run, newest, arrivals,
                  committed, trained, saved, left.deaths, left.stalls, left.stops, left.stores,
                  left.cuts, left.handovers, left.steps);
  for (const Host& host : hosts) {
    text += fmt::format("{} {} {} {} {} {} {} {} {} {} ", static_cast<int>(host.phase), host.stalls,
                        host.own, text_of_members(host.place), text_of_members(host.newest),
                        host.steps, host.state, static_cast<int>(host.part.role), host.store,
                        host.is_asked_to_stop);
    for (const auto& [other, why] : host.cuts) text += fmt::format("c{}", other);
    if (!host.cut_off.empty()) text += 'x';
    if (host.pending) {
      text += fmt::format("!{}{}", static_cast<int>(host.pending->action),
                          text_of_members(host.pending->proposal));
    }
    text += ';';
  }
  for (const auto& [generation, turn] : turns) {
    const auto* const members = std::get_if<Members>(&turn);
    text += fmt::format("t{}={}", generation, members ? text_of_members(*members) : "end");
  }
  for (const auto& [key, brought] : here) {
    text += fmt::format("h{}/{}={}", key.first, key.second, brought.standing.steps.value_or(-1));
    for (const auto& [other, why] : brought.cuts) text += fmt::format("c{}", other);
  }
  for (const auto& [host, why] : refusals) text += fmt::format("r{}", host);
  for (const auto& [one, other] : cuts) text += fmt::format("/{}-{}", one, other);
  for (const HostNumber host : left_ones) text += fmt::format("l{}", host);
  return text;
}

void Model::come(Host& host) {
  if (host.own != 0) world_.left_ones.insert(host.own);
  host.own = ++world_.arrivals;
  host.place = {};
  host.steps = -1;
  host.cuts.clear();
  host.cut_off.clear();
  host.phase = Phase::forming;
  world_.has_run = true;
}

// As enter() and RunStore do.
void Model::enter(Host& host) {
  if (host.store == world_.store) return;
  host.store = world_.store;
  const std::int64_t generation = host.place.generation;
  if (generation == 0) {
    host.newest = {};
    return come(host);
  }
  host.newest = host.place;
  const auto [found, is_new] = world_.turns.try_emplace(generation, host.place);
  if (!is_new && found->second != Turn(host.place)) {
    host.phase = Phase::gave_up;
    return;
  }
  for (const Member& member : host.place.hosts) {
    world_.arrivals = std::max(world_.arrivals, member.host);
  }
  world_.arrivals = std::max({world_.arrivals, host.own, host.place.first_open - 1});
  world_.newest = std::max(world_.newest, generation);
  world_.has_run = true;
  if (host.phase == Phase::forming) say_here(host);
}

void Model::advance(Host& host) {
  for (;;) {
    auto next = world_.turns.find(host.newest.generation + 1);
    if (next == world_.turns.end() && world_.newest > host.newest.generation) {
      next = world_.turns.find(world_.newest);
    }
    if (next == world_.turns.end()) return;
    const auto* const members = std::get_if<Members>(&next->second);
    if (members == nullptr) return;
    host.newest = *members;
    const auto left_out = host.newest.cut_off.find(host.own);
    if (left_out != host.newest.cut_off.end()) host.cut_off = left_out->second;
  }
}

Snapshot Model::snapshot_of(const Host& host, bool patient) const {
  Snapshot snapshot{.own = host.own,
                    .here = host.here(),
                    .place = host.place.generation,
                    .newest = host.newest,
                    .cut_off = host.cut_off,
                    .arrivals = world_.arrivals,
                    .waited = patient ? std::chrono::milliseconds(0) : kModelTimeout};
  const auto next = world_.turns.find(host.newest.generation + 1);
  if (next != world_.turns.end()) snapshot.end = std::get<EndOfHosts>(next->second);
  if (const auto why = world_.refusals.find(host.own); why != world_.refusals.end()) {
    snapshot.refusal = why->second;
  }
  for (HostNumber number = 1; number <= world_.arrivals; ++number) {
    if (number == host.own) continue;
    SeenHost seen{.life = Life::gone};
    for (const Host& other : world_.hosts) {
      if (other.own != number || other.is_over() || other.stalls) continue;
      if (world_.left_ones.contains(number)) continue;
      seen.life = Life::alive;
      seen.has_introduced_itself = true;
    }
    seen.is_refused = world_.refusals.contains(number);
    const auto here = world_.here.find({host.newest.generation + 1, number});
    if (here != world_.here.end()) seen.here = here->second;
    snapshot.hosts.emplace(number, seen);
  }
  return snapshot;
}

void Model::look(Host& host, bool patient) {
  enter(host);
  if (host.phase != Phase::forming) return;
  advance(host);
  host.pending = decide(snapshot_of(host, patient), kModelOptions);
  if (host.pending->action == Decision::Action::wait && host.pending->refusals.empty()) {
    host.pending.reset();
  }
}

void Model::follow(Host& host) {
  const bool is_same_store = host.store == world_.store;
  enter(host);
  const Decision decision = *std::exchange(host.pending, std::nullopt);
  if (host.phase != Phase::forming || !is_same_store) return;
  for (const auto& [number, why] : decision.refusals) world_.refusals.emplace(number, why);
  switch (decision.action) {
    case Decision::Action::wait:
      return;
    case Decision::Action::propose:
      if (world_.turns.try_emplace(decision.proposal.generation, decision.proposal).second) {
        world_.newest = std::max(world_.newest, decision.proposal.generation);
      }
      return;
    case Decision::Action::take_place:
      host.place = host.newest;
      host.phase = Phase::connecting;
      return;
    case Decision::Action::come_anew:
      return come(host);
    // Not in this model: its hosts bring no checkpoint.
    case Decision::Action::open_again:
    case Decision::Action::end:
      return end(host, {.paused = true, .has_place = host.place.generation != 0});
    case Decision::Action::give_up_refused:
    case Decision::Action::give_up_cut_off:
    case Decision::Action::give_up_alone:
      host.phase = Phase::gave_up;
      return;
  }
}

void Model::say_here(Host& host) {
  if (host.place.generation == 0 || host.place.generation != host.newest.generation) return;
  world_.here[{host.place.generation + 1, host.own}] = host.here();
}

void Model::lose_group(Host& host) {
  enter(host);
  if (host.phase == Phase::gave_up) return;
  host.phase = Phase::forming;
  advance(host);
  say_here(host);
}

// RunStore::end(), where what follows its generation is put once, and the end as the host sees it.
void Model::stop(Host& host) {
  enter(host);
  const std::int64_t next = host.place.generation + 1;
  bool has_ended = false;
  if (next > 1) {
    const auto [turn, is_new] = world_.turns.try_emplace(next, EndOfHosts::paused);
    has_ended = std::holds_alternative<EndOfHosts>(turn->second);
  }
  end(host, {.paused = true, .asked_to_end = true, .has_place = next > 1, .alone = !has_ended});
}

// What HostDriver does at the end.
void Model::end(Host& host, RunOver over) {
  host.phase = Phase::stopped;
  over.folder_has_more = world_.saved > host.state;
  for (const HostAction action : actions_after(over, host.part)) {
    const bool is_locked = std::ranges::any_of(world_.hosts, [&](const Host& other) {
      return &other != &host && !other.is_over() && other.part.role == HostRole::writer;
    });
    if (action == HostAction::take_wanted_folder && is_locked) return require_kept(host);
    host.part = part_after(action, host.part);
    if (action != HostAction::stop) continue;
    if (host.part.role == HostRole::writer) world_.saved = std::max(world_.saved, host.state);
    require_kept(host);
  }
}

// A host that ends leaves its state, but for a step that is done again, in the folder or to another
// host.
void Model::require_kept(const Host& host) {
  require(world_.saved + 1 >= host.state ||
              std::ranges::any_of(world_.hosts,
                                  [&](const Host& other) {
                                    return !other.is_over() && other.state + 1 >= host.state;
                                  }),
          "a host ends with the only state");
}

Host* Model::owner(HostNumber number, const Host& of) {
  for (Host& host : world_.hosts) {
    if (host.own == number && host.place == of.place) return &host;
  }
  return nullptr;
}

bool Model::is_cut(const Host& one, const Host& other) const {
  const auto place = [&](const Host& host) {
    return static_cast<std::size_t>(&host - world_.hosts.data());
  };
  return world_.cuts.contains(std::minmax(place(one), place(other)));
}

std::vector<const Host*> Model::members_of(const Host& host) const {
  std::vector<const Host*> members;
  for (const Host& other : world_.hosts) {
    if (host.place.contains(other.own)) members.push_back(&other);
  }
  return members;
}

Cuts Model::cuts_of(const Host& host) const {
  Cuts cuts;
  for (const Host* const other : members_of(host)) {
    if (is_cut(host, *other)) cuts.emplace(other->own, "no link");
  }
  return cuts;
}

bool Model::lacks_link(const Host& host) const {
  return std::ranges::any_of(members_of(host),
                             [this](const Host* other) { return !cuts_of(*other).empty(); });
}

// All members of the host's generation; empty unless all are in that phase and reach each other.
std::vector<Host*> Model::group_of(const Host& host, Phase phase) {
  std::vector<Host*> group;
  if (lacks_link(host)) return group;
  for (const Member& member : host.place.hosts) {
    Host* const other = owner(member.host, host);
    if (other == nullptr || other->phase != phase || other->stalls) return {};
    group.push_back(other);
  }
  return group;
}

// As HostDriver does, up to the exchanges of the transfer or to the end.
void Model::hand_over(const std::vector<Host*>& group, bool is_lost) {
  std::vector<HostStanding> standings;
  for (const Member& member : group.front()->place.hosts) standings.push_back(member.standing);
  const StateTransfer transfer = transfer_among(standings);
  for (const bool transferred : {false, true}) {
    if (transferred && is_lost) return;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      Host& host = *group[rank];
      const auto actions =
          actions_after(GroupFormed{.rank = rank, .transfer = transfer}, host.part);
      const auto border = std::ranges::find(actions, HostAction::transfer);
      const std::size_t middle =
          border == actions.end() ? 0 : static_cast<std::size_t>(border - actions.begin());
      for (std::size_t i = transferred ? middle : 0; i < (transferred ? actions.size() : middle);
           ++i) {
        const HostAction action = actions[i];
        host.part = part_after(action, host.part);
        if (action == HostAction::forget) host.state = -1;
        if (action == HostAction::begin) host.state = 0;
        if (action == HostAction::follow) host.state = group[transfer.from]->state;
      }
    }
  }
}

void Model::connect(const std::vector<Host*>& group, bool is_lost) {
  const Members& place = group.front()->place;
  std::int64_t furthest = -1;
  for (const Member& member : place.hosts) {
    furthest = std::max(furthest, member.standing.steps.value_or(-1));
  }
  const bool others_have_more = std::ranges::any_of(world_.hosts, [&](const Host& host) {
    return !host.is_over() && host.steps >= world_.committed && host.steps > furthest;
  });
  require(furthest >= world_.committed || !others_have_more, "what was trained is lost");
  require(world_.committed < 0 || furthest >= 0, "what was trained is begun anew");
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto& standing = place.hosts[i].standing;
    require(!standing.steps || group[i]->steps == *standing.steps, "a standing is not the host's");
  }
  hand_over(group, is_lost);
  for (Host* const host : group) {
    host->cuts.clear();
    host->steps = host->state;
    if (is_lost) {
      lose_group(*host);
      continue;
    }
    const bool is_first = host == group.front();
    require((host->part.role == HostRole::writer) == is_first,
            is_first ? "nobody writes the run" : "two hosts write the run");
    require(host->state >= 0 && host->state + 1 >= furthest, "a host trains from an old state");
    // A host that lacks the last step does it again by itself.
    host->steps = host->state = std::max(furthest, std::int64_t{0});
    host->phase = Phase::training;
  }
}

void Model::step(const std::vector<Host*>& group) {
  const std::int64_t generation = group.front()->place.generation;
  require(generation >= world_.trained, "two groups train");
  world_.trained = generation;
  for (const Host* const host : group) {
    require(host->steps == group.front()->steps, "hosts of a group have done other steps");
  }
  for (Host* const host : group) host->state = ++host->steps;
  world_.committed = std::max(world_.committed, group.front()->steps);
}

bool Model::act_of_group(Host& host) {
  if (host.place.hosts.front().host != host.own) return false;
  if (const auto group = group_of(host, Phase::connecting); !group.empty() && is_chosen()) {
    told_ = fmt::format("group {} connects", host.place.generation);
    connect(group, /*is_lost=*/false);
    return true;
  }
  if (const auto group = group_of(host, Phase::connecting);
      group.size() > 1 && world_.left.handovers > 0 && is_chosen()) {
    told_ = fmt::format("group {} connects, and loses the handover", host.place.generation);
    --world_.left.handovers;
    connect(group, /*is_lost=*/true);
    return true;
  }
  const auto group = group_of(host, Phase::training);
  if (group.empty()) return false;
  if (world_.left.steps > 0 && is_chosen()) {
    told_ = fmt::format("group {} does a step", host.place.generation);
    --world_.left.steps;
    step(group);
    return true;
  }
  // The last message comes to one of them, and another one is lost.
  for (Host* const ahead : group) {
    for (Host* const lost : group) {
      for (const bool dies : {true, false}) {
        int& budget = dies ? world_.left.deaths : world_.left.stalls;
        if (group.size() < 2 || budget == 0 || world_.left.steps == 0 || !is_chosen()) continue;
        told_ = fmt::format("host {} does a step, host {} {}", ahead->own, lost->own,
                            dies ? "dies" : "stalls");
        --budget;
        --world_.left.steps;
        ahead->state = ++ahead->steps;
        if (dies) lost->phase = Phase::dead;
        if (!dies) lost->stalls = true;
        return true;
      }
    }
  }
  const bool somebody_comes = std::ranges::any_of(world_.hosts, [&](const Host& other) {
    return other.phase == Phase::forming && other.place.generation == 0 && !other.stalls &&
           !world_.refusals.contains(other.own);
  });
  const bool somebody_stops =
      std::ranges::any_of(group, [](const Host* member) { return member->is_asked_to_stop; });
  const bool store_is_new =
      std::ranges::any_of(group, [&](const Host* member) { return member->store != world_.store; });
  if (store_is_new && is_chosen()) {
    told_ = "a heartbeat sees another store";
    for (Host* const member : group) enter(*member);
    return true;
  }
  if (somebody_stops && is_chosen()) {
    told_ = fmt::format("group {} stops", host.place.generation);
    for (Host* const member : group) stop(*member);
    return true;
  }
  if (somebody_comes && is_chosen()) {
    told_ = fmt::format("group {} lets somebody in", host.place.generation);
    for (Host* const member : group) lose_group(*member);
    return true;
  }
  return false;
}

// At a store that has been started again, a host without a place joins the run of those who have
// one: what it would begin before they are back is displaced (enter()).
bool Model::may_enter(const Host& host) const {
  return host.store == world_.store || host.place.generation != 0 || world_.has_run ||
         std::ranges::none_of(world_.hosts, [](const Host& other) {
           return !other.is_over() && other.place.generation != 0;
         });
}

bool Model::act_of_host(Host& host) {
  if (host.phase == Phase::absent && may_enter(host) && is_chosen()) {
    told_ = "a host comes";
    host.store = world_.store;
    come(host);
    return true;
  }
  if (host.is_over()) return false;
  const std::string name = fmt::format("host {}", host.own);
  if (host.stalls) {
    if (!is_chosen()) return false;
    told_ = name + " goes on";
    host.stalls = false;
    return true;
  }
  if (host.phase == Phase::forming && host.pending && may_enter(host) && is_chosen()) {
    told_ = fmt::format("{} acts: {}", name, static_cast<int>(host.pending->action));
    follow(host);
    return true;
  }
  if (host.phase == Phase::forming && !host.pending) {
    if (host.is_asked_to_stop && is_chosen()) {
      told_ = name + " stops";
      stop(host);
      return true;
    }
    for (const bool patient : {true, false}) {
      if (!may_enter(host) || !is_chosen()) continue;
      told_ = fmt::format("{} looks{}", name, patient ? "" : " at last");
      look(host, patient);
      return true;
    }
  }
  const bool connects = host.phase == Phase::connecting || host.phase == Phase::training;
  if (connects) {
    const bool is_whole = !group_of(host, host.phase).empty();
    // One that has not got as far is waited for while it may.
    const bool may_come = std::ranges::all_of(host.place.hosts, [&](const Member& member) {
      return std::ranges::any_of(world_.hosts, [&](const Host& other) {
        return other.own == member.host && other.acts() && !other.is_over() &&
               (other.place.generation < host.place.generation ||
                (other.place == host.place && other.phase != Phase::forming));
      });
    });
    const bool lacks = lacks_link(host);
    if (lacks && host.phase == Phase::connecting && is_chosen()) {
      told_ = name + " finds out who does not reach whom";
      host.cuts = cuts_of(host);
      lose_group(host);
      return true;
    }
    // The first time it may have been a moment.
    if (((!is_whole && !may_come) || lacks) && is_chosen()) {
      told_ = name + " loses its group";
      host.cuts.clear();
      lose_group(host);
      return true;
    }
    if (act_of_group(host)) return true;
  }
  if (world_.left.deaths > 0 && is_chosen()) {
    told_ = name + " dies";
    --world_.left.deaths;
    host.phase = Phase::dead;
    return true;
  }
  if (world_.left.stalls > 0 && is_chosen()) {
    told_ = name + " stalls";
    --world_.left.stalls;
    host.stalls = true;
    return true;
  }
  if (world_.left.stops > 0 && !host.is_asked_to_stop && is_chosen()) {
    told_ = name + " is asked to stop";
    --world_.left.stops;
    host.is_asked_to_stop = true;
    return true;
  }
  return false;
}

bool Model::lose_link() {
  if (world_.left.cuts == 0) return false;
  for (std::size_t other = 0; other < world_.hosts.size(); ++other) {
    for (std::size_t one = 0; one < other; ++one) {
      if (world_.cuts.contains({one, other}) || !is_chosen()) continue;
      told_ = fmt::format("the link between the hosts at {} and {} is lost", one, other);
      --world_.left.cuts;
      world_.cuts.emplace(one, other);
      return true;
    }
  }
  return false;
}

bool Model::act(int number) {
  number_ = number;
  if (lose_link()) return true;
  if (world_.left.stores > 0 && is_chosen()) {
    told_ = "the store is started again";
    --world_.left.stores;
    ++world_.store;
    world_.has_run = false;
    world_.turns.clear();
    world_.newest = 0;
    world_.arrivals = 0;
    world_.here.clear();
    world_.refusals.clear();
    world_.left_ones.clear();
    return true;
  }
  return std::ranges::any_of(world_.hosts, [&](Host& host) { return act_of_host(host); });
}

bool Model::comes_to_rest() {
  world_.left = {.steps = 0};
  for (Host& host : world_.hosts) {
    host.stalls = false;
    if (host.phase == Phase::absent) host.phase = Phase::dead;
  }
  for (int round = 0; round < 60; ++round) {
    for (Host& host : world_.hosts) {
      if (host.is_over()) continue;
      if (host.phase == Phase::forming && host.pending) {
        if (may_enter(host)) follow(host);
      } else if (host.phase == Phase::forming) {
        if (host.is_asked_to_stop) {
          stop(host);
        } else {
          if (may_enter(host)) look(host, round != 30);
        }
      } else {
        enter(host);
        number_ = 0;
        static_cast<void>(act_of_host(host));
      }
    }
    if (!violation_.empty()) return false;
  }
  const Host* first = nullptr;
  for (const Host& host : world_.hosts) {
    if (host.is_over()) continue;
    if (host.phase != Phase::training) {
      // The one host of a run that begins with two.
      const bool waits = host.phase == Phase::forming && host.newest.generation == 0;
      if (!waits) return false;
      continue;
    }
    if (first != nullptr && first->place != host.place) return false;
    first = &host;
  }
  return true;
}

}  // namespace rubato::hosts_detail
