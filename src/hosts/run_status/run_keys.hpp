#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "members.hpp"

namespace rubato::c10d_hosts_detail {

/// Last sign of life of a host that leaves.
inline constexpr const char* kLeft = "left";
/// Interval between two signs of life, and the time for which a host without one is waited for.
inline constexpr std::chrono::milliseconds kBeat{250};
inline constexpr std::chrono::milliseconds kSilence{5000};

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
  /// The number of the host that writes the run, and in the next line the folder.
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

}  // namespace rubato::c10d_hosts_detail
