#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runtime/elastic_hosts.hpp>

namespace rubato::c10d_hosts_detail {

/// The number of a host: it was the so-manieth to come to the run, from 1.
using HostNumber = std::int64_t;

struct Member {
  HostNumber host = 0;
  HostStanding standing{};

  friend bool operator==(const Member&, const Member&) = default;
};

/// The hosts of a generation, by rank.
struct Members {
  std::int64_t generation = 0;
  std::vector<Member> hosts{};
  /// All hosts with a lower number take part, or never will under that number.
  HostNumber first_open = 1;

  [[nodiscard]] bool contains(HostNumber host) const;

  friend bool operator==(const Members&, const Members&) = default;
};

/// Of a standing: the number of steps, "none", or either behind "finished ".
[[nodiscard]] std::string text_of(const HostStanding& standing);
/// Throws Error for what is no such text.
[[nodiscard]] HostStanding parse_standing(std::string_view text);

/// As JSON, and behind it in a line of its own the signature of who knows the key.
[[nodiscard]] std::string signed_text(const Members& members, std::string_view key);
/// Throws Error where the text is not that, is of another generation, or the signature is of
/// another key: that of another token.
[[nodiscard]] Members parse_members(std::string_view text, std::int64_t generation,
                                    std::string_view key);

}  // namespace rubato::c10d_hosts_detail
