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

/// Hosts are numbered from 1 in the order in which they came to the run.
using HostNumber = std::int64_t;
/// Largest number of a host or a generation.
inline constexpr std::int64_t kMostNumbers = std::int64_t{1} << 40U;

/// Hosts that one cannot reach, each with a sentence that says why.
using Cuts = std::map<HostNumber, std::string>;

/// Entry of a host that wants to join the next generation.
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
  /// Generations are numbered from 1; 0 means that there is none yet.
  std::int64_t generation = 0;
  std::vector<Member> hosts{};
  /// All hosts with a lower number take part, or never will under that number.
  HostNumber first_open = 1;
  /// Hosts from first_open on that never will.
  std::set<HostNumber> out{};
  /// Hosts for which there was no room, and for which there may be some in the next generation.
  std::set<HostNumber> passed{};
  /// Hosts of the generation before that are left out because they and a host of this one do not
  /// reach each other, each with a sentence that says so.
  Cuts cut_off{};

  [[nodiscard]] bool contains(HostNumber host) const {
    return std::ranges::find(hosts, host, &Member::host) != hosts.end();
  }

  friend bool operator==(const Members&, const Members&) = default;
};

/// How a run has ended for all its hosts.
enum class RunEnd { finished, paused };

/// The successor of a generation: the next one, or the end. It is put into the store only once, so
/// that all hosts get the same answer.
using Turn = std::variant<Members, RunEnd>;

/// Text of a standing: the number of steps or "none", after "finished " if it has finished.
[[nodiscard]] std::string text_of(const HostStanding& standing);
/// Throws Error if the text is not a standing.
[[nodiscard]] HostStanding parse_standing(std::string_view text);

/// The entry as JSON.
[[nodiscard]] std::string here_text(const Here& here);
/// Throws Error if the text is not an entry.
[[nodiscard]] Here parse_here(std::string_view text);

/// Key with which the turns of a run are signed. It depends on the token and on the run, so that a
/// signature is of no use in another run.
[[nodiscard]] std::string signing_key(std::string_view token, std::string_view run);

/// The generation as JSON, and in the next line its signature with the key.
[[nodiscard]] std::string signed_text(const Members& members, std::string_view key);
/// The same for an end in place of a generation.
[[nodiscard]] std::string signed_text(RunEnd end, std::int64_t generation, std::string_view key);
/// Parses a turn. Throws Error if the text is not a turn, belongs to another generation, or is
/// signed with another key, that is with another token.
[[nodiscard]] Turn parse_turn(std::string_view text, std::int64_t generation, std::string_view key);

}  // namespace rubato::c10d_hosts_detail
