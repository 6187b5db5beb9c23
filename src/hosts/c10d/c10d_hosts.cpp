#include <cstddef>
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

using namespace hosts_detail;
using rendezvous_detail::StoreServer;

// Hosts that reach this machine by its loopback need no other address to connect to.
std::string listening_address(const C10dOptions& options) {
  return is_loopback(options.address) ? options.address : "";
}

// A server for the store if host 0 has to serve it, or else null.
std::unique_ptr<StoreServer> server_for(const C10dOptions& options) {
  if (options.rank != 0 || !options.run.empty()) return nullptr;
  return std::make_unique<StoreServer>(StoreServer::Options{
      .address = listening_address(options), .port = options.port, .token = options.token});
}

// This process reaches its own server by the loopback, whatever the machine's name outside.
C10dOptions meeting_at(C10dOptions options, const StoreServer* server) {
  if (server != nullptr && listening_address(options).empty()) options.address = "127.0.0.1";
  return options;
}

class C10dHosts final : public RequestingHosts<Hosts> {
 public:
  explicit C10dHosts(const C10dOptions& options)
      : rank_(options.rank),
        server_(server_for(options)),
        store_(meeting_at(options, server_.get()), fmt::format("rubato/{}", options.run),
               options.timeout),
        roster_(meet(store_, server_.get(), options)),
        group_(store_.shared(), roster_.names,
               {.rank = options.rank,
                .interface = options.interface,
                .token = options.token,
                .timeout = options.timeout}) {}

  [[nodiscard]] int count() const override { return static_cast<int>(roster_.names.size()); }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<double> weights() const override { return roster_.weights; }
  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    note_flags(group_.exchange(out, in, flags_to_send_));
  }
  void post_receives(std::span<const std::span<std::byte>> in) override {
    group_.post_receives(in);
  }
  void post_sends(std::span<const std::span<const std::byte>> out) override {
    group_.post_sends(out, flags_to_send_);
  }
  void wait() override { note_flags(group_.wait()); }
  void abandon() noexcept override { group_.abandon(kAbandoned); }

 private:
  int rank_;
  std::unique_ptr<StoreServer> server_;
  Store store_;
  Roster roster_;
  Group group_;
};

}  // namespace

std::shared_ptr<Hosts> c10d_hosts(const C10dOptions& options) {
  hosts_detail::check_meeting(options);
  return std::make_shared<C10dHosts>(options);
}

}  // namespace rubato
