#include "schedule_executor.hpp"

#include <algorithm>
#include <utility>

#include <rubato/numbers/sums.hpp>

#include "base/core/check.hpp"

namespace rubato {

namespace {

// Elements of a piece: fewer are not worth handing to another thread.
constexpr std::int64_t kPiece = std::int64_t{1} << 15;

// The writes of a phase, sorted by rank.
class Writes {
 public:
  explicit Writes(const TransferPhase& phase) : by_rank_(phase) {
    std::sort(by_rank_.begin(), by_rank_.end(),
              [](const Transfer& a, const Transfer& b) { return a.to < b.to; });
  }

  /// Returns whether the phase overwrites the source of `read`.
  [[nodiscard]] bool overwrite(const Transfer& read) const {
    const auto first =
        std::lower_bound(by_rank_.begin(), by_rank_.end(), read.from,
                         [](const Transfer& write, Rank rank) { return write.to < rank; });
    const auto last = std::find_if(first, by_rank_.end(),
                                   [&](const Transfer& write) { return write.to != read.from; });
    return std::any_of(first, last, [&](const Transfer& write) {
      return write.begin < read.end && read.begin < write.end;
    });
  }

 private:
  std::vector<Transfer> by_rank_;
};

}  // namespace

template <class T>
ScheduleExecutor<T>::ScheduleExecutor(Schedule schedule, Workers& workers)
    : schedule_(std::move(schedule)), workers_(workers) {
  for (const TransferPhase& phase : schedule_.phases) plans_.push_back(plan_of(phase));
  staging_.resize(static_cast<std::size_t>(staging_of(schedule_)));
}

template <class T>
std::int64_t ScheduleExecutor<T>::staging_of(const Schedule& schedule) {
  std::int64_t most = 0;
  for (const TransferPhase& phase : schedule.phases) {
    const Writes writes(phase);
    std::int64_t set_aside = 0;
    for (const Transfer& transfer : phase) {
      if (writes.overwrite(transfer)) set_aside += transfer.size();
    }
    most = std::max(most, set_aside);
  }
  return most;
}

template <class T>
typename ScheduleExecutor<T>::PhasePlan ScheduleExecutor<T>::plan_of(const TransferPhase& phase) {
  PhasePlan plan;
  const Writes writes(phase);
  std::int64_t staging = 0;
  for (const Transfer& transfer : phase) {
    const bool staged = writes.overwrite(transfer);
    for (std::int64_t begin = transfer.begin; begin < transfer.end; begin += kPiece) {
      Piece piece{.part = transfer};
      piece.part.begin = begin;
      piece.part.end = std::min(begin + kPiece, transfer.end);
      if (staged) {
        piece.staged = staging;
        staging += piece.part.size();
        plan.staged.push_back(piece);
      }
      plan.all.push_back(piece);
    }
  }
  return plan;
}

template <class T>
void ScheduleExecutor<T>::run(std::span<T* const> arrays) {
  RUBATO_CHECK(arrays.size() == static_cast<std::size_t>(schedule_.ranks),
               "every rank has an array");
  for (const PhasePlan& plan : plans_) {
    workers_.for_each(static_cast<std::int64_t>(plan.staged.size()), [&](std::int64_t i, int) {
      set_aside(plan.staged[static_cast<std::size_t>(i)], arrays);
    });
    workers_.for_each(static_cast<std::int64_t>(plan.all.size()), [&](std::int64_t i, int) {
      deliver(plan.all[static_cast<std::size_t>(i)], arrays);
    });
  }
}

template <class T>
void ScheduleExecutor<T>::set_aside(const Piece& piece, std::span<T* const> arrays) {
  const T* const from = arrays[static_cast<std::size_t>(piece.part.from)] + piece.part.begin;
  std::copy_n(from, piece.part.size(), staging_.data() + piece.staged);
}

template <class T>
void ScheduleExecutor<T>::deliver(const Piece& piece, std::span<T* const> arrays) {
  const auto size = static_cast<std::size_t>(piece.part.size());
  const T* const from = piece.staged == kNotStaged
                            ? arrays[static_cast<std::size_t>(piece.part.from)] + piece.part.begin
                            : staging_.data() + piece.staged;
  T* const to = arrays[static_cast<std::size_t>(piece.part.to)] + piece.part.begin;
  if (piece.part.kind == TransferKind::copy) {
    std::copy_n(from, size, to);
  } else {
    add(std::span(to, size), std::span(from, size));
  }
}

template class ScheduleExecutor<float>;
template class ScheduleExecutor<double>;

}  // namespace rubato
