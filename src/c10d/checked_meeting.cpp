#include "c10d/checked_meeting.hpp"

#include <cmath>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

namespace rubato::c10d_hosts_detail {

namespace {

constexpr std::chrono::milliseconds kLeastTimeout = std::chrono::seconds(1);

}  // namespace

void check_meeting(const C10dOptions& options) {
  if (options.count < 1 || options.count > kMaxHosts) {
    throw Error(fmt::format("{} hosts; accepted: 1 to {}", options.count, kMaxHosts));
  }
  if (options.rank < 0 || options.rank >= options.count) {
    throw Error(fmt::format("host {} of {} hosts; accepted: 0 to one less than there are",
                            options.rank, options.count));
  }
  if (options.port < 1 || options.port > kMaxPort) {
    throw Error(fmt::format("the port {}; accepted: 1 to {}", options.port, kMaxPort));
  }
  if (!(options.weight > 0) || !std::isfinite(options.weight)) {
    throw Error(fmt::format("the weight {}; accepted: a number above 0", options.weight));
  }
  if (options.timeout < kLeastTimeout) {
    throw Error(
        fmt::format("a time limit of {} ms; accepted: at least 1 s", options.timeout.count()));
  }
}

}  // namespace rubato::c10d_hosts_detail
