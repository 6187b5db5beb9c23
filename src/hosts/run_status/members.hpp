#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/loop/hosts.hpp>

namespace rubato::c10d_hosts_detail {

/// The number of a host: it was the so-manieth to come to the run, from 1.
using HostNumber = std::int64_t;
/// No number of a host or a generation is larger.
inline constexpr std::int64_t kMostNumbers = std::int64_t{1} << 40U;

/// Hosts that one cannot reach, each with a sentence that says so.
using Cuts = std::map<HostNumber, std::string>;

/// What a host brings along when it wants to be in the next generation.
struct Here {
  HostStanding standing{};
  Cuts cuts{};

  friend bool operator==(const Here&, const Here&) = default;
};

struct Member {
  HostNumber host = 0;
  HostStanding standing{};

  friend bool operator==(const Member&, const Member&) = default;
};

/// The hosts of a generation, by rank.
struct Members {
  /// From 1; 0 while there is none.
  std::int64_t generation = 0;
  std::vector<Member> hosts{};
  /// All hosts with a lower number take part, or never will under that number.
  HostNumber first_open = 1;
  /// Those from it on that never will.
  std::set<HostNumber> out{};
  /// Those for which there was no room, and who may have some in the next generation.
  std::set<HostNumber> passed{};
  /// Those of the generation before that are left out, as they and a host of this one do not reach
  /// each other, and the sentence that says so.
  Cuts cut_off{};

  [[nodiscard]] bool contains(HostNumber host) const {
    return std::ranges::find(hosts, host, &Member::host) != hosts.end();
  }

  friend bool operator==(const Members&, const Members&) = default;
};

/// How a run has ended for all its hosts.
enum class RunEnd { finished, paused };

/// What follows a generation: the next one, or the end. It is put into the store once, so that all
/// hosts have the same answer.
using Turn = std::variant<Members, RunEnd>;

/// Of a standing: the number of steps, "none", or either behind "finished ".
[[nodiscard]] std::string text_of(const HostStanding& standing);
/// Throws Error for what is no such text.
[[nodiscard]] HostStanding parse_standing(std::string_view text);

/// As JSON.
[[nodiscard]] std::string here_text(const Here& here);
/// Throws Error for what is no such text.
[[nodiscard]] Here parse_here(std::string_view text);

/// What the turns of a run are signed with: of its token, and of the run, so that what is signed is
/// of no use in another one.
[[nodiscard]] std::string signing_key(std::string_view token, std::string_view run);

/// As JSON, and behind it in a line of its own the signature of who knows the key.
[[nodiscard]] std::string signed_text(const Members& members, std::string_view key);
/// Of an end that takes the place of a generation.
[[nodiscard]] std::string signed_text(RunEnd end, std::int64_t generation, std::string_view key);
/// Throws Error where the text is none of these, is of another generation, or the signature is of
/// another key: that of another token.
[[nodiscard]] Turn parse_turn(std::string_view text, std::int64_t generation, std::string_view key);

}  // namespace rubato::c10d_hosts_detail
