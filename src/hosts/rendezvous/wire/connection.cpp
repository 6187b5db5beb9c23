#include "connection.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "signature.hpp"

namespace rubato::rendezvous_detail {

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

void Connection::hear(const std::string& key, const KeyValues& values) {
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
    case Kind::compare_set:
      answer(Kind::value, values.compare_set(fields[0], fields[1], fields[2]));
      return fields[0];
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
