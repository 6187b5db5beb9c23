#include "store_client.hpp"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "protocol.hpp"

namespace rubato::rendezvous_detail {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestPause{10};
constexpr milliseconds kLongestPause{500};

[[noreturn]] void surprise() {
  throw Error("its answer is not that of a rendezvous of this version");
}

// Returns the message, which has to be of this kind. Throws Refused for a refusal, and Error for
// any other kind.
const Message& of_kind(const Message& message, Kind kind) {
  if (message.kind == Kind::refused) throw Refused(message.fields[0]);
  if (message.kind != kind) surprise();
  return message;
}

}  // namespace

StoreClient::StoreClient(const Options& options) : options_(options) {
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  milliseconds pause = kShortestPause;
  for (;;) {
    try {
      connect(deadline);
      return;
    } catch (const Refused&) {
      throw;
    } catch (const Error&) {
      // The server may not be there yet.
      if (Clock::now() + pause >= deadline) throw;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

std::optional<std::string> StoreClient::get(const std::string& key, milliseconds within) {
  const Message answer = ask({.kind = Kind::get, .fields = {key, fmt::to_string(within.count())}},
                             options_.timeout + within);
  if (answer.kind == Kind::missing) return std::nullopt;
  return of_kind(answer, Kind::value).fields[0];
}

void StoreClient::set(const std::string& key, const std::string& value) {
  static_cast<void>(value_of({.kind = Kind::set, .fields = {key, value}}));
}

std::string StoreClient::compare_set(const std::string& key, const std::string& expected,
                                     const std::string& desired) {
  return value_of({.kind = Kind::compare_set, .fields = {key, expected, desired}});
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t number) {
  using Limits = std::numeric_limits<std::int64_t>;
  return parse_whole(value_of({.kind = Kind::add, .fields = {key, fmt::to_string(number)}}),
                     Limits::min(), Limits::max());
}

void StoreClient::connect(Clock::time_point deadline) {
  socket_ = connect_to(options_.host, options_.port, deadline);
  const Message challenge = received(deadline);
  const auto& said = of_kind(challenge, Kind::challenge).fields;
  if (said[0] != kProtocol) surprise();
  const bool asks_for_token = !said[2].empty();
  const std::string nonce = new_nonce();
  send(bytes_of(
           {.kind = Kind::hello, .fields = {nonce, client_proof(options_.token, said[1], nonce)}}),
       deadline);
  const Message welcome = received(deadline);
  const std::string& proof = of_kind(welcome, Kind::welcome).fields[0];
  if (asks_for_token && !is_same_signature(proof, server_proof(options_.token, said[1], nonce))) {
    throw Refused("it does not know the token that it asks for");
  }
}

Message StoreClient::ask(const Message& message, milliseconds timeout) {
  const std::string bytes = bytes_of(message);
  const std::lock_guard lock(mutex_);
  if (!socket_) throw Error("the connection is closed");
  try {
    const Clock::time_point deadline = Clock::now() + timeout;
    send(bytes, deadline);
    return received(deadline);
  } catch (const std::exception&) {
    // A late answer would be taken for the answer to the next question.
    socket_ = Socket();
    throw;
  }
}

std::string StoreClient::value_of(const Message& message) {
  return of_kind(ask(message, options_.timeout), Kind::value).fields[0];
}

void StoreClient::send(std::string_view bytes, Clock::time_point deadline) const {
  while (!bytes.empty()) {
    if (!wait_until(Until::writable, socket_, deadline)) throw Error("it takes no message");
    bytes.remove_prefix(socket_.send(bytes));
  }
}

Message StoreClient::received(Clock::time_point deadline) const {
  MessageReader reader(kMaxMessageBytes);
  for (;;) {
    if (!wait_until(Until::readable, socket_, deadline)) {
      throw Error("it has not answered within the time limit");
    }
    std::string came;
    socket_.receive(came);
    reader.add(came);
    if (auto message = reader.take()) return std::move(*message);
  }
}

}  // namespace rubato::rendezvous_detail
