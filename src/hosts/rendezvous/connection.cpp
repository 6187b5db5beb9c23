// A connection writes out_ until that is empty, then reads one message, and then queues its answer
// or holds it back until a key is there. Nothing is read while an answer is queued or held back, so
// a connection keeps at most one message and one answer. carry_out() returns the key that it has
// changed, for which the server calls answer_waiting() on all connections. An Error while the
// message of a proven client is carried out is answered by `refused`; after every other exception
// the server closes the connection.

#include "connection.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/throw_error.hpp"
#include "protocol.hpp"

namespace rubato::rendezvous_detail {

namespace {

// Approximate memory of an entry besides its key and value.
constexpr std::size_t kEntryBytes = 128;

}  // namespace

const std::string* KeyValues::find(std::string_view key) const {
  const auto entry = values_.find(key);
  return entry == values_.end() ? nullptr : &entry->second;
}

void KeyValues::set(std::string_view key, std::string_view value) {
  const auto entry = values_.find(key);
  const std::size_t before =
      entry == values_.end() ? 0 : kEntryBytes + key.size() + entry->second.size();
  const std::size_t after = bytes_ - before + kEntryBytes + key.size() + value.size();
  if (after > max_bytes_) {
    throw_error("the store is full; accepted: up to {} MiB until it is started anew",
                max_bytes_ >> 20U);
  }
  if (entry == values_.end()) {
    values_.emplace(key, value);
  } else {
    entry->second = value;
  }
  bytes_ = after;
}

std::string KeyValues::compare_set(std::string_view key, std::string_view expected,
                                   std::string_view desired) {
  const std::string* const there = find(key);
  if (there == nullptr ? !expected.empty() : *there != expected) {
    return std::string(there == nullptr ? expected : *there);
  }
  set(key, desired);
  return std::string(desired);
}

std::int64_t KeyValues::add(std::string_view key, std::int64_t number) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::string* const there = find(key);
  std::int64_t sum = there == nullptr ? 0 : parse_whole(*there, Limits::min(), Limits::max());
  if (__builtin_add_overflow(sum, number, &sum)) {
    throw_error("{} added to {}; accepted: a sum of 63 bits", number, *there);
  }
  set(key, fmt::to_string(sum));
  return sum;
}

namespace {

constexpr std::int64_t kLongestWait = std::int64_t{1} << 40U;

}  // namespace

Connection::Connection(Socket socket, const std::string& token, std::chrono::milliseconds patience)
    : socket_(std::move(socket)), token_(token), patience_(patience), nonce_(new_nonce()) {
  out_ = bytes_of({.kind = Kind::challenge,
                   .fields = {std::string(kProtocol), nonce_, token_.empty() ? "" : "token"}});
  // The deadline covers the challenge and the answer to it together.
  deadline_ = Clock::now() + patience_;
}

short Connection::events() const {
  if (!out_.empty()) return POLLOUT;
  return awaited_ ? POLLRDHUP : POLLIN;
}

std::string Connection::proceed(KeyValues& values) {
  if (!out_.empty()) {
    write();
    return {};
  }
  if (awaited_) throw Error("the client has gone, or does not wait for its answer");
  std::string came;
  socket_.receive(came);
  if (came.empty()) return {};
  if (is_proven_ && reader_.size() == 0) deadline_ = Clock::now() + patience_;
  reader_.add(came);
  const auto message = reader_.take();
  if (!message) return {};
  if (!is_proven_) {
    prove(*message);
    return {};
  }
  deadline_.reset();
  try {
    return carry_out(*message, values);
  } catch (const Error& error) {
    answer(Kind::refused, error.what());
    return {};
  }
}

void Connection::expire() {
  if (!awaited_) throw Error("the client is silent");
  awaited_.reset();
  answer({.kind = Kind::missing});
}

void Connection::answer_waiting(const std::string& key, const KeyValues& values) {
  if (!awaited_ || *awaited_ != key) return;
  const std::string* const value = values.find(key);
  if (value == nullptr) return;
  awaited_.reset();
  answer(Kind::value, *value);
}

void Connection::prove(const Message& message) {
  if (message.kind != Kind::hello) throw Error("the client does not prove that it may speak");
  const std::string& nonce = message.fields[0];
  if (!token_.empty() &&
      !is_same_signature(message.fields[1], client_proof(token_, nonce_, nonce))) {
    is_refused_ = true;
    answer(Kind::refused, "it is served with another token; accepted: the same on all hosts");
    return;
  }
  is_proven_ = true;
  reader_.set_limit(kMaxMessageBytes);
  answer(Kind::welcome, server_proof(token_, nonce_, nonce));
}

std::string Connection::carry_out(const Message& message, KeyValues& values) {
  const auto& fields = message.fields;
  switch (message.kind) {
    case Kind::get:
      look_up(fields[0], fields[1], values);
      return {};
    case Kind::set:
      values.set(fields[0], fields[1]);
      answer(Kind::value, "");
      return fields[0];
    case Kind::compare_set: {
      const std::string* const before = values.find(fields[0]);
      const bool is_as_expected = (before == nullptr ? std::string_view() : *before) == fields[1];
      answer(Kind::value, values.compare_set(fields[0], fields[1], fields[2]));
      return is_as_expected ? fields[0] : std::string();
    }
    case Kind::add: {
      using Limits = std::numeric_limits<std::int64_t>;
      const std::int64_t number = parse_whole(fields[1], Limits::min(), Limits::max());
      answer(Kind::value, fmt::to_string(values.add(fields[0], number)));
      return fields[0];
    }
    default:
      throw Error("a message that only a server sends; accepted: one of a client");
  }
}

void Connection::look_up(const std::string& key, std::string_view milliseconds,
                         const KeyValues& values) {
  const std::chrono::milliseconds within(parse_whole(milliseconds, 0, kLongestWait));
  if (const std::string* const value = values.find(key)) {
    answer(Kind::value, *value);
  } else if (within.count() == 0) {
    answer({.kind = Kind::missing});
  } else {
    awaited_ = key;
    deadline_ = Clock::now() + within;
  }
}

void Connection::answer(Kind kind, std::string text) {
  answer({.kind = kind, .fields = {std::move(text)}});
}

// Queues an answer, which is sent when poll() says so: by then whatever the message has changed is
// known to all others, even if this client has gone.
void Connection::answer(const Message& message) {
  out_ = bytes_of(message);
  deadline_ = Clock::now() + patience_;
}

void Connection::write() {
  out_.erase(0, socket_.send(out_));
  if (!out_.empty()) return;
  out_ = {};
  if (is_refused_) throw Error("it was refused");
  if (is_proven_) deadline_.reset();
}

}  // namespace rubato::rendezvous_detail
