// One thread polls all connections. A round handles at most one message of each, then accepts up to
// kAccepted new ones, and then closes the largest connections until the buffers are within their
// limit. A changed key is made known to all connections before the answer to the change is sent.
// When there are too many connections, the oldest one that has not proved itself is closed, since a
// host needs one round trip for its proof and tries again (docs/adr/0051-a-store-of-our-own.md).
// Other threads touch only the wake-up, the port, which never changes, and an atomic counter, so
// there is no lock.

#include "store_server.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/hosts/rendezvous_server.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

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
    throw_error("cannot serve the rendezvous at {}: {}", place, error.what());
  }
}

}  // namespace

StoreServer::StoreServer(const Options& options)
    : options_(options),
      listener_(listener_of(options)),
      values_(options.max_kept_bytes),
      port_(port_of(listener_)),
      thread_([this] { run(); }) {}

StoreServer::~StoreServer() {
  wake_up_.send();
  thread_.join();
}

void StoreServer::run() {
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
    if (polled[1].revents != 0) accept_all();
    limit_buffers();
  }
}

std::vector<pollfd> StoreServer::wait() {
  std::vector<pollfd> polled;
  polled.reserve(2 + connections_.size());
  polled.push_back({.fd = wake_up_.descriptor(), .events = POLLIN, .revents = 0});
  // poll() ignores a negative descriptor.
  if (muted_ && Clock::now() >= *muted_) muted_.reset();
  polled.push_back({.fd = muted_ ? -1 : listener_.descriptor(), .events = POLLIN, .revents = 0});
  std::optional<Clock::time_point> deadline = muted_;
  for (const Connection& connection : connections_) {
    polled.push_back({.fd = connection.descriptor(), .events = connection.events(), .revents = 0});
    const auto its = connection.deadline();
    if (its && (!deadline || *its < *deadline)) deadline = its;
  }
  if (poll(polled.data(), polled.size(), poll_timeout(deadline)) < 0) {
    RUBATO_CHECK(errno == EINTR || errno == ENOMEM, "all polled descriptors are open");
    for (pollfd& one : polled) one.revents = 0;
  }
  return polled;
}

void StoreServer::serve(Connections::iterator connection, bool is_ready, Clock::time_point now) {
  try {
    if (is_ready) {
      const bool was_refused = connection->is_refused();
      const std::string changed = connection->proceed(values_);
      // The refusal is counted before the client is told of it.
      if (connection->is_refused() && !was_refused) ++refused_;
      if (!changed.empty()) {
        for (Connection& other : connections_) other.answer_waiting(changed, values_);
      }
    } else if (connection->deadline() && now >= *connection->deadline()) {
      connection->expire();
    }
  } catch (const std::exception&) {
    // The connection is of no further use; the client sees that it is closed.
    connections_.erase(connection);
  }
}

void StoreServer::accept_all() {
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

bool StoreServer::close_oldest_unproven() {
  const auto oldest = std::ranges::find(connections_, false, &Connection::is_proven);
  if (oldest == connections_.end()) return false;
  connections_.erase(oldest);
  return true;
}

void StoreServer::limit_buffers() {
  std::size_t sum = 0;
  for (const Connection& connection : connections_) sum += connection.buffered();
  while (sum > options_.max_buffered_bytes) {
    const auto largest = std::ranges::max_element(connections_, {}, &Connection::buffered);
    sum -= largest->buffered();
    connections_.erase(largest);
  }
}

}  // namespace rubato::rendezvous_detail

namespace rubato {

using rendezvous_detail::kMaxPort;
using rendezvous_detail::StoreServer;

class RendezvousServer::Implementation : public StoreServer {
 public:
  using StoreServer::StoreServer;
};

RendezvousServer::RendezvousServer(int port, const RendezvousOptions& options) {
  if (port < 0 || port > kMaxPort) {
    throw_error("the port {}; accepted: 1 to {}, or 0 for any that is free", port, kMaxPort);
  }
  implementation_ = std::make_unique<Implementation>(
      StoreServer::Options{.address = options.address, .port = port, .token = options.token});
}
RendezvousServer::~RendezvousServer() = default;

int RendezvousServer::port() const {
  return implementation_->port();
}

}  // namespace rubato
