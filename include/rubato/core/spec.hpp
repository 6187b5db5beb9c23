#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/number.hpp>

namespace rubato {

/// A choice by name, with arguments of its own: "cosine" or "cosine:total=40,floor=0.01".
///
/// Whoever knows the choice reads the arguments it takes and then calls finish(), which rejects the
/// ones that nobody read. All errors name the choice and the argument. Arguments of no choice have
/// an empty name (":core=3,step=100"), and then errors name the argument alone.
class Spec {
 public:
  /// Throws Error for an argument without a name or a value, and for one given twice.
  explicit Spec(std::string_view text);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has(std::string_view key) const;

  /// The value of an argument, or `fallback` where it is not given. Throw Error for a value that is
  /// not of the kind or out of its range.
  [[nodiscard]] double real(std::string_view key, double fallback, const RealRange& range);
  [[nodiscard]] std::int64_t whole(std::string_view key, std::int64_t fallback, std::int64_t min,
                                   std::int64_t max);
  /// "true" or "false".
  [[nodiscard]] bool flag(std::string_view key, bool fallback);
  [[nodiscard]] std::string text(std::string_view key, std::string_view fallback);
  /// Numbers with '/' between them; empty where the argument is not given.
  [[nodiscard]] std::vector<double> reals(std::string_view key, const RealRange& range);
  [[nodiscard]] std::vector<std::int64_t> wholes(std::string_view key, std::int64_t min,
                                                 std::int64_t max);

  /// Throws Error when the argument is not given.
  void require(std::string_view key, std::string_view example) const;
  /// Throws Error where the argument is given: `why` says with what it does nothing, and what is
  /// accepted.
  void refuse(std::string_view key, std::string_view why) const;
  /// Throws Error for an argument that was not read, with the nearest of those that were asked for.
  void finish() const;
  /// Throws Error about the value of an argument: what is wrong with it, and what is accepted.
  [[noreturn]] void reject(std::string_view key, std::string_view message) const;

 private:
  struct Argument {
    std::string key;
    std::string value;
  };

  const std::string* find(std::string_view key);
  template <class T, class Parse>
  [[nodiscard]] std::vector<T> numbers(std::string_view key, const Parse& parse);
  // The name, before a message.
  [[nodiscard]] std::string place() const;

  std::string name_;
  std::vector<Argument> arguments_;
  std::vector<std::string> known_;
};

// The ranges that most arguments have.
inline constexpr RealRange kAnyReal{-1e300, 1e300, true, true, "a number"};
inline constexpr RealRange kPositive{0, 1e300, false, true, "a number greater than 0"};
inline constexpr RealRange kNotNegative{0, 1e300, true, true, "a number of at least 0"};
inline constexpr RealRange kBelowOne{0, 1, true, false, "a number from 0 to below 1"};
inline constexpr RealRange kShare{0, 1, true, true, "a number from 0 to 1"};

}  // namespace rubato
