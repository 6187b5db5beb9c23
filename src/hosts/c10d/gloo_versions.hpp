#pragma once

// Differences between the versions of gloo that rubato is built with: those of 2022 (Debian 12),
// 2023 (Debian 13) and 2025 (Ubuntu 26.04). Each class below is the base for one of rubato's own
// and has the same interface with all of them.

#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>

namespace rubato::hosts_detail {

/// A pair that survives errors on gloo's thread, where an exception would end the process. In gloo
/// of 2025, handleEvents() has the loop as a parameter.
template <class HandleEvents>
class GuardedPair;
template <class... Events>
class GuardedPair<void (gloo::transport::tcp::Pair::*)(Events...)>
    : public gloo::transport::tcp::Pair {
 public:
  using gloo::transport::tcp::Pair::Pair;

  void handleEvents(Events... events) override {
    try {
      gloo::transport::tcp::Pair::handleEvents(events...);
    } catch (const std::exception& error) {
      const std::lock_guard lock(m_);
      if (state_ == CONNECTED && ex_ == nullptr) signalException(error.what());
    }
  }
};
using PairBase = GuardedPair<decltype(&gloo::transport::tcp::Pair::handleEvents)>;

/// A context that makes all of its pairs with createPair(int). Since 2023 contexts connect their
/// pairs themselves, and in gloo of 2025 that of TCP makes them with a function that cannot be
/// overridden: there, the way of all other transports takes its place.
template <class ConnectAll>
class AskingContext : public gloo::transport::tcp::Context {
 public:
  using gloo::transport::tcp::Context::Context;
};
template <class General, class Store>
class AskingContext<void (General::*)(std::shared_ptr<Store>)>
    : public gloo::transport::tcp::Context {
 public:
  using gloo::transport::tcp::Context::Context;

  void createAndConnectAllPairs(std::shared_ptr<Store> store) override {
    this->General::createAndConnectAllPairs(std::move(store));
  }
};
template <class General>
auto connect_all() {
  if constexpr (requires { &General::createAndConnectAllPairs; }) {
    return &General::createAndConnectAllPairs;
  } else {
    return nullptr;
  }
}
using ContextBase = AskingContext<decltype(connect_all<gloo::transport::Context>())>;

/// A device whose pairs connect at once; gloo of 2025 also has devices that wait for the first use.
template <class Device>
class EagerDevice : public Device {
 public:
  explicit EagerDevice(const gloo::transport::tcp::attr& attributes) : Device(attributes, false) {}
  explicit EagerDevice(const gloo::transport::tcp::attr& attributes) requires
      std::is_constructible_v<Device, const gloo::transport::tcp::attr&> : Device(attributes) {}
};
using DeviceBase = EagerDevice<gloo::transport::tcp::Device>;

}  // namespace rubato::hosts_detail
