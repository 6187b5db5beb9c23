#include "run_store.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "hosts/run_status/liveness.hpp"

namespace rubato::c10d_hosts_detail {

RunStore::RunStore(const ElasticOptions& options, std::string door)
    : meeting_(options.meeting),
      brings_(options.brings),
      door_(std::move(door)),
      store_(new_connection(meeting_.timeout)) {
  static_cast<void>(enter(*store_, store_name_, papers_));
  join_run();
}

std::unique_ptr<Store> RunStore::new_connection(milliseconds timeout,
                                                const std::string& within) const {
  const std::string place = within.empty() ? within : "/" + within;
  return std::make_unique<Store>(address_of(meeting_), run_prefix(meeting_.run) + place, timeout);
}

void RunStore::disconnect() noexcept {
  watch_.reset();
  store_.reset();
}

void RunStore::reconnect(milliseconds timeout) {
  if (store_) return;
  store_ = new_connection(timeout);
  watch_.emplace(*store_, papers_.keys);
  switch (enter(*store_, store_name_, papers_)) {
    case Entry::known:
      return;
    case Entry::restored:
      // Later turns are there again if the hosts that take part in them have put them there.
      newest_ = papers_.members;
      end_.reset();
      return;
    case Entry::displaced:
      require_own_run();
      throw HostLost("the rendezvous was started again, and the run went on without this host");
    case Entry::without_place:
      // The hosts that have the run's state may need a moment to restore it.
      if (newest_.generation != 0 && !end_) {
        static_cast<void>(store_->wait(kRunKey, Clock::now() + kSilence));
      }
      join_run();
  }
}

void RunStore::join_run() {
  static_cast<void>(store_->put(kRunKey, greeting_from_here().nonce));
  papers_.keys = RunKeys(store_->find(kRunKey).value_or(""));
  key_ = signing_key(meeting_.token, papers_.keys.run());
  watch_.emplace(*store_, papers_.keys);
  papers_.own = 0;
  newest_ = {};
  end_.reset();
  while (advance()) {
  }
  arrive();
}

void RunStore::open_again() {
  static_cast<void>(store_->replace(kRunKey, papers_.keys.run(), greeting_from_here().nonce));
  join_run();
}

void RunStore::arrive() {
  const RunKeys& keys = papers_.keys;
  if (papers_.own != 0) store_->set(keys.life(papers_.own), kLeft);
  greeting_ = greeting_from_here();
  greeting_.count = meeting_.count;
  greeting_.weight = meeting_.weight;
  greeting_.interface = meeting_.interface;
  greeting_.door = door_;
  greeting_.equal = meeting_.equal;
  greeting_.brings = brings_;
  papers_.members = {};
  papers_.members_text.clear();
  papers_.folder.clear();
  cut_off_.clear();
  papers_.own = store_->raise(keys.arrivals());
  papers_.process = name_of_this_process();
  papers_.greeting = greeting_text(greeting_);
  papers_.proof = proof_of_arrival(papers_.own, papers_.greeting);
  store_->set(keys.process(papers_.own), papers_.process);
  store_->set(keys.greeting(papers_.own), papers_.greeting);
  store_->set(keys.proof(papers_.own), papers_.proof);
  // Whoever sees it alive finds all the rest.
  store_->set(keys.life(papers_.own), "0");
  since_ = Clock::now();
}

std::string RunStore::proof_of_arrival(HostNumber host, const std::string& greeting) const {
  return signature_of(key_, fmt::format("host {}\n{}", host, greeting));
}

bool RunStore::adopt(std::int64_t generation) {
  const auto text = store_->find(papers_.keys.turn(generation));
  if (!text || end_) return false;
  Turn turn = parse_turn(*text, generation, key_);
  if (const auto* const end = std::get_if<EndOfHosts>(&turn)) {
    end_ = *end;
  } else {
    newest_ = std::get<Members>(std::move(turn));
    const auto left_out = newest_.cut_off.find(papers_.own);
    if (left_out != newest_.cut_off.end()) cut_off_ = left_out->second;
  }
  since_ = Clock::now();
  return true;
}

bool RunStore::advance() {
  if (adopt(newest_.generation + 1)) return true;
  const auto text = store_->find(papers_.keys.newest());
  if (!text) return false;
  const std::int64_t newest = parse_whole(*text, 1, kMostNumbers);
  return newest > newest_.generation && adopt(newest);
}

void RunStore::require_own_run() {
  if (store_->find(kRunKey) == papers_.keys.run()) return;
  if (papers_.members.generation != 0) {
    throw HostLost(
        "the rendezvous was started again, and another run has the name there now; accepted: a "
        "name for each run");
  }
  join_run();
}

Snapshot RunStore::look(const Here& own) {
  require_own_run();
  Snapshot snapshot;
  do {
    while (advance()) {
    }
    snapshot = {.own = papers_.own,
                .here = own,
                .place = papers_.members.generation,
                .newest = newest_,
                .end = end_,
                .brings = brings_,
                .refusal = store_->find(papers_.keys.refusal(papers_.own)).value_or(""),
                .cut_off = cut_off_,
                .waited = std::chrono::floor<milliseconds>(Clock::now() - since_)};
    if (end_) snapshot.steps = steps_told();
    snapshot.arrivals =
        parse_whole(store_->find(papers_.keys.arrivals()).value_or("0"), 0, kMostNumbers);
    if (!end_ && leads_as_seen(snapshot)) {
      for (const Member& member : newest_.hosts) see(member.host, snapshot);
      for (HostNumber host = newest_.first_open; host <= snapshot.arrivals; ++host) {
        if (!newest_.out.contains(host)) see(host, snapshot);
      }
    }
    // A host that has gone may have put the next turn before it went.
  } while (advance());
  return snapshot;
}

// True if this host leads as far as it sees. It looks at few of the many others: only as long as
// those before it are gone.
bool RunStore::leads_as_seen(Snapshot& snapshot) {
  if (newest_.generation == 0) {
    for (HostNumber host = 1; host < papers_.own; ++host) {
      const SeenHost& other = see(host, snapshot);
      if (other.life != Life::gone && !other.is_refused) return false;
    }
    return true;
  }
  const bool takes_part = newest_.contains(papers_.own);
  if (takes_part && snapshot.place != newest_.generation) return false;
  for (const Member& member : newest_.hosts) {
    if (member.host == papers_.own) return true;
    const SeenHost& other = see(member.host, snapshot);
    if (other.life == Life::gone) continue;
    if (!takes_part || other.here || snapshot.waited < meeting_.timeout) return false;
  }
  return false;
}

const SeenHost& RunStore::see(HostNumber host, Snapshot& snapshot) {
  const auto [found, is_new] = snapshot.hosts.try_emplace(host);
  SeenHost& seen = found->second;
  if (!is_new || host == papers_.own) return seen;
  const RunKeys& keys = papers_.keys;
  seen.life = watch_->life_of(host);
  seen.looked_for = watch_->looked_for(host);
  if (seen.life == Life::gone) return seen;
  seen.is_refused = store_->find(keys.refusal(host)).has_value();
  if (newest_.contains(host)) {
    const auto here = store_->find(keys.here(newest_.generation + 1, host));
    if (here) seen.here = parse_here(*here);
    return seen;
  }
  const auto proof = store_->find(keys.proof(host));
  const auto text = store_->find(keys.greeting(host));
  seen.has_introduced_itself = proof && text;
  if (!seen.has_introduced_itself) return seen;
  seen.objection = objection_to_host(host, *text, *proof);
  if (seen.objection.empty()) {
    seen.brings = parse_greeting(*text, static_cast<int>(host)).brings;
  }
  return seen;
}

std::int64_t RunStore::steps_told() {
  std::int64_t steps = 0;
  for (const Member& member : newest_.hosts) {
    const auto progress =
        parse_progress(store_->find(papers_.keys.progress(member.host)).value_or(""));
    if (progress) steps = std::max(steps, progress->steps.value_or(0));
  }
  return steps;
}

std::string RunStore::objection_to_host(HostNumber host, const std::string& text,
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

void RunStore::say_here(const Here& own) {
  since_ = Clock::now();
  const std::int64_t place = papers_.members.generation;
  if (place == 0 || place != newest_.generation) return;
  store_->set(papers_.keys.here(place + 1, papers_.own), here_text(own));
}

bool RunStore::refuse(HostNumber host, const std::string& why) {
  return store_->put(papers_.keys.refusal(host), why);
}

void RunStore::propose(const Members& members) {
  const RunKeys& keys = papers_.keys;
  // Another host may have put its list first; that list is found next.
  if (store_->put(keys.turn(members.generation), signed_text(members, key_))) {
    store_->set(keys.newest(), fmt::to_string(members.generation));
  }
}

std::vector<Greeting> RunStore::take_place() {
  std::vector<Greeting> greetings;
  for (const Member& member : newest_.hosts) {
    const auto text = store_->find(papers_.keys.greeting(member.host));
    if (!text) throw StoreLost("the rendezvous has lost the greeting of a host");
    greetings.push_back(parse_greeting(*text, static_cast<int>(member.host)));
  }
  papers_.members = newest_;
  papers_.members_text = signed_text(newest_, key_);
  return greetings;
}

bool RunStore::end(EndOfHosts end) {
  std::int64_t generation = papers_.members.generation;
  if (generation == 0 || !store_) return false;
  for (;;) {
    const std::string turn = papers_.keys.turn(++generation);
    if (store_->put(turn, signed_text(end, generation, key_))) return true;
    const Turn there = parse_turn(store_->find(turn).value_or(""), generation, key_);
    // Another host may have ended the run in another way.
    const auto* const members = std::get_if<Members>(&there);
    if (members == nullptr) return true;
    // The others may have listed this host, and wait for it: the run ends behind that generation.
    if (!members->contains(papers_.own)) return false;
  }
}

void RunStore::leave() {
  if (store_) store_->set(papers_.keys.life(papers_.own), kLeft);
}

std::size_t RunStore::others_there() {
  if (!store_) throw StoreLost("there is no connection with the rendezvous");
  while (advance()) {
  }
  return static_cast<std::size_t>(
      std::ranges::count_if(newest_.hosts, [this](const Member& member) {
        return member.host != papers_.own && watch_->life_of(member.host) != Life::gone;
      }));
}

void RunStore::announce_folder(const std::string& folder) {
  papers_.folder = folder;
  if (!store_) return;
  store_->set(papers_.keys.failure(), "");
  store_->set(papers_.keys.writer(), writer_text(papers_));
}

void RunStore::announce_failure(const std::string& why) {
  papers_.folder.clear();
  if (store_) store_->set(papers_.keys.failure(), why);
}

std::optional<RunWriter> RunStore::writer() {
  if (!store_) return std::nullopt;
  const auto text = store_->find(papers_.keys.writer());
  const std::size_t border = text ? text->find('\n') : std::string::npos;
  if (border == std::string::npos) return std::nullopt;
  const HostNumber host = parse_whole(text->substr(0, border), 1, kMostNumbers);
  RunWriter writer{.folder = text->substr(border + 1),
                   .failure = store_->find(papers_.keys.failure()).value_or("")};
  const auto process = store_->find(papers_.keys.process(host));
  const auto greeting = store_->find(papers_.keys.greeting(host));
  if (process) {
    const ProcessState state = state_of_process(*process);
    if (state == ProcessState::ended) writer.process = RunWriter::Process::ended;
    if (state == ProcessState::running) writer.process = RunWriter::Process::runs;
  }
  if (greeting) {
    writer.is_here =
        parse_greeting(*greeting, static_cast<int>(host)).machine_id == greeting_.machine_id;
  }
  return writer;
}

}  // namespace rubato::c10d_hosts_detail
