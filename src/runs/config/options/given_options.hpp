#pragma once

#include <set>
#include <string>
#include <string_view>

namespace rubato {

/// The names of the options that a user gave, as opposed to those that only a configuration file
/// sets.
class GivenOptions {
 public:
  void add(std::string_view name) { names_.emplace(name); }
  [[nodiscard]] bool contains(std::string_view name) const { return names_.contains(name); }

  /// Always true: options are equal by their values, wherever these came from.
  friend bool operator==(const GivenOptions&, const GivenOptions&) { return true; }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace rubato
