#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

#include "protocol.hpp"
#include "socket.hpp"

namespace rubato::rendezvous_detail {

/// The server answers, but refuses what it is asked for.
class Refused : public Error {
 public:
  using Error::Error;
};

/// A connection with the server of a store.
///
/// All functions throw Error with the reason when there is no answer within the time limit, and in
/// every later call; and Refused if the server refuses.
///
/// Thread safety: all functions may be called from any thread; they wait for each other.
class StoreClient {
 public:
  struct Options {
    std::string host{};
    int port = 0;
    /// Token that is proved to a server that asks for it, which has to prove that it knows it, too.
    std::string token{};
    /// Time limit for connecting, which is retried until then, and for each answer.
    std::chrono::milliseconds timeout = std::chrono::minutes(5);
  };

  explicit StoreClient(const Options& options);

  /// The value of the key, now or within this time; empty if it has none.
  [[nodiscard]] std::optional<std::string> get(
      const std::string& key, std::chrono::milliseconds within = std::chrono::milliseconds(0));
  void set(const std::string& key, const std::string& value);
  /// KeyValues::compare_set().
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  /// Adds to the number of the key, which begins at 0, and returns the sum.
  std::int64_t add(const std::string& key, std::int64_t number);

 private:
  void connect(Clock::time_point deadline);
  [[nodiscard]] Message ask(const Message& message, std::chrono::milliseconds timeout);
  [[nodiscard]] std::string value_of(const Message& message);
  void send(std::string_view bytes, Clock::time_point deadline) const;
  [[nodiscard]] Message received(Clock::time_point deadline) const;

  Options options_;
  std::mutex mutex_;
  Socket socket_;
};

}  // namespace rubato::rendezvous_detail
