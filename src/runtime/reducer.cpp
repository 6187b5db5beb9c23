#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/collective/schedule.hpp>
#include <rubato/collective/summation_tree.hpp>
#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/runtime/reducer.hpp>

#include "reducers/chunked_tree_reducer.hpp"
#include "reducers/schedule_reducer.hpp"
#include "reducers/sharded_reducer.hpp"
#include "reducers/shared_sum_reducers.hpp"
#include "reducers/tbb_reducer.hpp"
#include "reducers/tree_reducer.hpp"

namespace rubato {

namespace {

constexpr std::array<std::string_view, 3> kExact{"tree", "chunked-tree", "sharded"};
constexpr std::array<std::string_view, 3> kOthers{"mutex", "atomic", "tbb"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names(kExact.begin(), kExact.end());
  names.insert(names.end(), kOthers.begin(), kOthers.end());
  const auto algorithms = algorithm_names();
  names.insert(names.end(), algorithms.begin(), algorithms.end());
  return names;
}

constexpr std::string_view kAuto = "auto";

}  // namespace

std::span<const std::string_view> reducer_names() {
  static const std::vector<std::string_view> names = all_names();
  return names;
}

void require_reducer(std::string_view reducer) {
  Spec spec(reducer);
  if (contains(algorithm_names(), spec.name())) return require_algorithm(reducer);
  std::vector<std::string_view> accepted{kAuto};
  accepted.insert(accepted.end(), reducer_names().begin(), reducer_names().end());
  if (!contains(accepted, spec.name())) {
    throw Error(unknown_name_message("reducer", spec.name(), accepted));
  }
  spec.finish();
}

bool is_exact(std::string_view reducer) {
  return reducer == kAuto || contains(kExact, reducer);
}

void require_exact(std::string_view reducer) {
  require_reducer(reducer);
  if (is_exact(reducer)) return;
  throw Error(
      fmt::format("reducer {} does not give the same bits for every number of threads and cores; "
                  "accepted: auto, {}, or any without exactness (--exact=false)",
                  reducer, fmt::join(kExact, ", ")));
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
  const std::string_view name = reducer == kAuto ? auto_reducer(size, value_bytes) : reducer;
  const std::int64_t leaves = size.max_leaves;
  const std::int64_t in_work = std::min<std::int64_t>(threads, std::min(cores, leaves));
  if (name == "sharded" || name == "tbb") return leaves;
  if (name == "mutex" || name == "atomic") return 1 + in_work;
  if (name == "tree" || name == "chunked-tree") {
    return std::min(leaves, SummationTree(leaves).height() + in_work);
  }
  return std::min(leaves, cores + 1);
}

template <class T>
std::unique_ptr<Reducer<T>> make_reducer(std::string_view name, const ReducerSize& size,
                                         Workers& workers) {
  require_reducer(name);
  if (name == kAuto) return make_reducer<T>(auto_reducer(size, sizeof(T)), size, workers);
  if (name == "tree") return std::make_unique<TreeReducer<T>>(size);
  if (name == "chunked-tree") return std::make_unique<ChunkedTreeReducer<T>>(size);
  if (name == "sharded") return std::make_unique<ShardedReducer<T>>(size, workers);
  if (name == "mutex") return std::make_unique<MutexReducer<T>>(size);
  if (name == "atomic") return std::make_unique<AtomicReducer<T>>(size);
  if (name == "tbb") return std::make_unique<TbbReducer<T>>(size, workers);
  return std::make_unique<ScheduleReducer<T>>(name, size, workers);
}

template std::unique_ptr<Reducer<float>> make_reducer<float>(std::string_view, const ReducerSize&,
                                                             Workers&);
template std::unique_ptr<Reducer<double>> make_reducer<double>(std::string_view, const ReducerSize&,
                                                               Workers&);

}  // namespace rubato
