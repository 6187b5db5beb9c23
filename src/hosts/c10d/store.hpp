#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rubato/base/error.hpp>
#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/loop/hosts.hpp>

#include "hosts/rendezvous/store_client.hpp"

namespace rubato::hosts_detail {

/// A value as c10d's stores represent it.
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const std::string& text);

/// The store of a RendezvousServer behind c10d's interface. Keys are neither counted nor deleted.
class ServedStore final : public ::c10d::Store {
 public:
  explicit ServedStore(const rendezvous_detail::StoreClient::Options& options);

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  /// Waits for the key, as wait() does.
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t number) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  bool deleteKey(const std::string& key) override;
  std::int64_t getNumKeys() override;
  /// This store itself, which any thread may use. Overrides a function of libtorch 2.9 that earlier
  /// ones do not have.
  c10::intrusive_ptr<::c10d::Store> clone();

  /// Store::attend().
  void attend(std::function<void()> look) { look_ = std::move(look); }
  void look() const {
    if (look_) look_();
  }

 private:
  // Waits for a key and returns its value; empty if it is not there by then.
  std::optional<std::string> awaited(const std::string& key, std::chrono::milliseconds timeout);

  std::function<void()> look_;
  rendezvous_detail::StoreClient client_;
};

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The store cannot be reached, or does not answer.
class StoreLost : public HostLost {
 public:
  using HostLost::HostLost;
};

/// Keys and values that all hosts see: the store of a RendezvousServer, or torchrun's TCPStore,
/// with a time limit on everything that waits.
///
/// c10d's own wait and get are not used for a key that may be missing: with a TCPStore of libtorch
/// 1.13, a client whose wait has timed out takes the late answer for the answer to its next
/// question.
class Store {
 public:
  /// Connects with the store of a meeting; `prefix` is put before all keys. Throws StoreLost if it
  /// cannot connect within `timeout`, which also limits each answer, and Error if the store refuses
  /// because it is served with another token.
  Store(const C10dOptions& meeting, const std::string& prefix, milliseconds timeout);
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

  // "rendezvous HOST:PORT", for messages.
  std::string name_;
  // The RendezvousServer's store, or null if the store is a TCPStore.
  c10::intrusive_ptr<ServedStore> served_;
  c10::intrusive_ptr<::c10d::Store> prefixed_;
};

/// The message of an exception of c10d or gloo, in one line: without the source files before it and
/// the stack after it.
[[nodiscard]] inline std::string reason_of(const std::exception& error) {
  std::string_view text = error.what();
  text = text.substr(0, text.find('\n'));
  // "[../gloo/transport/tcp/pair.cc:598] Connection closed by peer"
  if (text.starts_with('[')) {
    const std::size_t end = text.find("] ");
    const std::string_view place = text.substr(0, end);
    if (end != std::string_view::npos && place.find(".cc:") != std::string_view::npos) {
      text.remove_prefix(end + 2);
    }
  }
  return std::string(text);
}

}  // namespace rubato::hosts_detail
