#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rubato/loop/workers.hpp>

#include "numbers/collective/schedule.hpp"

namespace rubato {

/// Executes a schedule on arrays in memory, one for each rank.
///
/// Each phase is one parallel loop over pieces of its transfers, or two: values that a phase both
/// reads and overwrites at a rank (as when two ranks exchange whole arrays) are first copied to a
/// staging area. Nothing waits within a loop, so the ranks may outnumber the threads by any factor.
/// A run allocates nothing.
///
/// T is float or double.
template <class T>
class ScheduleExecutor {
 public:
  /// `schedule` must be an all-reduce (find_fault()). `workers` must outlive the executor.
  ScheduleExecutor(Schedule schedule, Workers& workers);

  /// Sums the arrays: one for each rank, of the schedule's length, none overlapping another.
  void run(std::span<T* const> arrays);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

  /// The largest number of elements in the staging area, for which an executor of the schedule
  /// keeps memory.
  [[nodiscard]] static std::int64_t staging_of(const Schedule& schedule);

 private:
  static constexpr std::int64_t kNotStaged = -1;

  // A part of a transfer; `staged` is the place of its copy in the staging area.
  struct Piece {
    Transfer part;
    std::int64_t staged = kNotStaged;
  };
  struct PhasePlan {
    std::vector<Piece> staged;
    std::vector<Piece> all;
  };

  [[nodiscard]] static PhasePlan plan_of(const TransferPhase& phase);
  void set_aside(const Piece& piece, std::span<T* const> arrays);
  void deliver(const Piece& piece, std::span<T* const> arrays);

  Schedule schedule_;
  Workers& workers_;
  std::vector<PhasePlan> plans_;
  std::vector<T> staging_;
};

extern template class ScheduleExecutor<float>;
extern template class ScheduleExecutor<double>;

}  // namespace rubato
