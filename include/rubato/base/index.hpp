#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <ostream>

namespace rubato {

/// An index that cannot be mistaken for an index of another kind, or for a count.
template <class Tag>
class Index {
 public:
  constexpr Index() = default;
  constexpr explicit Index(std::int64_t value) : value_(value) {}

  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  /// The value for indexing a standard container; the index must not be negative.
  [[nodiscard]] constexpr std::size_t offset() const { return static_cast<std::size_t>(value_); }

  constexpr Index& operator++() {
    ++value_;
    return *this;
  }
  friend constexpr auto operator<=>(Index, Index) = default;
  friend std::ostream& operator<<(std::ostream& out, Index index) { return out << index.value_; }

 private:
  std::int64_t value_ = 0;
};

/// An emulated accelerator core within its step: 0 <= rank < cores of the step.
using CoreRank = Index<struct CoreRankTag>;
/// A minibatch within its epoch.
using MinibatchIndex = Index<struct MinibatchIndexTag>;
/// A row of the trace, counted from the start of the trace; it keeps counting when the trace is
/// held or cycled beyond its end.
using StepIndex = Index<struct StepIndexTag>;
/// An epoch, counted from the start of the trace.
using EpochIndex = Index<struct EpochIndexTag>;

}  // namespace rubato
