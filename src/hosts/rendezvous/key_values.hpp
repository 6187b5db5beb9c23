#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

namespace rubato::rendezvous_detail {

/// What a store holds. All that change it throw Error, and change nothing, where it would come to
/// hold more than it may.
class KeyValues {
 public:
  /// Of keys and values, and what each of them takes besides.
  explicit KeyValues(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Null where there is none.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  void set(std::string_view key, std::string_view value);
  /// Puts `desired` where `expected` is, or where nothing is if that is empty. Returns what is
  /// there then; where nothing is, `expected`.
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view desired);
  /// Adds to the number that is there, or to 0, and returns the sum. Throws Error where there is
  /// something else, or the sum is too large.
  std::int64_t add(std::string_view key, std::int64_t number);

 private:
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace rubato::rendezvous_detail
