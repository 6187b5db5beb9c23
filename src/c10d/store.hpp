#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <rubato/core/error.hpp>

namespace rubato::c10d_hosts_detail {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A store that cannot be reached, or does not answer.
class StoreLost : public Error {
 public:
  using Error::Error;
};

/// Where a store is.
struct StoreAddress {
  std::string host;
  int port = 0;
};

/// Keys and values that all hosts see: c10d's TCPStore, with a time limit on everything that waits.
///
/// c10d's own wait and get are not used for a key that may be missing: in libtorch 1.13 a client
/// whose wait has run out of time takes the late answer for that of its next question.
class Store {
 public:
  enum class Role { client, server };

  /// Connects, and serves the store itself where it is the server's; `prefix` stands before all
  /// keys. Throws StoreLost where that is not possible within `timeout`, which is also how long
  /// each answer may take.
  Store(const StoreAddress& address, Role role, const std::string& prefix, milliseconds timeout);
  /// Takes no longer than a second or two, even where the server is stuck.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Puts a value where there is none. False where there is another. Throws StoreLost when the
  /// store does not answer, as all others do.
  [[nodiscard]] bool put(const std::string& key, const std::string& value);
  /// Puts a value, whatever is there. Throws StoreLost as all others do.
  void set(const std::string& key, const std::string& value);
  /// What is there now; empty where nothing is.
  [[nodiscard]] std::optional<std::string> find(const std::string& key);
  /// Raises the number that is there, or 0, by one and returns it: no two callers get the same.
  [[nodiscard]] std::int64_t raise(const std::string& key);
  /// What is there; empty where nothing is by `deadline`.
  [[nodiscard]] std::optional<std::string> wait(const std::string& key, Clock::time_point deadline);

  /// Of the server.
  [[nodiscard]] int port() const;
  /// For a process group, whose own keys are behind the prefix.
  [[nodiscard]] c10::intrusive_ptr<::c10d::Store> shared() const { return prefixed_; }

 private:
  template <class Call>
  auto answered(const Call& call);

  StoreAddress address_;
  c10::intrusive_ptr<::c10d::TCPStore> store_;
  c10::intrusive_ptr<::c10d::Store> prefixed_;
};

}  // namespace rubato::c10d_hosts_detail
