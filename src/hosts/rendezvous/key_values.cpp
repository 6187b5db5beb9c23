#include "key_values.hpp"

#include <limits>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

namespace rubato::rendezvous_detail {

namespace {

// Approximate memory of an entry besides its key and value.
constexpr std::size_t kEntryBytes = 128;

}  // namespace

const std::string* KeyValues::find(std::string_view key) const {
  const auto entry = values_.find(key);
  return entry == values_.end() ? nullptr : &entry->second;
}

void KeyValues::set(std::string_view key, std::string_view value) {
  const auto entry = values_.find(key);
  const std::size_t before =
      entry == values_.end() ? 0 : kEntryBytes + key.size() + entry->second.size();
  const std::size_t after = bytes_ - before + kEntryBytes + key.size() + value.size();
  if (after > max_bytes_) {
    throw Error(fmt::format("the store is full; accepted: up to {} MiB until it is started anew",
                            max_bytes_ >> 20U));
  }
  if (entry == values_.end()) {
    values_.emplace(key, value);
  } else {
    entry->second = value;
  }
  bytes_ = after;
}

std::string KeyValues::compare_set(std::string_view key, std::string_view expected,
                                   std::string_view desired) {
  const std::string* const there = find(key);
  if (there == nullptr ? !expected.empty() : *there != expected) {
    return std::string(there == nullptr ? expected : *there);
  }
  set(key, desired);
  return std::string(desired);
}

std::int64_t KeyValues::add(std::string_view key, std::int64_t number) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::string* const there = find(key);
  std::int64_t sum = there == nullptr ? 0 : parse_whole(*there, Limits::min(), Limits::max());
  if (__builtin_add_overflow(sum, number, &sum)) {
    throw Error(fmt::format("{} added to {}; accepted: a sum of 63 bits", number, *there));
  }
  set(key, fmt::to_string(sum));
  return sum;
}

}  // namespace rubato::rendezvous_detail
