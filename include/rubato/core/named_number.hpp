#pragma once

#include <string>

namespace rubato {

/// A number and what it is called, for people and logs.
struct NamedNumber {
  std::string name{};
  double value = 0;

  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

}  // namespace rubato
