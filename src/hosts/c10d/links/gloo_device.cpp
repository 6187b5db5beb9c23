#include "gloo_device.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace rubato::c10d_hosts_detail {

namespace {

namespace tcp = gloo::transport::tcp;

class Pair final : public tcp::Pair {
 public:
  // The constructor ends the listening of gloo of 2022, which listens for each pair; later versions
  // listen for all pairs of a device.
  Pair(tcp::Context* context, tcp::Device* device, int other, std::chrono::milliseconds timeout,
       std::shared_ptr<PeerConnector> connector)
      : tcp::Pair(context, device, other, timeout),
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

  // Called on gloo's thread, where an exception would end the process.
  void handleEvents(int events) override {
    try {
      tcp::Pair::handleEvents(events);
    } catch (const std::exception& error) {
      const std::lock_guard lock(m_);
      if (state_ == CONNECTED && ex_ == nullptr) signalException(error.what());
    }
  }

 private:
  std::shared_ptr<PeerConnector> connector_;
  tcp::Address own_;
};

class Context final : public tcp::Context {
 public:
  Context(std::shared_ptr<tcp::Device> device, int own, int hosts,
          std::shared_ptr<PeerConnector> connector)
      : tcp::Context(std::move(device), own, hosts), connector_(std::move(connector)) {}

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

class Device final : public tcp::Device {
 public:
  Device(const sockaddr_storage& listens_at, std::shared_ptr<PeerConnector> connector)
      : tcp::Device(attributes_of(listens_at)), connector_(std::move(connector)) {}

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

}  // namespace rubato::c10d_hosts_detail
