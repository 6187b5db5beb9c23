#include "checked_meeting.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato::c10d_hosts_detail {

namespace {

constexpr std::chrono::milliseconds kLeastTimeout = std::chrono::seconds(1);

}  // namespace

void check_meeting(const C10dOptions& options) {
  if (options.count < 1 || options.count > kMaxHosts) {
    throw Error(fmt::format("{} hosts; accepted: 1 to {}", options.count, kMaxHosts));
  }
  if (options.rank < 0 || options.rank >= options.count) {
    throw Error(fmt::format("host {} of {} hosts; accepted: 0 to one less than the number of hosts",
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

ElasticOptions checked_elastic(ElasticOptions options) {
  C10dOptions& meeting = options.meeting;
  meeting.rank = 0;
  check_meeting(meeting);
  if (meeting.run.empty()) {
    throw Error(
        "hosts that come and go meet at host 0, which may go; accepted: a store that outlives all "
        "hosts, and a name for the run in it");
  }
  if (options.least < 1 || options.least > meeting.count) {
    throw Error(
        fmt::format("at least {} hosts; accepted: 1 to {}, the number that the run begins with",
                    options.least, meeting.count));
  }
  if (options.most < meeting.count || options.most > kMaxHosts) {
    throw Error(
        fmt::format("at most {} hosts; accepted: {}, the number that the run begins with, to {}",
                    options.most, meeting.count, kMaxHosts));
  }
  return options;
}

}  // namespace rubato::c10d_hosts_detail
