#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

namespace rubato::rendezvous_detail {

/// The contents of a store. All functions that change it throw Error, and change nothing, if it
/// would exceed its limit.
class KeyValues {
 public:
  /// `max_bytes` limits keys and values, including the overhead of each entry.
  explicit KeyValues(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Null if there is no such key.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  void set(std::string_view key, std::string_view value);
  /// Replaces the value `expected` by `desired`; an empty `expected` stands for a missing key.
  /// Returns the value that is there afterwards, or `expected` if there is none.
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view desired);
  /// Adds to the number of the key, which begins at 0, and returns the sum. Throws Error if the
  /// value is not a number, or the sum is too large.
  std::int64_t add(std::string_view key, std::int64_t number);

 private:
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace rubato::rendezvous_detail
