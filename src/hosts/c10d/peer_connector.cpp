// There are two layers: PeerConnector authenticates connections, and Device, Context and Pair,
// derived from those of gloo's TCP transport, hand these connections to gloo. A caller sends its
// rank, a nonce and client_proof() over the secret that the other host has put into the store; it
// gets server_proof() in return. The sockets do not block: one thread polls the listener and all
// unproven callers, which are limited in number and time. gloo also opens listeners of its own, for
// each pair or for the device; these are bound to a random address of the loopback, which no other
// machine reaches.

#include "peer_connector.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/attr.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "gloo_versions.hpp"
#include "hosts/rendezvous/protocol.hpp"
#include "links.hpp"

namespace rubato::hosts_detail {

namespace {

using rendezvous_detail::client_proof;
using rendezvous_detail::server_proof;
using rendezvous_detail::Socket;
using rendezvous_detail::Until;

// Intervals between two calls of look(), and before a host that has hung up is called again.
constexpr milliseconds kBetweenLooks{250};
constexpr milliseconds kBetweenCalls{20};
// Time limit for a caller to prove that it is a host, and the largest number of unproven callers.
// Beyond that the oldest one is dropped: hosts call again.
constexpr milliseconds kIntroducing{5'000};
constexpr std::size_t kMostCallers = 256;
// A caller sends its rank, a nonce and the proof; the answer is a proof.
constexpr std::size_t kRankDigits = 8;
constexpr std::size_t kNonceDigits = 32;
constexpr std::size_t kProofDigits = 64;
constexpr std::size_t kHead = kRankDigits + kNonceDigits;
constexpr std::size_t kHello = kHead + kProofDigits;

// A random number of 60 bits.
std::int64_t new_secret() {
  constexpr std::size_t kDigits = 15;
  constexpr int kHexadecimal = 16;
  return std::stoll(new_nonce().substr(0, kDigits), nullptr, kHexadecimal);
}

}  // namespace

PeerConnector::PeerConnector(Options options)
    : options_(std::move(options)),
      deadline_(Clock::now() + options_.patience),
      listener_(listener_at(options_.interface)),
      place_{.address = own_address(listener_), .secret = new_secret()},
      awaited_(options_.names.size() - options_.rank - 1) {}

Socket PeerConnector::connect(std::size_t host, const Place& theirs) {
  try {
    if (host < options_.rank) return call(theirs);
    Socket socket = awaited(host);
    // No other host will call.
    if (--awaited_ == 0) {
      callers_.clear();
      listener_ = Socket();
    }
    return socket;
  } catch (const Error& error) {
    throw HostLost(fmt::format("{} is not connected: {}", options_.names[host], error.what()));
  }
}

Socket PeerConnector::call(const Place& theirs) const {
  for (;;) {
    Socket socket = rendezvous_detail::connect_to(theirs.address, deadline_);
    try {
      introduce(socket, theirs);
      return socket;
    } catch (const HostLost&) {
      throw;
    } catch (const Error&) {
      // The other host may have dropped this call to make room for others.
      if (Clock::now() + kBetweenCalls >= deadline_) throw;
    }
    look();
    std::this_thread::sleep_for(kBetweenCalls);
  }
}

void PeerConnector::introduce(const Socket& socket, const Place& theirs) const {
  const std::string head = fmt::format("{:0{}}{}", options_.rank, kRankDigits, new_nonce());
  const std::string secret = fmt::to_string(theirs.secret);
  const std::string hello = head + client_proof(options_.token, secret, head);
  for (std::string_view left = hello; !left.empty();) {
    wait(Until::writable, socket);
    left.remove_prefix(socket.send(left));
  }
  std::string answer;
  while (answer.size() < kProofDigits) {
    wait(Until::readable, socket);
    socket.receive(answer, kProofDigits - answer.size());
  }
  if (is_same_signature(answer, server_proof(options_.token, secret, head))) return;
  throw HostLost("somebody else answers in its place");
}

void PeerConnector::wait(Until until, const Socket& socket) const {
  while (!wait_until(until, socket, std::min(deadline_, Clock::now() + kBetweenLooks))) {
    if (Clock::now() >= deadline_) throw HostLost("it does not answer within the time limit");
    look();
  }
}

void PeerConnector::look() const {
  if (options_.look) options_.look();
}

Socket PeerConnector::awaited(std::size_t host) {
  for (Clock::time_point next_look = Clock::now() + kBetweenLooks;;) {
    if (const auto found = proven_.find(host); found != proven_.end()) {
      Socket socket = std::move(found->second);
      proven_.erase(found);
      return socket;
    }
    const Clock::time_point now = Clock::now();
    if (now >= deadline_) throw Error("it does not call within the time limit");
    if (now >= next_look) {
      look();
      next_look = now + kBetweenLooks;
    }
    std::vector<pollfd> polled{{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
    for (const Caller& caller : callers_) {
      polled.push_back({.fd = caller.socket.descriptor(), .events = POLLIN, .revents = 0});
    }
    const int timeout = rendezvous_detail::poll_timeout(std::min(deadline_, next_look));
    if (poll(polled.data(), polled.size(), timeout) < 0 && errno != EINTR) {
      throw Error(std::generic_category().message(errno));
    }
    callers_.remove_if([this](Caller& caller) { return !read_from(caller); });
    let_in();
  }
}

void PeerConnector::let_in() {
  // Number of callers that are accepted before the earlier ones are heard again.
  constexpr int kAccepted = 16;
  for (int i = 0; i < kAccepted; ++i) {
    int error = 0;
    Socket socket = rendezvous_detail::accept_from(listener_, error);
    // The system has no room for more callers.
    if (error != 0) std::this_thread::sleep_for(kBetweenCalls);
    const bool needs_room = error != 0 || (socket && callers_.size() >= kMostCallers);
    if (needs_room && !callers_.empty()) callers_.pop_front();
    if (!socket) return;
    callers_.push_back({.socket = std::move(socket), .deadline = Clock::now() + kIntroducing});
  }
}

bool PeerConnector::read_from(Caller& caller) {
  try {
    caller.socket.receive(caller.said, kHello - caller.said.size());
    if (caller.said.size() < kHello) return Clock::now() < caller.deadline;
    const std::string_view head = std::string_view(caller.said).substr(0, kHead);
    const std::string_view proof = std::string_view(caller.said).substr(kHead);
    const std::string secret = fmt::to_string(place_.secret);
    if (!is_same_signature(proof, client_proof(options_.token, secret, head))) return false;
    const auto host = static_cast<std::size_t>(parse_whole(
        std::string(head.substr(0, kRankDigits)), static_cast<std::int64_t>(options_.rank) + 1,
        static_cast<std::int64_t>(options_.names.size()) - 1));
    const std::string answer = server_proof(options_.token, secret, head);
    // Nothing has been sent on the connection yet, so there is room for the whole answer.
    if (caller.socket.send(answer) == answer.size()) {
      proven_.insert_or_assign(host, std::move(caller.socket));
    }
  } catch (const Error&) {
    // The caller has gone, or is not one of the hosts that are to call.
  }
  return false;
}

namespace {

namespace tcp = gloo::transport::tcp;

class Pair final : public PairBase {
 public:
  // The constructor ends the listening of gloo of 2022, which listens for each pair; later versions
  // listen for all pairs of a device.
  Pair(tcp::Context* context, tcp::Device* device, int other, std::chrono::milliseconds timeout,
       std::shared_ptr<PeerConnector> connector)
      : PairBase(context, device, other, timeout),
        connector_(std::move(connector)),
        own_(connector_->place().address, connector_->place().secret) {
    const std::lock_guard lock(m_);
    if (fd_ >= 0) {
      device_->unregisterDescriptor(fd_, this);
      ::close(std::exchange(fd_, -1));
    }
    state_ = INITIALIZING;
  }

  // The address goes to the other hosts through the store.
  [[nodiscard]] const tcp::Address& address() const override { return own_; }

  void connect(const std::vector<char>& bytes) override {
    const tcp::Address theirs(bytes);
    auto socket = connector_->connect(static_cast<std::size_t>(rank_),
                                      {.address = theirs.getSockaddr(), .secret = theirs.getSeq()});
    const std::lock_guard lock(m_);
    self_ = tcp::Address::fromSockName(socket.descriptor());
    peer_ = tcp::Address::fromPeerName(socket.descriptor());
    fd_ = socket.release();
    device_->registerDescriptor(fd_, EPOLLIN, this);
    changeState(CONNECTED);
  }

 private:
  std::shared_ptr<PeerConnector> connector_;
  tcp::Address own_;
};

class Context final : public ContextBase {
 public:
  Context(std::shared_ptr<tcp::Device> device, int own, int hosts,
          std::shared_ptr<PeerConnector> connector)
      : ContextBase(std::move(device), own, hosts), connector_(std::move(connector)) {}

  std::unique_ptr<gloo::transport::Pair>& createPair(int other) override {
    auto& pair = pairs_[static_cast<std::size_t>(other)];
    pair = std::make_unique<Pair>(this, device_.get(), other, getTimeout(), connector_);
    return pair;
  }

 private:
  std::shared_ptr<PeerConnector> connector_;
};

// Returns the attributes of a device that listens at any port of an address.
tcp::attr attributes_of(sockaddr_storage address) {
  const bool is_ipv4 = address.ss_family == AF_INET;
  // The port stands at the same place in both address types.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  static_cast<sockaddr_in*>(static_cast<void*>(&address))->sin_port = 0;
  tcp::attr attributes;
  attributes.ai_family = address.ss_family;
  attributes.ai_socktype = SOCK_STREAM;
  attributes.ai_protocol = 0;
  attributes.ai_addr = address;
  attributes.ai_addrlen = is_ipv4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  return attributes;
}

class Device final : public DeviceBase {
 public:
  Device(const sockaddr_storage& listens_at, std::shared_ptr<PeerConnector> connector)
      : DeviceBase(attributes_of(listens_at)), connector_(std::move(connector)) {}

  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override {
    return std::make_shared<Context>(shared_from_this(), rank, size, connector_);
  }

 private:
  std::shared_ptr<PeerConnector> connector_;
};

// An address for the listeners that gloo insists on: a random one of the loopback, which no other
// machine reaches, and which nobody on this machine finds in the moments until they are closed.
sockaddr_storage out_of_reach() {
  constexpr std::uint32_t kHosts = 0x00ff'fffe;
  std::random_device random;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl((std::uint32_t{IN_LOOPBACKNET} << 24U) + 1 + random() % kHosts);
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof(address));
  return storage;
}

}  // namespace

std::shared_ptr<gloo::transport::Device> gloo_device(const PeerConnector::Options& options) {
  auto connector = std::make_shared<PeerConnector>(options);
  try {
    return std::make_shared<Device>(out_of_reach(), connector);
  } catch (const std::exception&) {
    // The loopback is down.
    return std::make_shared<Device>(connector->place().address, connector);
  }
}

}  // namespace rubato::hosts_detail
