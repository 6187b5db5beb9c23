#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/loop/hosts.hpp>

namespace rubato::hosts_detail {

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
enum class EndOfHosts { finished, paused };

/// The successor of a generation: the next one, or the end. It is put into the store only once, so
/// that all hosts get the same answer.
using Turn = std::variant<Members, EndOfHosts>;

/// Text of a standing: the number of steps or "none", after "finished " if it has finished.
[[nodiscard]] std::string text_of(const HostStanding& standing);
/// Throws Error if the text is not a standing.
[[nodiscard]] HostStanding parse_standing(std::string_view text);

/// The entry as JSON.
[[nodiscard]] std::string here_text(const Here& here);
/// Throws Error if the text is not an entry.
[[nodiscard]] Here parse_here(std::string_view text);

/// The host that writes a run, and the folder on its machine, as it has announced.
struct AnnouncedWriter {
  HostNumber host = 0;
  std::string folder{};
};
/// The number, and in the next line the folder.
[[nodiscard]] std::string text_of(const AnnouncedWriter& writer);
/// Empty if the text is not an announcement.
[[nodiscard]] std::optional<AnnouncedWriter> parse_writer(std::string_view text);

/// Key with which the turns of a run are signed. It depends on the token and on the run, so that a
/// signature is of no use in another run.
[[nodiscard]] std::string signing_key(std::string_view token, std::string_view run);

/// The generation as JSON, and in the next line its signature with the key.
[[nodiscard]] std::string signed_text(const Members& members, std::string_view key);
/// The same for an end in place of a generation.
[[nodiscard]] std::string signed_text(EndOfHosts end, std::int64_t generation,
                                      std::string_view key);
/// Parses a turn. Throws Error if the text is not a turn, belongs to another generation, or is
/// signed with another key, that is with another token.
[[nodiscard]] Turn parse_turn(std::string_view text, std::int64_t generation, std::string_view key);

/// Last sign of life of a host that leaves.
inline constexpr const char* kLeft = "left";
/// Interval between two signs of life, and the time for which a host without one is waited for.
inline constexpr std::chrono::milliseconds kHeartbeatInterval{250};
inline constexpr std::chrono::milliseconds kHeartbeatTimeout{5000};

// The keys below are in the store under the name that users give to the run.

/// A random id set by the first host; a new id means an empty, restarted store.
inline constexpr const char* kStoreKey = "store";
/// A random id of the run, set by the host that began it. Part of every signature.
inline constexpr const char* kRunKey = "run";

/// Prefix of all keys of a run of that name.
[[nodiscard]] inline std::string run_prefix(const std::string& name) {
  return fmt::format("rubato/{}/elastic", name);
}

/// The keys of one run under that prefix.
class RunKeys {
 public:
  RunKeys() = default;
  explicit RunKeys(std::string run) : run_(std::move(run)) {}

  [[nodiscard]] const std::string& run() const { return run_; }

  /// Number of hosts that have come; each host raises it, and the result is its number.
  [[nodiscard]] std::string arrivals() const { return key("arrivals"); }
  /// A generation that exists, from which newer ones are found.
  [[nodiscard]] std::string newest() const { return key("newest"); }
  /// The process of a host, its greeting, and the proof that it knows the token.
  [[nodiscard]] std::string process(HostNumber host) const { return key("process", host); }
  [[nodiscard]] std::string greeting(HostNumber host) const { return key("greeting", host); }
  [[nodiscard]] std::string proof(HostNumber host) const { return key("proof", host); }
  /// Sign of life that changes while the host lives; kLeft when it has gone.
  [[nodiscard]] std::string life(HostNumber host) const { return key("life", host); }
  /// Progress of the host (HostProgress).
  [[nodiscard]] std::string progress(HostNumber host) const { return key("progress", host); }
  /// Why the host may not take part.
  [[nodiscard]] std::string refusal(HostNumber host) const { return key("refusal", host); }
  /// The hosts of a generation, or the end of the run before it. Put only once.
  [[nodiscard]] std::string turn(std::int64_t generation) const { return key("turn", generation); }
  /// Entry by which a host of the generation before asks to join this one, with its standing.
  [[nodiscard]] std::string here(std::int64_t generation, HostNumber host) const {
    return key(fmt::format("here/{}", generation), host);
  }
  /// The host that writes the run (AnnouncedWriter).
  [[nodiscard]] std::string writer() const { return key("writer"); }
  /// Why it cannot be written there; empty or missing while it can.
  [[nodiscard]] std::string failure() const { return key("failure"); }
  /// Prefix for c10d's keys, for the connections of a generation.
  [[nodiscard]] std::string group(std::int64_t generation) const {
    return key("group", generation);
  }

 private:
  [[nodiscard]] std::string key(const char* name) const { return fmt::format("{}/{}", run_, name); }
  [[nodiscard]] std::string key(const std::string& name, std::int64_t number) const {
    return fmt::format("{}/{}/{}", run_, name, number);
  }

  std::string run_;
};

}  // namespace rubato::hosts_detail
