#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/c10d/c10d_hosts.hpp>
#include <rubato/core/error.hpp>

#include "c10d/checked_meeting.hpp"
#include "c10d/group.hpp"
#include "c10d/rendezvous.hpp"
#include "c10d/store.hpp"

namespace rubato {

namespace {

using c10d_hosts_detail::Group;
using c10d_hosts_detail::kAbandoned;
using c10d_hosts_detail::kPauseFlag;
using c10d_hosts_detail::Meeting;
using c10d_hosts_detail::Store;

using c10d_hosts_detail::kMaxPort;

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
  }

  [[nodiscard]] int count() const override { return static_cast<int>(meeting_.names.size()); }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<double> weights() const override { return meeting_.weights; }
  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    hear(group_.exchange(out, in, to_tell_));
  }
  void expect(std::span<const std::span<std::byte>> in) override { group_.expect(in); }
  void give(std::span<const std::span<const std::byte>> out) override {
    group_.give(out, to_tell_);
  }
  void take() override { hear(group_.take()); }
  void abandon() noexcept override { group_.abandon(kAbandoned); }
  void ask_to_pause() override { to_tell_ |= kPauseFlag; }
  [[nodiscard]] bool pause_asked() const override { return pause_asked_; }

 private:
  void hear(std::uint64_t flags) { pause_asked_ = pause_asked_ || (flags & kPauseFlag) != 0; }

  int rank_;
  Store store_;
  Meeting meeting_;
  Group group_;
  std::uint64_t to_tell_ = 0;
  bool pause_asked_ = false;
};

}  // namespace

std::shared_ptr<Hosts> c10d_hosts(const C10dOptions& options) {
  c10d_hosts_detail::check_meeting(options);
  return std::make_shared<C10dHosts>(options);
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
