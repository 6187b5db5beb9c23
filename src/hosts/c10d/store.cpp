// Two stores are used through c10d's interface: ServedStore speaks rubato's own protocol
// (docs/adr/0051-a-store-of-our-own.md), and c10d's TCPStore is that of torchrun. Store::wait()
// polls either with pauses that grow from 1 to 50 ms; ServedStore::awaited(), which serves gloo's
// waits, waits at the server for up to 250 ms at a time and calls look() in between. answered()
// turns every exception into StoreLost; a refusal while connecting is a plain Error instead,
// because another attempt would not change it.

#include "store.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"
#include "hosts/rendezvous/store_client.hpp"

namespace rubato::hosts_detail {

namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::uint8_t>;

std::string text_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

[[noreturn]] void fail_for_want_of(const std::string& key) {
  throw_error("the rendezvous has no '{}' within the time limit", key);
}

}  // namespace

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

ServedStore::ServedStore(const rendezvous_detail::StoreClient::Options& options)
    : Store(options.timeout), client_(options) {}

void ServedStore::set(const std::string& key, const Bytes& value) {
  client_.set(key, text_of(value));
}

Bytes ServedStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  return bytes_of(client_.compare_set(key, text_of(expected), text_of(desired)));
}

std::optional<std::string> ServedStore::awaited(const std::string& key, milliseconds timeout) {
  constexpr milliseconds kLongestWait{250};
  const auto deadline = rendezvous_detail::Clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - rendezvous_detail::Clock::now());
    if (auto value = client_.get(key, std::clamp(left, milliseconds(0), kLongestWait)))
      return value;
    if (left <= kLongestWait) return std::nullopt;
    look();
  }
}

Bytes ServedStore::get(const std::string& key) {
  const auto value = awaited(key, getTimeout());
  if (!value) fail_for_want_of(key);
  return bytes_of(*value);
}

std::int64_t ServedStore::add(const std::string& key, std::int64_t number) {
  return client_.add(key, number);
}

bool ServedStore::check(const std::vector<std::string>& keys) {
  return std::ranges::all_of(
      keys, [this](const std::string& key) { return client_.get(key).has_value(); });
}

void ServedStore::wait(const std::vector<std::string>& keys) {
  wait(keys, getTimeout());
}

void ServedStore::wait(const std::vector<std::string>& keys, const milliseconds& timeout) {
  const auto deadline = rendezvous_detail::Clock::now() + timeout;
  for (const std::string& key : keys) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - rendezvous_detail::Clock::now());
    if (!awaited(key, left)) fail_for_want_of(key);
  }
}

bool ServedStore::deleteKey(const std::string& key) {
  throw_error("a rendezvous does not delete keys such as '{}'", key);
}

std::int64_t ServedStore::getNumKeys() {
  throw Error("a rendezvous does not count its keys");
}

c10::intrusive_ptr<::c10d::Store> ServedStore::clone() {
  return c10::intrusive_ptr<::c10d::Store>::unsafe_reclaim_from_nonowning(this);
}

namespace {

constexpr milliseconds kShortestPause{1};
constexpr milliseconds kLongestPause{50};

// Connects to torchrun's store.
c10::intrusive_ptr<::c10d::Store> tcp_store(const C10dOptions& meeting, milliseconds timeout) {
  ::c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(meeting.port);
  options.waitWorkers = false;
  options.timeout = timeout;
  auto store = c10::make_intrusive<::c10d::TCPStore>(meeting.address, options);
  // The first wait tells the connection how long an answer may take, and proves that a store
  // answers.
  store->set("rubato", bytes_of("rubato"));
  store->wait({"rubato"}, timeout);
  return store;
}

}  // namespace

template <class Call>
auto Store::answered(const Call& call) {
  try {
    return call();
  } catch (const rendezvous_detail::Refused& refused) {
    throw StoreLost(fmt::format("the {} refuses: {}", name_, refused.what()));
  } catch (const std::exception& error) {
    throw StoreLost(fmt::format("the {} does not answer: {}", name_, reason_of(error)));
  }
}

Store::Store(const C10dOptions& meeting, const std::string& prefix, milliseconds timeout)
    : name_(fmt::format("rendezvous {}:{}", meeting.address, meeting.port)) {
  try {
    c10::intrusive_ptr<::c10d::Store> store;
    if (meeting.is_tcp_store) {
      store = tcp_store(meeting, timeout);
    } else {
      store = served_ = c10::make_intrusive<ServedStore>(
          rendezvous_detail::StoreClient::Options{.host = meeting.address,
                                                  .port = meeting.port,
                                                  .token = meeting.token,
                                                  .timeout = timeout});
    }
    prefixed_ = c10::make_intrusive<::c10d::PrefixStore>(prefix, std::move(store));
  } catch (const rendezvous_detail::Refused& refused) {
    // The server is there; trying again would not change its answer.
    throw_error("cannot reach the {}: {}", name_, refused.what());
  } catch (const std::exception& error) {
    throw StoreLost(fmt::format("cannot reach the {}: {}", name_, reason_of(error)));
  }
}

void Store::attend(std::function<void()> look) {
  if (served_) served_->attend(std::move(look));
}

bool Store::put(const std::string& key, const std::string& value) {
  return replace(key, "", value);
}

bool Store::replace(const std::string& key, const std::string& expected, const std::string& value) {
  return answered([&] {
    return prefixed_->compareSet(key, bytes_of(expected), bytes_of(value)) == bytes_of(value);
  });
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
    if (served_) served_->look();
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace rubato::hosts_detail
