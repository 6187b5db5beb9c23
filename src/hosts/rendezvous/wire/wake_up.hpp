#pragma once

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"

namespace rubato::rendezvous_detail {

/// Ends poll() from another thread, once.
class WakeUp {
 public:
  WakeUp() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ >= 0) return;
    throw Error(
        fmt::format("cannot serve a rendezvous: {}", std::generic_category().message(errno)));
  }
  ~WakeUp() { close(descriptor_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Makes the descriptor readable from now on.
  void send() const {
    const std::uint64_t one = 1;
    RUBATO_CHECK(write(descriptor_, &one, sizeof(one)) == sizeof(one),
                 "an eventfd has room for the first number");
  }

 private:
  int descriptor_;
};

}  // namespace rubato::rendezvous_detail
