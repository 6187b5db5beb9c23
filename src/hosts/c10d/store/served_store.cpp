#include "served_store.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato::c10d_hosts_detail {

namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::uint8_t>;

std::string text_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

[[noreturn]] void fail_for_want_of(const std::string& key) {
  throw Error(fmt::format("the rendezvous has no '{}' within the time limit", key));
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
  constexpr milliseconds kBetweenLooks{250};
  const auto deadline = rendezvous_detail::Clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - rendezvous_detail::Clock::now());
    if (auto value = client_.get(key, std::clamp(left, milliseconds(0), kBetweenLooks)))
      return value;
    if (left <= kBetweenLooks) return std::nullopt;
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
  throw Error(fmt::format("a rendezvous does not delete keys such as '{}'", key));
}

std::int64_t ServedStore::getNumKeys() {
  throw Error("a rendezvous does not count its keys");
}

}  // namespace rubato::c10d_hosts_detail
