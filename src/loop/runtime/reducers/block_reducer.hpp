#pragma once

#include <cstdint>
#include <functional>

#include <rubato/loop/reducer.hpp>

namespace rubato {

/// A reducer that takes the sums of several leaves at once from whoever computes them so.
template <class T>
class BlockReducer : public Reducer<T> {
 public:
  /// Gives the buffer, leased from this reducer, that holds the sum of `count` leaves from `first`
  /// on, which are all those below a node of the step's SummationTree: in the order of that tree.
  using NextBlock = std::function<PartialSum<T>*(std::int64_t first, std::int64_t count)>;
  /// Reducer::reduce_core() in blocks of at most `most` leaves.
  virtual void reduce_blocks(std::int64_t core, const LeafShare& share, std::int64_t most,
                             const NextBlock& next) = 0;

 protected:
  using Reducer<T>::Reducer;
};

}  // namespace rubato
