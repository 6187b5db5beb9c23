#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <rubato/runtime/reducer.hpp>

namespace rubato {

/// Makes a reducer of the user's own, for parameters of either type, as a value: a class derived
/// from Reducer, in the place of one of reducer_names().
///
/// What a training asks of it is what Reducer says. Its sum is checked after each step: that
/// finish_step() gives one, with every minibatch in it once and, where norms are wanted
/// (ReducerSize::norms), with all squares taken, which Reducer::add() and merge() see to. A sum in
/// which something is missing ends training with an Error; the step is as if it had not been.
struct OwnReducer {
  /// Names it in messages; one line. Binds a state where it is not reproducible.
  std::string name{};
  /// Whether its maker promises that every value, the loss and the squares are summed in the one
  /// order of all reproducible reducers: leaves that are neighbours are added, then sums that are
  /// neighbours, level by level, and one without a neighbour goes up as it is, so that six leaves
  /// are ((0+1)+(2+3))+(4+5), whatever cores they are on and in whatever order these come. Else the
  /// result may depend on who computes it, which TrainOptions::exact refuses. verify() finds a
  /// promise that is not kept.
  bool reproducible = false;
  std::function<std::unique_ptr<Reducer<float>>(const ReducerSize& size, Workers& workers)>
      of_float{};
  std::function<std::unique_ptr<Reducer<double>>(const ReducerSize& size, Workers& workers)>
      of_double{};
  /// As buffers_of(): the buffers that a step keeps at once, for the check that there is memory for
  /// them. Without it, all leaves.
  std::function<std::int64_t(const ReducerSize& size, std::int64_t cores, int threads)> buffers{};

  [[nodiscard]] explicit operator bool() const { return of_float || of_double; }
};

}  // namespace rubato
