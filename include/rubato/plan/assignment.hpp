#pragma once

#include <array>
#include <cstdint>

#include <rubato/core/choice.hpp>
#include <rubato/core/index.hpp>

namespace rubato {

/// How the minibatches of a step are given to its cores.
enum class Assignment {
  contiguous,  ///< each core one run, sizes differing by at most one, longer runs first
  strided,     ///< core r takes the step's minibatches r, r + cores, r + 2 cores, ...
};
inline constexpr std::array<Choice<Assignment>, 2> kAssignments{
    {{Assignment::contiguous, "contiguous"}, {Assignment::strided, "strided"}}};

/// The minibatches first, first + stride, ..., first + (count - 1) stride. One core's share of a
/// step; count 0 is an idle core.
struct MinibatchRun {
  MinibatchIndex first;
  std::int64_t count = 0;
  std::int64_t stride = 1;

  [[nodiscard]] constexpr MinibatchIndex operator[](std::int64_t i) const {
    return MinibatchIndex{first.value() + i * stride};
  }
  friend bool operator==(const MinibatchRun&, const MinibatchRun&) = default;
};

/// Core `core`'s share of a step of `minibatches` minibatches, the first of which is `first`, on
/// `cores` cores. The shares of all cores are disjoint and cover the step.
/// Requires 0 <= core < cores and minibatches >= 1.
[[nodiscard]] MinibatchRun share_of_core(MinibatchIndex first, std::int64_t minibatches,
                                         CoreRank core, std::int64_t cores, Assignment assignment);

/// How many cores of such a step have anything to do. They are the cores 0, 1, ..., busy - 1, under
/// either assignment. Requires minibatches >= 1 and cores >= 1.
[[nodiscard]] std::int64_t busy_cores(std::int64_t minibatches, std::int64_t cores);

}  // namespace rubato
