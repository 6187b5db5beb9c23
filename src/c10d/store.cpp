#include "c10d/store.hpp"

#include <exception>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rubato/core/error.hpp>

#include "c10d/reason.hpp"

namespace rubato::c10d_hosts_detail {

namespace {

constexpr milliseconds kShortestPause{1};
constexpr milliseconds kLongestPause{50};
// For a store to end.
constexpr std::chrono::seconds kPatience{1};

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

c10::intrusive_ptr<::c10d::TCPStore> open_store(const StoreAddress& address, Store::Role role,
                                                milliseconds timeout) {
  ::c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(address.port);
  options.isServer = role == Store::Role::server;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    // The server is reached from within whatever its name is outside.
    return c10::make_intrusive<::c10d::TCPStore>(options.isServer ? "127.0.0.1" : address.host,
                                                 options);
  } catch (const std::exception& error) {
    throw StoreLost(
        fmt::format("cannot {} {}:{}: {}",
                    options.isServer ? "serve the rendezvous at" : "reach the rendezvous",
                    address.host, address.port, reason_of(error)));
  }
}

}  // namespace

template <class Call>
auto Store::answered(const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw StoreLost(fmt::format("the rendezvous {}:{} does not answer: {}", address_.host,
                                address_.port, reason_of(error)));
  }
}

Store::Store(const StoreAddress& address, Role role, const std::string& prefix,
             milliseconds timeout)
    : address_(address),
      store_(open_store(address, role, timeout)),
      prefixed_(c10::make_intrusive<::c10d::PrefixStore>(prefix, store_)) {
  // The first wait tells the connection how long an answer may take, and that it is a store's.
  answered([&] {
    store_->set("rubato", bytes_of("rubato"));
    store_->wait({"rubato"}, timeout);
  });
}

Store::~Store() {
  prefixed_.reset();
  // The server's thread may be stuck in a message that never ends, for ever.
  std::packaged_task<void()> end([store = std::move(store_)]() mutable { store.reset(); });
  const std::future<void> ended = end.get_future();
  std::thread thread(std::move(end));
  if (ended.wait_for(kPatience) == std::future_status::ready) {
    thread.join();
  } else {
    thread.detach();
  }
}

bool Store::put(const std::string& key, const std::string& value) {
  return answered(
      [&] { return prefixed_->compareSet(key, {}, bytes_of(value)) == bytes_of(value); });
}

void Store::set(const std::string& key, const std::string& value) {
  answered([&] { prefixed_->set(key, bytes_of(value)); });
}

std::optional<std::string> Store::find(const std::string& key) {
  return answered([&]() -> std::optional<std::string> {
    if (!prefixed_->check({key})) return std::nullopt;
    const std::vector<std::uint8_t> value = prefixed_->get(key);
    return std::string(value.begin(), value.end());
  });
}

std::int64_t Store::raise(const std::string& key) {
  return answered([&] { return prefixed_->add(key, 1); });
}

std::optional<std::string> Store::wait(const std::string& key, Clock::time_point deadline) {
  milliseconds pause = kShortestPause;
  while (true) {
    if (auto value = find(key)) return value;
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

int Store::port() const {
  return store_->getPort();
}

}  // namespace rubato::c10d_hosts_detail
