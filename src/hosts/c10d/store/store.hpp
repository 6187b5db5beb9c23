#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rubato/base/error.hpp>
#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/loop/hosts.hpp>

#include "served_store.hpp"

namespace rubato::c10d_hosts_detail {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The store cannot be reached, or does not answer.
class StoreLost : public HostLost {
 public:
  using HostLost::HostLost;
};

/// Address of a store.
struct StoreAddress {
  std::string host;
  int port = 0;
  /// Token that is proved to a RendezvousServer that asks for it.
  std::string token{};
  /// The store is a TCPStore of c10d instead of a RendezvousServer's.
  bool is_tcp_store = false;
};
[[nodiscard]] StoreAddress address_of(const C10dOptions& options);

/// Keys and values that all hosts see: the store of a RendezvousServer, or torchrun's TCPStore,
/// with a time limit on everything that waits.
///
/// c10d's own wait and get are not used for a key that may be missing: with a TCPStore of libtorch
/// 1.13, a client whose wait has timed out takes the late answer for the answer to its next
/// question.
class Store {
 public:
  /// Connects; `prefix` is put before all keys. Throws StoreLost if it cannot connect within
  /// `timeout`, which also limits each answer, and Error if the store refuses because it is served
  /// with another token.
  Store(const StoreAddress& address, const std::string& prefix, milliseconds timeout);
  ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Puts a value if the key has none. Returns false if it has another one. Throws StoreLost if the
  /// store does not answer, as all functions below do.
  [[nodiscard]] bool put(const std::string& key, const std::string& value);
  /// Replaces the value `expected`. Returns false if the key has another one.
  [[nodiscard]] bool replace(const std::string& key, const std::string& expected,
                             const std::string& value);
  /// Puts a value, whatever the key has now.
  void set(const std::string& key, const std::string& value);
  /// The value of the key now; empty if it has none.
  [[nodiscard]] std::optional<std::string> find(const std::string& key);
  /// Adds one to the number of the key, which begins at 0, and returns it: no two callers get the
  /// same.
  [[nodiscard]] std::int64_t raise(const std::string& key);
  /// Waits for the value of a key; empty if it has none by `deadline`.
  [[nodiscard]] std::optional<std::string> wait(const std::string& key, Clock::time_point deadline);

  /// Makes whatever waits for a key here, also in shared(), call `look` several times a second; an
  /// exception from `look` ends the waiting. A TCPStore ignores it.
  void attend(std::function<void()> look);

  /// The store for a process group, whose own keys get the prefix, too.
  [[nodiscard]] c10::intrusive_ptr<::c10d::Store> shared() const { return prefixed_; }

 private:
  template <class Call>
  auto answered(const Call& call);

  StoreAddress address_;
  // The RendezvousServer's store, or null if the store is a TCPStore.
  c10::intrusive_ptr<ServedStore> served_;
  c10::intrusive_ptr<::c10d::Store> prefixed_;
};

}  // namespace rubato::c10d_hosts_detail
