#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "members.hpp"

namespace rubato::c10d_hosts_detail {

/// What a host says last, as its sign of life.
inline constexpr const char* kLeft = "left";
/// From one sign of life to the next, and how long a host without one is waited for.
inline constexpr std::chrono::milliseconds kBeat{250};
inline constexpr std::chrono::milliseconds kSilence{5000};

// In the store, under the name that users give to the run:

/// Random, of whoever came first: another one is another store, with nothing of the old one in it.
inline constexpr const char* kStoreKey = "store";
/// Random, of whoever began: which run it is. Part of every signature.
inline constexpr const char* kRunKey = "run";

/// Before all keys of a run of that name.
[[nodiscard]] inline std::string run_prefix(const std::string& name) {
  return fmt::format("rubato/{}/elastic", name);
}

/// And the keys under that run.
class RunKeys {
 public:
  RunKeys() = default;
  explicit RunKeys(std::string run) : run_(std::move(run)) {}

  [[nodiscard]] const std::string& run() const { return run_; }

  /// How many hosts have come; the count that a host raised it to is its number.
  [[nodiscard]] std::string arrivals() const { return key("arrivals"); }
  /// A generation that there is, from which newer ones are found.
  [[nodiscard]] std::string newest() const { return key("newest"); }
  /// The process of a host; what it says of itself; that it knows the token.
  [[nodiscard]] std::string process(HostNumber host) const { return key("process", host); }
  [[nodiscard]] std::string greeting(HostNumber host) const { return key("greeting", host); }
  [[nodiscard]] std::string proof(HostNumber host) const { return key("proof", host); }
  /// Moves while the host lives; kLeft when it has gone.
  [[nodiscard]] std::string life(HostNumber host) const { return key("life", host); }
  /// How far it has come (HostProgress).
  [[nodiscard]] std::string progress(HostNumber host) const { return key("progress", host); }
  /// Why it may not take part.
  [[nodiscard]] std::string refusal(HostNumber host) const { return key("refusal", host); }
  /// The hosts of a generation, or that the run has ended before it. Put once.
  [[nodiscard]] std::string turn(std::int64_t generation) const { return key("turn", generation); }
  /// That a host of the generation before wants to be in this one, with its standing.
  [[nodiscard]] std::string here(std::int64_t generation, HostNumber host) const {
    return key(fmt::format("here/{}", generation), host);
  }
  /// The number of the host that writes the run, and in the next line the folder.
  [[nodiscard]] std::string writer() const { return key("writer"); }
  /// Why it cannot be written there; empty or missing while it can.
  [[nodiscard]] std::string failure() const { return key("failure"); }
  /// c10d's, for the connections of a generation.
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
