#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/objective.hpp>

#include "libtorch/model/replica.hpp"
#include "libtorch/model/shared_state.hpp"

namespace rubato {

/// Collects the changes of the model's buffers by the minibatches of a step, and combines them
/// (BufferCombination) into the same bits whoever computes which minibatch. Changes of
/// floating-point buffers are summed by the tree, behind the gradients; those of integers here,
/// exactly.
///
/// T is float or double.
template <class T>
class StepBuffers {
 public:
  /// `state` must outlive this object.
  explicit StepBuffers(const SharedState& state, BufferUse use = BufferUse::combined);

  /// Adds an evaluator and returns its number, from 0. Called before anything is noted.
  int add_evaluator();

  /// Number of elements of the floating-point buffers.
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Called before the minibatches of a step, and before they are repeated.
  void begin();
  /// Called after forward of a minibatch: writes the changes of the floating-point buffers to
  /// `changes`, size() elements that are 0. Called by several threads at once, for different
  /// evaluators.
  void note(const Replica& replica, const Minibatch& minibatch, int evaluator,
            std::span<T> changes);

  /// Results of the noted minibatches that are not in the sums of changes and have to be sent to
  /// other hosts: the sums of integers, and buffers that take the value that the first minibatch
  /// left. begin() clears them.
  [[nodiscard]] std::size_t tally_bytes() const;
  void put_tally(std::span<std::byte> tally) const;
  /// Adds the tally of another host.
  void add_tally(std::span<const std::byte> tally);

  /// Updates the shared buffers when all minibatches have been noted; `sums` are the sums of their
  /// changes.
  void apply(std::span<const T> sums, std::int64_t minibatches);

 private:
  // Sums of what an evaluator's minibatches added to counters; on cache lines of its own.
  struct alignas(128) Sums {
    std::vector<std::int64_t> of_elements;
  };
  // The change of a step is the sum of changes, divided by `divisor` and multiplied by `factor`.
  struct Scaling {
    std::int64_t divisor = 1;
    double factor = 1;
  };

  struct Count {
    std::int64_t before = 0;
    std::int64_t raised = 0;
  };

  [[nodiscard]] Count count_of(std::size_t counter, std::span<const T> sums) const;
  [[nodiscard]] Scaling scaling_of(const BufferTreatment& treatment, std::int64_t minibatches,
                                   std::span<const T> sums) const;
  void apply_to_counters();

  // Sums over all evaluators here and the other hosts.
  [[nodiscard]] std::vector<std::int64_t> all_sums() const;
  // Calls `visit` with the bytes of each buffer that takes the value that the first minibatch left.
  template <class Visit>
  void visit_first(const Visit& visit) const;

  // Keeps the replica's buffers for the end of the step.
  void keep(const Replica& replica);
  void take_kept();

  const SharedState& state_;
  BufferUse use_;
  std::size_t size_;
  // End of each floating-point buffer, and beginning of each counter among the elements of all
  // counters.
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> counter_begins_;
  std::vector<Sums> evaluator_sums_;
  std::vector<std::int64_t> sums_;
  // Sums from other hosts.
  std::vector<std::int64_t> other_sums_;
  // Scaling of each floating-point buffer.
  std::vector<Scaling> scalings_;
  // Buffers that the first minibatch left, if any take its value; with BufferUse::local, those that
  // the last minibatch of core 0 left. One thread at a time writes them.
  bool keeps_buffers_ = false;
  // The first minibatch is among those noted.
  bool has_first_ = false;
  at::Tensor kept_buffers_;
  std::vector<at::Tensor> kept_counters_;
};

extern template class StepBuffers<float>;
extern template class StepBuffers<double>;

}  // namespace rubato
