#include "store_server.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>

#include <rubato/base/error.hpp>
#include <rubato/hosts/rendezvous_server.hpp>

#include "base/core/check.hpp"
#include "connection.hpp"
#include "socket.hpp"

namespace rubato::rendezvous_detail {

namespace {

// Number of connections that are accepted before the existing ones are served again.
constexpr int kAccepted = 16;
// Time for which nobody is accepted when the system has no room for another connection.
constexpr std::chrono::milliseconds kPause{100};

Socket listener_of(const StoreServer::Options& options) {
  try {
    return listen_at(options.address, options.port);
  } catch (const Error& error) {
    const std::string place = options.address.empty()
                                  ? fmt::format("port {}", options.port)
                                  : fmt::format("{}:{}", options.address, options.port);
    throw Error(fmt::format("cannot serve the rendezvous at {}: {}", place, error.what()));
  }
}

}  // namespace

class StoreServer::Loop {
 public:
  explicit Loop(const Options& options)
      : options_(options),
        listener_(listener_of(options)),
        values_(options.max_kept_bytes),
        port_(port_of(listener_)),
        thread_([this] { run(); }) {}
  ~Loop() {
    wake_up_.send();
    thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  using Connections = std::list<Connection>;

  void run() {
    for (;;) {
      const auto polled = wait();
      // The only thing that wakes the thread up is the request to end.
      if (polled[0].revents != 0) return;
      const Clock::time_point now = Clock::now();
      std::size_t i = 2;
      for (auto at = connections_.begin(); at != connections_.end();) {
        const auto connection = at++;
        serve(connection, polled[i++].revents != 0, now);
      }
      if (polled[1].revents != 0) let_in();
      limit_buffers();
    }
  }

  // Returns the result of poll() for the wake-up, the listener and each connection.
  [[nodiscard]] std::vector<pollfd> wait() {
    std::vector<pollfd> polled;
    polled.reserve(2 + connections_.size());
    polled.push_back({.fd = wake_up_.descriptor(), .events = POLLIN, .revents = 0});
    // poll() ignores a negative descriptor.
    if (muted_ && Clock::now() >= *muted_) muted_.reset();
    polled.push_back({.fd = muted_ ? -1 : listener_.descriptor(), .events = POLLIN, .revents = 0});
    std::optional<Clock::time_point> deadline = muted_;
    for (const Connection& connection : connections_) {
      polled.push_back(
          {.fd = connection.descriptor(), .events = connection.events(), .revents = 0});
      const auto its = connection.deadline();
      if (its && (!deadline || *its < *deadline)) deadline = its;
    }
    if (poll(polled.data(), polled.size(), poll_timeout(deadline)) < 0) {
      RUBATO_CHECK(errno == EINTR || errno == ENOMEM, "all polled descriptors are open");
      for (pollfd& one : polled) one.revents = 0;
    }
    return polled;
  }

  void serve(Connections::iterator connection, bool is_ready, Clock::time_point now) {
    try {
      if (is_ready) {
        const bool was_refused = connection->is_refused();
        const std::string changed = connection->proceed(values_);
        // The refusal is counted before the client is told of it.
        if (connection->is_refused() && !was_refused) ++refused_;
        if (!changed.empty()) {
          for (Connection& other : connections_) other.hear(changed, values_);
        }
      } else if (connection->deadline() && now >= *connection->deadline()) {
        connection->expire();
      }
    } catch (const std::exception&) {
      // The connection is of no further use; the client sees that it is closed.
      connections_.erase(connection);
    }
  }

  void let_in() {
    for (int i = 0; i < kAccepted; ++i) {
      int error = 0;
      Socket socket = accept_from(listener_, error);
      if (error != 0) {
        // The client is not told, and waits.
        if (!close_oldest_unproven()) muted_ = Clock::now() + kPause;
        return;
      }
      if (!socket) return;
      if (connections_.size() >= options_.max_connections && !close_oldest_unproven()) continue;
      try {
        connections_.emplace_back(std::move(socket), options_.token, options_.patience);
      } catch (const std::exception&) {
        continue;
      }
      const auto unproven = std::ranges::count(connections_, false, &Connection::is_proven);
      if (static_cast<std::size_t>(unproven) > options_.max_unproven) {
        static_cast<void>(close_oldest_unproven());
      }
    }
  }
  [[nodiscard]] bool close_oldest_unproven() {
    const auto oldest = std::ranges::find(connections_, false, &Connection::is_proven);
    if (oldest == connections_.end()) return false;
    connections_.erase(oldest);
    return true;
  }

  void limit_buffers() {
    std::size_t sum = 0;
    for (const Connection& connection : connections_) sum += connection.buffered();
    while (sum > options_.max_buffered_bytes) {
      const auto largest = std::ranges::max_element(connections_, {}, &Connection::buffered);
      sum -= largest->buffered();
      connections_.erase(largest);
    }
  }

  Options options_;
  WakeUp wake_up_;
  Socket listener_;
  // Connections in the order in which they came.
  Connections connections_;
  KeyValues values_;
  int port_;
  std::atomic<int> refused_ = 0;
  // Time until which nobody is accepted.
  std::optional<Clock::time_point> muted_;
  // The thread is the last member because it uses all of the above.
  std::thread thread_;
};

StoreServer::StoreServer(const Options& options) : loop_(std::make_unique<Loop>(options)) {}
StoreServer::~StoreServer() = default;

int StoreServer::port() const {
  return loop_->port();
}

int StoreServer::refused() const {
  return loop_->refused();
}

}  // namespace rubato::rendezvous_detail

namespace rubato {

using rendezvous_detail::StoreServer;

class RendezvousServer::Implementation {
 public:
  explicit Implementation(const StoreServer::Options& options) : server(options) {}
  StoreServer server;
};

RendezvousServer::RendezvousServer(int port, const RendezvousOptions& options) {
  constexpr int kMaxPort = 65'535;
  if (port < 0 || port > kMaxPort) {
    throw Error(
        fmt::format("the port {}; accepted: 1 to {}, or 0 for any that is free", port, kMaxPort));
  }
  implementation_ = std::make_unique<Implementation>(
      StoreServer::Options{.address = options.address, .port = port, .token = options.token});
}
RendezvousServer::~RendezvousServer() = default;

int RendezvousServer::port() const {
  return implementation_->server.port();
}

}  // namespace rubato
