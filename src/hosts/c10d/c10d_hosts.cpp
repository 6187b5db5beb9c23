#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/hosts/c10d_hosts.hpp>

#include "group.hpp"
#include "hosts/rendezvous/store_server.hpp"
#include "hosts/run_status/greeting.hpp"
#include "meeting.hpp"
#include "store.hpp"

namespace rubato {

namespace {

using c10d_hosts_detail::Group;
using c10d_hosts_detail::kAbandoned;
using c10d_hosts_detail::kPauseFlag;
using c10d_hosts_detail::kSaveFlag;
using c10d_hosts_detail::Meeting;
using c10d_hosts_detail::Store;
using c10d_hosts_detail::StoreAddress;
using c10d_hosts_detail::Told;
using rendezvous_detail::StoreServer;

// Hosts that reach this machine by its loopback need no other address to connect to.
std::string listening_address(const C10dOptions& options) {
  return c10d_hosts_detail::is_loopback(options.address) ? options.address : "";
}

// A server for the store if host 0 has to serve it, or else null.
std::unique_ptr<StoreServer> server_for(const C10dOptions& options) {
  if (options.rank != 0 || !options.run.empty()) return nullptr;
  return std::make_unique<StoreServer>(StoreServer::Options{
      .address = listening_address(options), .port = options.port, .token = options.token});
}

StoreAddress address_for(const C10dOptions& options, const StoreServer* server) {
  StoreAddress address = c10d_hosts_detail::address_of(options);
  // This process reaches its own server by the loopback, whatever the machine's name outside.
  if (server != nullptr && listening_address(options).empty()) address.host = "127.0.0.1";
  return address;
}

class C10dHosts final : public Hosts {
 public:
  explicit C10dHosts(const C10dOptions& options)
      : rank_(options.rank),
        server_(server_for(options)),
        store_(address_for(options, server_.get()), fmt::format("rubato/{}", options.run),
               options.timeout),
        meeting_(meet(store_, server_.get(), options)),
        group_(store_.shared(), meeting_.names,
               {.rank = options.rank,
                .interface = options.interface,
                .token = options.token,
                .timeout = options.timeout}) {}

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
  void ask_to_save() override { to_tell_ |= kSaveFlag; }
  [[nodiscard]] bool take_save_request() override { return std::exchange(save_asked_, false); }

 private:
  void hear(const Told& told) {
    pause_asked_ = pause_asked_ || (told.flags & kPauseFlag) != 0;
    if ((told.flags & kSaveFlag) == 0) return;
    save_asked_ = true;
    to_tell_ &= ~kSaveFlag;
  }

  int rank_;
  std::unique_ptr<StoreServer> server_;
  Store store_;
  Meeting meeting_;
  Group group_;
  std::atomic<std::uint64_t> to_tell_ = 0;
  bool pause_asked_ = false;
  bool save_asked_ = false;
};

}  // namespace

std::shared_ptr<Hosts> c10d_hosts(const C10dOptions& options) {
  c10d_hosts_detail::check_meeting(options);
  return std::make_shared<C10dHosts>(options);
}

}  // namespace rubato
