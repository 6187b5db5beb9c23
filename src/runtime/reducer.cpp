#include <algorithm>
#include <array>
#include <string>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/runtime/reducer.hpp>

#include "reducers/chunked_tree_reducer.hpp"
#include "reducers/sharded_reducer.hpp"
#include "reducers/shared_sum_reducers.hpp"
#include "reducers/tbb_reducer.hpp"
#include "reducers/tree_reducer.hpp"

namespace rubato {

namespace {

constexpr std::array<std::string_view, 6> kNames{"tree",  "chunked-tree", "sharded",
                                                 "mutex", "atomic",       "tbb"};
constexpr std::size_t kExact = 3;  // of them, in front

}  // namespace

std::span<const std::string_view> reducer_names() {
  return kNames;
}

bool is_exact(std::string_view reducer) {
  const auto exact = reducer_names().first(kExact);
  return std::find(exact.begin(), exact.end(), reducer) != exact.end();
}

template <class T>
std::unique_ptr<Reducer<T>> make_reducer(std::string_view name, const ReducerSize& size,
                                         Workers& workers) {
  if (name == "auto" || name == "tree") return std::make_unique<TreeReducer<T>>(size);
  if (name == "chunked-tree") return std::make_unique<ChunkedTreeReducer<T>>(size);
  if (name == "sharded") return std::make_unique<ShardedReducer<T>>(size, workers);
  if (name == "mutex") return std::make_unique<MutexReducer<T>>(size);
  if (name == "atomic") return std::make_unique<AtomicReducer<T>>(size);
  if (name == "tbb") return std::make_unique<TbbReducer<T>>(size, workers);
  throw Error(unknown_name_message("reducer", name, kNames));
}

template std::unique_ptr<Reducer<float>> make_reducer<float>(std::string_view, const ReducerSize&,
                                                             Workers&);
template std::unique_ptr<Reducer<double>> make_reducer<double>(std::string_view, const ReducerSize&,
                                                               Workers&);

}  // namespace rubato
