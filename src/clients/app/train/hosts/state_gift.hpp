#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rubato/loop/hosts.hpp>

namespace rubato::app {

/// A state transfer in a group: the rank of the host that sends its state, and the hosts that need
/// it.
struct Giving {
  std::size_t from = 0;
  /// True for each rank that receives the state.
  std::vector<bool> to{};

  [[nodiscard]] bool any() const;
};

/// The host that has done the most steps sends its state to those that have none or are more than
/// one step behind; a single step is redone instead. If no host has a state, the first one begins
/// the run and sends its state to all others.
[[nodiscard]] Giving giving_of(const ElasticHosts& hosts);

/// Transfers `bytes` of the sender; returns them on the hosts that receive the state, and nothing
/// on the others. All hosts of the group must call it. Throws as Hosts::exchange() does.
[[nodiscard]] std::string given(Hosts& hosts, const Giving& giving, std::string bytes);

}  // namespace rubato::app
