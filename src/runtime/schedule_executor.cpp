#include <algorithm>
#include <utility>

#include <rubato/collective/kernels.hpp>
#include <rubato/core/check.hpp>
#include <rubato/runtime/schedule_executor.hpp>

namespace rubato {

namespace {

// Elements of a piece: fewer are not worth handing to another thread.
constexpr std::int64_t kPiece = std::int64_t{1} << 15;

bool overwritten(const Transfer& read, const Phase& phase) {
  return std::any_of(phase.begin(), phase.end(), [&](const Transfer& write) {
    return write.to == read.from && write.begin < read.end && read.begin < write.end;
  });
}

}  // namespace

template <class T>
ScheduleExecutor<T>::ScheduleExecutor(Schedule schedule, Workers& workers)
    : schedule_(std::move(schedule)), workers_(workers) {
  std::int64_t staging = 0;
  for (const Phase& phase : schedule_.phases) {
    PhasePlan& plan = plans_.emplace_back(plan_of(phase));
    std::int64_t set_aside = 0;
    for (const Piece& piece : plan.staged) set_aside += piece.part.size();
    staging = std::max(staging, set_aside);
  }
  staging_.resize(static_cast<std::size_t>(staging));
}

template <class T>
typename ScheduleExecutor<T>::PhasePlan ScheduleExecutor<T>::plan_of(const Phase& phase) {
  PhasePlan plan;
  std::int64_t staging = 0;
  for (const Transfer& transfer : phase) {
    const bool staged = overwritten(transfer, phase);
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
