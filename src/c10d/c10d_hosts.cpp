#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/c10d/c10d_hosts.hpp>
#include <rubato/core/error.hpp>

#include "c10d/group.hpp"
#include "c10d/rendezvous.hpp"
#include "c10d/store.hpp"

namespace rubato {

namespace {

using c10d_hosts_detail::Group;
using c10d_hosts_detail::Meeting;
using c10d_hosts_detail::Store;

constexpr int kMaxPort = 65'535;
constexpr std::chrono::milliseconds kLeastTimeout = std::chrono::seconds(1);

// What one host tells all others with an exchange.
constexpr std::uint64_t kPause = 1;

C10dOptions checked(const C10dOptions& options) {
  if (options.count < 1 || options.count > kMaxHosts) {
    throw Error(fmt::format("{} hosts; accepted: 1 to {}", options.count, kMaxHosts));
  }
  if (options.rank < 0 || options.rank >= options.count) {
    throw Error(fmt::format("host {} of {} hosts; accepted: 0 to one less than there are",
                            options.rank, options.count));
  }
  if (options.port < 1 || options.port > kMaxPort) {
    throw Error(fmt::format("the port {}; accepted: 1 to {}", options.port, kMaxPort));
  }
  if (!(options.weight > 0) || !std::isfinite(options.weight)) {
    throw Error(fmt::format("the weight {}; accepted: a number above 0", options.weight));
  }
  if (options.timeout < kLeastTimeout) {
    throw Error(
        fmt::format("a time limit of {} ms; accepted: at least 1 s", options.timeout.count()));
  }
  return options;
}

Store::Role role_of(const C10dOptions& options) {
  return options.rank == 0 && options.run.empty() ? Store::Role::server : Store::Role::client;
}

class C10dHosts final : public Hosts {
 public:
  explicit C10dHosts(const C10dOptions& options)
      : rank_(options.rank),
        store_({.host = options.address, .port = options.port}, role_of(options),
               fmt::format("rubato/{}", options.run), options.timeout),
        meeting_(meet(store_, options)),
        group_(store_.shared(), meeting_.names,
               {.rank = options.rank, .interface = options.interface, .timeout = options.timeout}) {
    // From here on nobody needs the store.
    const auto count = meeting_.names.size();
    static_cast<void>(group_.exchange(std::vector<std::span<const std::byte>>(count),
                                      std::vector<std::span<std::byte>>(count), 0));
  }

  [[nodiscard]] int count() const override { return static_cast<int>(meeting_.names.size()); }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<double> weights() const override { return meeting_.weights; }
  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    const std::uint64_t flags = group_.exchange(out, in, to_tell_);
    pause_asked_ = pause_asked_ || (flags & kPause) != 0;
  }
  void ask_to_pause() override { to_tell_ |= kPause; }
  [[nodiscard]] bool pause_asked() const override { return pause_asked_; }

 private:
  int rank_;
  Store store_;
  Meeting meeting_;
  Group group_;
  std::uint64_t to_tell_ = 0;
  bool pause_asked_ = false;
};

}  // namespace

std::shared_ptr<Hosts> c10d_hosts(const C10dOptions& options) {
  return std::make_shared<C10dHosts>(checked(options));
}

class RendezvousServer::Implementation {
 public:
  explicit Implementation(int port)
      : store({.host = "127.0.0.1", .port = port}, Store::Role::server, "rubato",
              std::chrono::minutes(1)) {}
  Store store;
};

RendezvousServer::RendezvousServer(int port) {
  if (port < 0 || port > kMaxPort) {
    throw Error(
        fmt::format("the port {}; accepted: 1 to {}, or 0 for any that is free", port, kMaxPort));
  }
  implementation_ = std::make_unique<Implementation>(port);
}
RendezvousServer::~RendezvousServer() = default;

int RendezvousServer::port() const {
  return implementation_->store.port();
}

}  // namespace rubato
