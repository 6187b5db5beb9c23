#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rubato/loop/hosts.hpp>

namespace rubato::app {

/// Who gives its state to those that have none, in a group.
struct Giving {
  std::size_t from = 0;
  /// By rank.
  std::vector<bool> to{};

  [[nodiscard]] bool any() const;
};

/// The host that is furthest gives to those that have no state, or are more than a step behind: one
/// step is redone. Where nobody has a state the first host begins, and gives to all others.
[[nodiscard]] Giving giving_of(const ElasticHosts& hosts);

/// What the host that gives has as `bytes`, at those it gives to; nothing at the others. All hosts
/// of the group call it. Throws what Hosts::exchange() does.
[[nodiscard]] std::string given(Hosts& hosts, const Giving& giving, std::string bytes);

}  // namespace rubato::app
