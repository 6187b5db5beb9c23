#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

/// Throws Error unless it can name something of the user's own: states and records store such
/// names, in lines.
inline void require_name(const std::string& name, std::string_view of) {
  if (!name.empty() && name.find_first_of("/\n") == std::string::npos) return;
  throw Error(fmt::format("a {} is called '{}'; accepted: a name of one line without /", of, name));
}

}  // namespace rubato
