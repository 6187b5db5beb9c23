// This file has the pool of buffers and the table of reducers. A pool takes a buffer from a
// lock-free stack of free ones (IndexStack); if that is empty, a counter gives the thread a slot
// that nobody has had, and the thread allocates its memory. kReducers has a row for each
// reproducible reducer, with its makers for both types; every other name is an all-reduce algorithm
// (schedule.hpp), which ScheduleReducer runs between the sums of the cores. docs/adr/0008 has the
// measurements from which auto_reducer() chooses.

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/reducer.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"
#include "numbers/collective/schedule.hpp"
#include "numbers/collective/summation_tree.hpp"
#include "reducers.hpp"

namespace rubato {

template <class T>
BufferPool<T>::BufferPool(std::size_t values, std::size_t max_buffers, std::size_t squares)
    : values_(values), squares_(squares), slots_(max_buffers), free_(max_buffers) {
  RUBATO_CHECK(max_buffers < 0xffffffff, "buffers are counted in 32 bits");
}

template <class T>
PartialSum<T>* BufferPool<T>::acquire(std::size_t overwritten) {
  PartialSum<T>& sum = take().sum;
  count_lease();
  std::ranges::fill(sum.values.subspan(overwritten), T{0});
  std::fill(sum.squares.begin(), sum.squares.end(), PartialSum<T>::kNotTaken);
  sum.scalars = {};
  return &sum;
}

template <class T>
void BufferPool<T>::release(PartialSum<T>* buffer) {
  leased_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a statistic
  free_.push(static_cast<std::uint32_t>(id_of(buffer)));
}

template <class T>
void BufferPool<T>::reclaim_all() {
  free_.clear();
  // Relaxed: no other thread runs here.
  leased_.store(0, std::memory_order_relaxed);
  for (std::uint32_t i = made_.load(std::memory_order_relaxed); i-- > 0;) free_.push(i);
}

template <class T>
SumId BufferPool<T>::id_of(const PartialSum<T>* buffer) const {
  // `sum` is the first member of a slot.
  return SumId{static_cast<std::uint32_t>(reinterpret_cast<const Slot*>(buffer) - slots_.data())};
}

template <class T>
typename BufferPool<T>::Slot& BufferPool<T>::take() {
  if (const auto index = free_.pop()) return slots_[*index];
  // Relaxed: nothing but the number is shared; the slot belongs to this thread until it is
  // released.
  const std::uint32_t index = made_.fetch_add(1, std::memory_order_relaxed);
  RUBATO_CHECK(index < slots_.size(), "no more buffers are alive than a step has leaves");
  Slot& slot = slots_[index];
  slot.memory.reset(static_cast<T*>(::operator new[](values_ * sizeof(T), kAlignment)));
  slot.squares = std::make_unique<double[]>(squares_);
  slot.sum.values = {slot.memory.get(), values_};
  slot.sum.squares = {slot.squares.get(), squares_};
  return slot;
}

template <class T>
void BufferPool<T>::count_lease() {
  // Relaxed: statistics, read after the threads have been joined.
  const std::int64_t now = leased_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::int64_t high = high_water_.load(std::memory_order_relaxed);
  while (high < now && !high_water_.compare_exchange_weak(high, now, std::memory_order_relaxed)) {
  }
}

template class BufferPool<float>;
template class BufferPool<double>;

namespace {

template <class T>
using Make = std::unique_ptr<Reducer<T>> (*)(const ReducerSize& size, Workers& workers);

template <class R, class T>
std::unique_ptr<Reducer<T>> make_of(const ReducerSize& size, [[maybe_unused]] Workers& workers) {
  if constexpr (std::is_constructible_v<R, const ReducerSize&, Workers&>) {
    return std::make_unique<R>(size, workers);
  } else {
    return std::make_unique<R>(size);
  }
}

struct ReducerRow {
  std::string_view name;
  std::string_view help;
  // False if it keeps only sums that have not been added to a neighbour yet.
  bool keeps_all_leaves;
  std::tuple<Make<float>, Make<double>> make;
};

template <template <class> class R>
constexpr ReducerRow reducer_row(std::string_view name, std::string_view help,
                                 bool keeps_all_leaves) {
  return {name, help, keeps_all_leaves, {make_of<R<float>, float>, make_of<R<double>, double>}};
}

// The reproducible reducers; the others are the all-reduce algorithms.
constexpr std::array<ReducerRow, 3> kReducers{
    reducer_row<TreeReducer>(
        "tree", "the combining tree: the core that comes second adds and climbs; same bits", false),
    reducer_row<ChunkedTreeReducer>(
        "chunked-tree",
        "a combining tree for each chunk of the values, so that threads share "
        "the work near the root; same bits",
        false),
    reducer_row<ShardedReducer>(
        "sharded",
        "keeps all leaves and sums them in one pass, each thread a part of the "
        "values; same bits",
        true)};

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kAutoHelp =
    "tree, sharded or chunked-tree: which of them suits the size of the model; same bits";

// Returns null for "auto" and the all-reduce algorithms.
const ReducerRow* row_of(std::string_view name) {
  const auto* const found =
      std::find_if(kReducers.begin(), kReducers.end(),
                   [name](const ReducerRow& reducer) { return reducer.name == name; });
  return found == kReducers.end() ? nullptr : found;
}

bool is_algorithm(std::string_view name) {
  const auto names = algorithm_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names = row_names(kReducers);
  const auto algorithms = algorithm_names();
  names.insert(names.end(), algorithms.begin(), algorithms.end());
  return names;
}

}  // namespace

std::span<const std::string_view> reducer_names() {
  static const std::vector<std::string_view> names = all_names();
  return names;
}

std::vector<Strategy> reducers() {
  const auto nothing = [](const auto&...) {};
  std::vector<Strategy> all{strategy_of(kAuto, kAutoHelp, nothing)};
  for (Strategy& reducer : strategies_of(kReducers, nothing)) all.push_back(std::move(reducer));
  return all;
}

void require_reducer(std::string_view reducer) {
  Spec spec(reducer);
  if (is_algorithm(spec.name())) return require_algorithm(reducer);
  if (spec.name() != kAuto && row_of(spec.name()) == nullptr) {
    std::vector<std::string_view> accepted{kAuto};
    accepted.insert(accepted.end(), reducer_names().begin(), reducer_names().end());
    throw Error(unknown_name_message("reducer", spec.name(), accepted));
  }
  spec.finish();
}

bool is_reproducible(std::string_view reducer) {
  return reducer == kAuto || row_of(reducer) != nullptr;
}

void require_reproducible(std::string_view reducer) {
  require_reducer(reducer);
  if (is_reproducible(reducer)) return;
  throw_error(
      "reducer {} does not give the same bits for every number of threads and cores; accepted: {}, "
      "{}, or any without exactness (--exact=false)",
      reducer, kAuto, fmt::join(row_names(kReducers), ", "));
}

std::string_view auto_reducer(const ReducerSize& size, std::size_t value_bytes) {
  constexpr std::size_t kCached = std::size_t{1} << 20;
  constexpr std::size_t kAllLeaves = std::size_t{1} << 30;
  const std::size_t leaf = size.values * value_bytes;
  if (leaf <= kCached) return "tree";
  return leaf <= kAllLeaves / static_cast<std::size_t>(size.max_leaves) ? "sharded"
                                                                        : "chunked-tree";
}

std::int64_t buffers_of(std::string_view reducer, const ReducerSize& size, std::size_t value_bytes,
                        std::int64_t cores, int threads) {
  const ReducerRow* const found =
      row_of(reducer == kAuto ? auto_reducer(size, value_bytes) : reducer);
  const std::int64_t leaves = size.max_leaves;
  if (found == nullptr) return std::min(leaves, cores + 1);
  const std::int64_t in_work = std::min<std::int64_t>(threads, std::min(cores, leaves));
  if (found->keeps_all_leaves) return leaves;
  return std::min(leaves, SummationTree(leaves).height() + in_work);
}

template <class T>
std::unique_ptr<Reducer<T>> make_reducer(std::string_view name, const ReducerSize& size,
                                         Workers& workers) {
  require_reducer(name);
  if (name == kAuto) return make_reducer<T>(auto_reducer(size, sizeof(T)), size, workers);
  if (const ReducerRow* const found = row_of(name)) {
    return std::get<Make<T>>(found->make)(size, workers);
  }
  return std::make_unique<ScheduleReducer<T>>(name, size, workers);
}

template std::unique_ptr<Reducer<float>> make_reducer<float>(std::string_view, const ReducerSize&,
                                                             Workers&);
template std::unique_ptr<Reducer<double>> make_reducer<double>(std::string_view, const ReducerSize&,
                                                               Workers&);

}  // namespace rubato
