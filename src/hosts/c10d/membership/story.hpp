#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "hosts/run_status/members.hpp"

namespace rubato::c10d_hosts_detail {

/// How one generation followed another one, in a line for people.
[[nodiscard]] std::string story_of(const Members& before, const Members& now,
                                   std::string_view reason, std::chrono::duration<double> took);

}  // namespace rubato::c10d_hosts_detail
