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

/// A store that cannot be reached, or does not answer.
class StoreLost : public HostLost {
 public:
  using HostLost::HostLost;
};

/// Where a store is.
struct StoreAddress {
  std::string host;
  int port = 0;
  /// Proved to a RendezvousServer that asks for it.
  std::string token{};
  /// It is a TCPStore of c10d's in place of a RendezvousServer's.
  bool is_tcp_store = false;
};
[[nodiscard]] StoreAddress address_of(const C10dOptions& options);

/// Keys and values that all hosts see: the store of a RendezvousServer, or torchrun's TCPStore,
/// with a time limit on everything that waits.
///
/// c10d's own wait and get are not used for a key that may be missing: with a TCPStore of libtorch
/// 1.13 a client whose wait has run out of time takes the late answer for that of its next
/// question.
class Store {
 public:
  /// Connects; `prefix` stands before all keys. Throws StoreLost where that is not possible within
  /// `timeout`, which is also how long each answer may take, and Error where the store refuses: it
  /// is served with another token.
  Store(const StoreAddress& address, const std::string& prefix, milliseconds timeout);
  ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Puts a value where there is none. False where there is another. Throws StoreLost when the
  /// store does not answer, as all others do.
  [[nodiscard]] bool put(const std::string& key, const std::string& value);
  /// Puts a value where `expected` is. False where something else is.
  [[nodiscard]] bool replace(const std::string& key, const std::string& expected,
                             const std::string& value);
  /// Puts a value, whatever is there. Throws StoreLost as all others do.
  void set(const std::string& key, const std::string& value);
  /// What is there now; empty where nothing is.
  [[nodiscard]] std::optional<std::string> find(const std::string& key);
  /// Raises the number that is there, or 0, by one and returns it: no two callers get the same.
  [[nodiscard]] std::int64_t raise(const std::string& key);
  /// What is there; empty where nothing is by `deadline`.
  [[nodiscard]] std::optional<std::string> wait(const std::string& key, Clock::time_point deadline);

  /// From now on `look` is called several times a second by whatever waits here for a key, also in
  /// shared(); what it throws ends that. Not of a TCPStore.
  void attend(std::function<void()> look);

  /// For a process group, whose own keys are behind the prefix.
  [[nodiscard]] c10::intrusive_ptr<::c10d::Store> shared() const { return prefixed_; }

 private:
  template <class Call>
  auto answered(const Call& call);

  StoreAddress address_;
  // The store is a RendezvousServer's if this is set, and a TCPStore if it is null.
  c10::intrusive_ptr<ServedStore> served_;
  c10::intrusive_ptr<::c10d::Store> prefixed_;
};

}  // namespace rubato::c10d_hosts_detail
