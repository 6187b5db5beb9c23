#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

#include "protocol.hpp"
#include "socket.hpp"

namespace rubato::rendezvous_detail {

/// The contents of a store. All functions that change it throw Error, and change nothing, if it
/// would exceed its limit.
class KeyValues {
 public:
  /// `max_bytes` limits keys and values, including the overhead of each entry.
  explicit KeyValues(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Null if there is no such key.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  void set(std::string_view key, std::string_view value);
  /// Replaces the value `expected` by `desired`; an empty `expected` stands for a missing key.
  /// Returns the value that is there afterwards, or `expected` if there is none.
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view desired);
  /// Adds to the number of the key, which begins at 0, and returns the sum. Throws Error if the
  /// value is not a number, or the sum is too large.
  std::int64_t add(std::string_view key, std::int64_t number);

 private:
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::map<std::string, std::string, std::less<>> values_;
};

/// The server's end of a connection with one client. No call waits.
///
/// At any time a connection is either read from, written to, or holds an answer back until its key
/// is there. Each of these has its time limit, except for reading from a proven client that says
/// nothing.
class Connection {
 public:
  /// Greets a client that has `patience` to prove that it knows `token` (or, with an empty one,
  /// that it speaks the protocol), to send a message whose first byte has come, and to take an
  /// answer.
  Connection(Socket socket, const std::string& token, std::chrono::milliseconds patience);

  [[nodiscard]] int descriptor() const { return socket_.descriptor(); }
  /// Events for poll(); only the other side's end while an answer is held back.
  [[nodiscard]] short events() const;
  [[nodiscard]] std::optional<Clock::time_point> deadline() const { return deadline_; }
  /// True if the client has proved that it may speak.
  [[nodiscard]] bool is_proven() const { return is_proven_; }
  /// True if the client was refused because of another token.
  [[nodiscard]] bool is_refused() const { return is_refused_; }
  /// Bytes that are held for what has come and what is to be sent.
  [[nodiscard]] std::size_t buffered() const { return reader_.size() + out_.size(); }

  /// Reads what has come, or writes: at most one message, which is carried out. Returns the key
  /// that it has changed, or an empty text. Throws Error if the connection is of no further use.
  [[nodiscard]] std::string proceed(KeyValues& values);
  /// Called once the deadline has passed: answers that a key is missing; throws Error if the client
  /// should have acted.
  void expire();
  /// Answers if the client waits for this key.
  void answer_waiting(const std::string& key, const KeyValues& values);

 private:
  void prove(const Message& message);
  [[nodiscard]] std::string carry_out(const Message& message, KeyValues& values);
  void look_up(const std::string& key, std::string_view milliseconds, const KeyValues& values);
  void answer(Kind kind, std::string text);
  void answer(const Message& message);
  void write();

  Socket socket_;
  std::string token_;
  std::chrono::milliseconds patience_;
  std::string nonce_;
  bool is_proven_ = false;
  bool is_refused_ = false;
  MessageReader reader_{kMaxHelloBytes};
  // Bytes that remain to be sent.
  std::string out_;
  // The key for which an answer is held back.
  std::optional<std::string> awaited_;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace rubato::rendezvous_detail
