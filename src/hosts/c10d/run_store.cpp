// This file reads and writes the keys that members.hpp lists; membership.cpp decides. The hosts
// agree by one register alone: turn/G is put once, by compare-and-set, and holds generation G or
// the end of the run before it. advance() goes from the newest known turn to the next one or, since
// a store that was started again may lack turns in between, jumps to the one that the key "newest"
// names. look() reads what a leader needs only if this host leads, and repeats if a turn has
// appeared meanwhile. Turns, and the greetings of newcomers, count only with a signature by the key
// of token and run.

#include "run_store.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "hosts/run_status/liveness.hpp"

namespace rubato::hosts_detail {

RunStore::RunStore(const ElasticOptions& options, std::string probe_address)
    : meeting_(options.meeting),
      brings_(options.brings),
      probe_address_(std::move(probe_address)),
      store_(new_connection(meeting_.timeout)) {
  static_cast<void>(enter(*store_, store_name_, record_));
  join_run();
}

std::unique_ptr<Store> RunStore::new_connection(milliseconds timeout,
                                                const std::string& within) const {
  const std::string place = within.empty() ? within : "/" + within;
  return std::make_unique<Store>(meeting_, run_prefix(meeting_.run) + place, timeout);
}

void RunStore::disconnect() noexcept {
  watch_.reset();
  store_.reset();
}

void RunStore::reconnect(milliseconds timeout) {
  if (store_) return;
  store_ = new_connection(timeout);
  watch_.emplace(*store_, record_.keys);
  switch (enter(*store_, store_name_, record_)) {
    case Entry::known:
      return;
    case Entry::restored:
      // Later turns are there again if the hosts that take part in them have put them there.
      newest_ = record_.members;
      end_.reset();
      return;
    case Entry::displaced:
      require_own_run();
      throw HostLost("the rendezvous was started again, and the run went on without this host");
    case Entry::without_place:
      // The hosts that have the run's state may need a moment to restore it.
      if (newest_.generation != 0 && !end_) {
        static_cast<void>(store_->wait(kRunKey, Clock::now() + kHeartbeatTimeout));
      }
      join_run();
  }
}

void RunStore::join_run() {
  static_cast<void>(store_->put(kRunKey, new_nonce()));
  record_.keys = RunKeys(store_->find(kRunKey).value_or(""));
  key_ = signing_key(meeting_.token, record_.keys.run());
  watch_.emplace(*store_, record_.keys);
  record_.own = 0;
  newest_ = {};
  end_.reset();
  while (advance()) {
  }
  arrive();
}

void RunStore::open_again() {
  static_cast<void>(store_->replace(kRunKey, record_.keys.run(), new_nonce()));
  join_run();
}

void RunStore::arrive() {
  const RunKeys& keys = record_.keys;
  if (record_.own != 0) store_->set(keys.life(record_.own), kLeft);
  greeting_ = greeting_of(meeting_);
  greeting_.probe_address = probe_address_;
  greeting_.brings = brings_;
  record_.members = {};
  record_.members_text.clear();
  record_.folder.clear();
  cut_off_.clear();
  record_.own = store_->raise(keys.arrivals());
  record_.process = name_of_this_process();
  record_.greeting = greeting_text(greeting_);
  record_.proof = proof_of_arrival(record_.own, record_.greeting);
  store_->set(keys.process(record_.own), record_.process);
  store_->set(keys.greeting(record_.own), record_.greeting);
  store_->set(keys.proof(record_.own), record_.proof);
  // The sign of life comes last, so that a reader that finds it finds all the rest.
  store_->set(keys.life(record_.own), "0");
  since_ = Clock::now();
}

std::string RunStore::proof_of_arrival(HostNumber host, const std::string& greeting) const {
  return signature_of(key_, fmt::format("host {}\n{}", host, greeting));
}

bool RunStore::adopt(std::int64_t generation) {
  const auto text = store_->find(record_.keys.turn(generation));
  if (!text || end_) return false;
  Turn turn = parse_turn(*text, generation, key_);
  if (const auto* const end = std::get_if<EndOfHosts>(&turn)) {
    end_ = *end;
  } else {
    newest_ = std::get<Members>(std::move(turn));
    const auto left_out = newest_.cut_off.find(record_.own);
    if (left_out != newest_.cut_off.end()) cut_off_ = left_out->second;
  }
  since_ = Clock::now();
  return true;
}

bool RunStore::advance() {
  if (adopt(newest_.generation + 1)) return true;
  const auto text = store_->find(record_.keys.newest());
  if (!text) return false;
  const std::int64_t newest = parse_whole(*text, 1, kMostNumbers);
  return newest > newest_.generation && adopt(newest);
}

void RunStore::require_own_run() {
  if (store_->find(kRunKey) == record_.keys.run()) return;
  if (record_.members.generation != 0) {
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
    snapshot = {.own = record_.own,
                .here = own,
                .place = record_.members.generation,
                .newest = newest_,
                .end = end_,
                .brings = brings_,
                .refusal = store_->find(record_.keys.refusal(record_.own)).value_or(""),
                .cut_off = cut_off_,
                .waited = std::chrono::floor<milliseconds>(Clock::now() - since_)};
    if (end_) snapshot.steps = reported_steps();
    snapshot.arrivals =
        parse_whole(store_->find(record_.keys.arrivals()).value_or("0"), 0, kMostNumbers);
    const auto see_host = [&](HostNumber host) -> const SeenHost& { return see(host, snapshot); };
    if (!end_ && leads(snapshot, meeting_.timeout, see_host)) {
      for (const Member& member : newest_.hosts) see(member.host, snapshot);
      for (HostNumber host = newest_.first_open; host <= snapshot.arrivals; ++host) {
        if (!newest_.out.contains(host)) see(host, snapshot);
      }
    }
    // A host that has gone may have put the next turn before it went.
  } while (advance());
  return snapshot;
}

const SeenHost& RunStore::see(HostNumber host, Snapshot& snapshot) {
  const auto [found, is_new] = snapshot.hosts.try_emplace(host);
  SeenHost& seen = found->second;
  if (!is_new || host == record_.own) return seen;
  const RunKeys& keys = record_.keys;
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

std::int64_t RunStore::reported_steps() {
  std::int64_t steps = 0;
  for (const Member& member : newest_.hosts) {
    const auto progress =
        parse_progress(store_->find(record_.keys.progress(member.host)).value_or(""));
    if (progress) steps = std::max(steps, progress->steps.value_or(0));
  }
  return steps;
}

std::string RunStore::objection_to_host(HostNumber host, const std::string& text,
                                        const std::string& proof) const {
  if (!is_same_signature(proof, proof_of_arrival(host, text))) {
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
  const std::int64_t place = record_.members.generation;
  if (place == 0 || place != newest_.generation) return;
  store_->set(record_.keys.here(place + 1, record_.own), here_text(own));
}

bool RunStore::refuse(HostNumber host, const std::string& why) {
  return store_->put(record_.keys.refusal(host), why);
}

void RunStore::propose(const Members& members) {
  const RunKeys& keys = record_.keys;
  // Another host may have put its list first; that list is found next.
  if (store_->put(keys.turn(members.generation), signed_text(members, key_))) {
    store_->set(keys.newest(), fmt::to_string(members.generation));
  }
}

std::vector<Greeting> RunStore::take_place() {
  std::vector<Greeting> greetings;
  for (const Member& member : newest_.hosts) {
    const auto text = store_->find(record_.keys.greeting(member.host));
    if (!text) throw StoreLost("the rendezvous has lost the greeting of a host");
    greetings.push_back(parse_greeting(*text, static_cast<int>(member.host)));
  }
  record_.members = newest_;
  record_.members_text = signed_text(newest_, key_);
  return greetings;
}

bool RunStore::end(EndOfHosts end) {
  std::int64_t generation = record_.members.generation;
  if (generation == 0 || !store_) return false;
  for (;;) {
    const std::string turn = record_.keys.turn(++generation);
    if (store_->put(turn, signed_text(end, generation, key_))) return true;
    const Turn there = parse_turn(store_->find(turn).value_or(""), generation, key_);
    // Another host may have ended the run in another way.
    const auto* const members = std::get_if<Members>(&there);
    if (members == nullptr) return true;
    // The others may have listed this host, and wait for it: the run ends behind that generation.
    if (!members->contains(record_.own)) return false;
  }
}

void RunStore::leave() {
  if (store_) store_->set(record_.keys.life(record_.own), kLeft);
}

std::size_t RunStore::others_there() {
  if (!store_) throw StoreLost("there is no connection with the rendezvous");
  while (advance()) {
  }
  return static_cast<std::size_t>(
      std::ranges::count_if(newest_.hosts, [this](const Member& member) {
        return member.host != record_.own && watch_->life_of(member.host) != Life::gone;
      }));
}

void RunStore::announce_folder(const std::string& folder) {
  record_.folder = folder;
  if (!store_) return;
  store_->set(record_.keys.failure(), "");
  store_->set(record_.keys.writer(), text_of(AnnouncedWriter{record_.own, folder}));
}

void RunStore::announce_failure(const std::string& why) {
  record_.folder.clear();
  if (store_) store_->set(record_.keys.failure(), why);
}

std::optional<RunWriter> RunStore::writer() {
  if (!store_) return std::nullopt;
  const auto text = store_->find(record_.keys.writer());
  const auto announced = parse_writer(text.value_or(""));
  if (!announced) return std::nullopt;
  const HostNumber host = announced->host;
  RunWriter writer{.folder = announced->folder,
                   .failure = store_->find(record_.keys.failure()).value_or("")};
  const auto process = store_->find(record_.keys.process(host));
  const auto greeting = store_->find(record_.keys.greeting(host));
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

}  // namespace rubato::hosts_detail
