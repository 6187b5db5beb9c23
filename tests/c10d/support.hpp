#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>

#include "support/free_port.hpp"

namespace rubato::test {

/// Of host `rank` of `count`, which meet in a store that `server` serves; a name for each run.
[[nodiscard]] C10dOptions options_at(const RendezvousServer& server, const std::string& run,
                                     int rank, int count);

/// Runs `host` for each of these, each on a thread of its own, and returns what they threw: "no
/// error" where they did not.
[[nodiscard]] std::vector<std::string> errors_of_hosts(
    const std::vector<C10dOptions>& hosts, const std::function<void(const C10dOptions&)>& host);

/// What they throw when they meet, and nothing more.
[[nodiscard]] std::vector<std::string> errors_of_meeting(const std::vector<C10dOptions>& hosts);

/// Gives `bytes` of `value` to all other hosts, and returns what those gave, by host.
[[nodiscard]] std::vector<std::vector<std::byte>> exchanged(Hosts& hosts, std::size_t bytes,
                                                            std::byte value);

}  // namespace rubato::test
