#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "hosts/rendezvous/store_client.hpp"

namespace rubato::c10d_hosts_detail {

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

}  // namespace rubato::c10d_hosts_detail
