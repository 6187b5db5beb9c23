#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato::c10d_hosts_detail {

/// The message of an exception of c10d or gloo, in one line: without the source files before it and
/// the stack after it.
[[nodiscard]] inline std::string reason_of(const std::exception& error) {
  std::string_view text = error.what();
  text = text.substr(0, text.find('\n'));
  // "[../gloo/transport/tcp/pair.cc:598] Connection closed by peer"
  if (text.starts_with('[')) {
    const std::size_t end = text.find("] ");
    const std::string_view place = text.substr(0, end);
    if (end != std::string_view::npos && place.find(".cc:") != std::string_view::npos) {
      text.remove_prefix(end + 2);
    }
  }
  return std::string(text);
}

/// The error of a host that cannot listen where it is asked to.
[[nodiscard]] inline Error cannot_listen(const std::string& interface, std::string_view why) {
  return Error(
      fmt::format("cannot listen at '{}': {}; accepted: an address of this machine, or the name of "
                  "one of its network interfaces",
                  interface, why));
}

}  // namespace rubato::c10d_hosts_detail
