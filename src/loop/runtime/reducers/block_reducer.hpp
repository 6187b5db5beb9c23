#pragma once

#include <cstdint>
#include <functional>

#include <rubato/loop/reducer.hpp>

namespace rubato {

/// A reducer that accepts the sums of several leaves at once from callers that compute them so.
template <class T>
class BlockReducer : public Reducer<T> {
 public:
  /// Returns the buffer, leased from this reducer, that holds the sum of the `count` leaves
  /// beginning at `first`, which are all those below a node of the step's SummationTree, summed in
  /// the order of that tree.
  using NextBlock = std::function<PartialSum<T>*(std::int64_t first, std::int64_t count)>;
  /// Sums the share of a core as Reducer::reduce_core() does, in blocks of at most `most` leaves.
  virtual void reduce_blocks(std::int64_t core, const LeafShare& share, std::int64_t most,
                             const NextBlock& next) = 0;

 protected:
  using Reducer<T>::Reducer;
};

}  // namespace rubato
