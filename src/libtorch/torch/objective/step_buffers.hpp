#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/training_options.hpp>

#include "libtorch/model/replica/replica.hpp"
#include "libtorch/model/replica/shared_state.hpp"

namespace rubato {

/// What the minibatches of a step make of the model's buffers, and the step of them
/// (BufferCombination): the same bits whoever computes which minibatch. Changes of floating-point
/// buffers are summed by the tree, behind the gradients; those of integers here, exactly.
///
/// T is float or double.
template <class T>
class StepBuffers {
 public:
  /// `state` must outlive it.
  explicit StepBuffers(const SharedState& state, BufferUse use = BufferUse::combined);

  /// The number of one more who notes, from 0. Before anything is noted.
  int add_evaluator();

  /// Elements of the floating-point buffers.
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Before the minibatches of a step, and before they are done again.
  void begin();
  /// After forward of a minibatch: writes by how much it changed the floating-point buffers to
  /// `changes`, size() of them, which are 0. Called by several threads at once, for different
  /// evaluators.
  void note(const Replica& replica, const Minibatch& minibatch, int evaluator,
            std::span<T> changes);

  /// What the noted minibatches left of which no sum of changes tells other hosts: the sums of
  /// integers, and buffers that become what the first minibatch left. begin() forgets it.
  [[nodiscard]] std::size_t tally_bytes() const;
  void put_tally(std::span<std::byte> tally) const;
  /// Of another host.
  void add_tally(std::span<const std::byte> tally);

  /// Brings the shared buffers up to date, when all minibatches have been noted: `sums` of their
  /// changes.
  void apply(std::span<const T> sums, std::int64_t minibatches);

 private:
  // Of counters, the sum of what an evaluator's minibatches added; on lines of its own.
  struct alignas(128) Sums {
    std::vector<std::int64_t> of_elements;
  };
  // A sum of changes becomes the step's change: divided by the first, times the second.
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

  // Of all evaluators here and of the other hosts.
  [[nodiscard]] std::vector<std::int64_t> all_sums() const;
  // Calls `visit` with the bytes of each buffer that becomes what the first minibatch left.
  template <class Visit>
  void visit_first(const Visit& visit) const;

  // Keeps them for the end of the step.
  void keep(const Replica& replica);
  void take_kept();

  const SharedState& state_;
  BufferUse use_;
  std::size_t size_;
  // Where each floating-point buffer ends, and where each counter begins among all of them.
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> counter_begins_;
  std::vector<Sums> evaluator_sums_;
  std::vector<std::int64_t> sums_;
  // Of other hosts.
  std::vector<std::int64_t> other_sums_;
  // Of each floating-point buffer.
  std::vector<Scaling> scalings_;
  // What the first minibatch left, where there are buffers that become that; what the last one of
  // core 0 left, with BufferUse::local. One thread at a time writes them.
  bool keeps_buffers_ = false;
  // Whether the first minibatch is among those noted.
  bool has_first_ = false;
  at::Tensor kept_buffers_;
  std::vector<at::Tensor> kept_counters_;
};

extern template class StepBuffers<float>;
extern template class StepBuffers<double>;

}  // namespace rubato
