// Decides how a step is computed, from the options and the rule, and how much memory that needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/limits.hpp"
#include "loop/runtime/host_sum.hpp"
#include "step_engine.hpp"

namespace rubato {

/// Sizes that are known before a training makes allocations that grow with them.
struct TrainingSizes {
  /// Values of the model: its parameters, and the averaged values after their gradients.
  std::size_t parameters = 0;
  std::size_t buffers = 0;
  /// The squares of minibatches' gradients, if the optimizer needs them: as many as parameters.
  std::size_t squares = 0;
  std::size_t value_bytes = sizeof(float);
  /// The bytes of a sample, as it is passed to the model.
  std::size_t sample_bytes = 0;
  std::int64_t minibatch = 1;
  /// The largest number of minibatches that a thread computes in one pass
  /// (Objective::minibatches_at_once()).
  std::int64_t at_once = 1;
  /// The minibatches of the largest step, and the cores on which it runs; with several hosts, the
  /// totals.
  std::int64_t minibatches = 1;
  std::int64_t cores = 1;
  int threads = 1;
  std::string_view reducer = "auto";
  /// The buffers that the reducer keeps at once, if buffers_of() does not know it.
  std::optional<std::int64_t> reducer_buffers{};
  /// The values that parts of a step need for each parameter (PartNeeds).
  int optimizer_values = 0;
  int optimizer_scratch = 0;
  /// True if a copy of the state is kept while the weights that are tested replace those that steps
  /// change.
  bool copies_state = false;
  /// True if the gradients of two steps of one minibatch each are kept, to compare them.
  bool gradient_pair = false;
  /// True if the optimizer's metric is read in every step, to measure gradients in it.
  bool metric = false;
  /// The bytes that the objective allocates for itself (Objective::step_bytes()).
  std::size_t objective_bytes = 0;
  /// This host's part of the largest step, if several hosts train.
  std::optional<HostLoad> host{};
  /// True if an OpenBLAS multiplies matrices.
  bool openblas = false;

  /// The number of values in a leaf of the sum.
  [[nodiscard]] std::size_t leaf_values() const { return parameters + buffers + squares; }

  // The following are numbers of this host, which sums its subtrees one after the other.

  /// The largest number of leaves in a sum, at least 1.
  [[nodiscard]] std::int64_t leaves_at_once() const;
  [[nodiscard]] std::int64_t busy_cores() const;
};

/// The least memory that a training needs, in bytes. It does not contain the memory of forward and
/// backward passes, which is not known in advance.
struct TrainingMemory {
  std::int64_t gradient_buffers = 0;
  double gradient_buffer_bytes = 0;
  double optimizer_bytes = 0;
  double metric_bytes = 0;
  /// The minibatches being computed, and the replicas' own buffers.
  double thread_bytes = 0;
  double pair_bytes = 0;
  /// Parameters, buffers and what the optimizer remembers, once more.
  double copy_bytes = 0;
  double objective_bytes = 0;
  /// Messages to and from the other hosts.
  double host_bytes = 0;
  /// Addresses that the BLAS reserves for matrix products, of which it uses few. An OpenBLAS that
  /// does not get them asks again endlessly, so the failure would never be reported.
  double blas_addresses = 0;

  /// The sum of all memory; addresses are not included.
  [[nodiscard]] double bytes() const;
};
[[nodiscard]] TrainingMemory memory_of(const TrainingSizes& sizes);

/// Throws MemoryError, with the numbers, if the training cannot fit.
void require_training_memory(const TrainingSizes& sizes, const MemoryLimit& limit = memory_limit());

/// Returns the options of group 0, which has the parameters that no group takes, and of the groups.
[[nodiscard]] std::vector<GroupOptions> group_options(std::span<const ParameterGroup> groups);

/// Returns whether the norms of minibatches are needed.
[[nodiscard]] bool takes_norms(const Rule& rule, const TrainOptions& options);

/// Returns the largest number of minibatches that an evaluator computes in one pass: 1 if each
/// result is needed separately, as it is where their gradients are squared.
[[nodiscard]] std::int64_t most_at_once(const Objective& objective, const Rule& rule,
                                        const TrainOptions& options, bool squares);

/// Returns the name of a reducer, or "auto". If an evaluator sums several minibatches itself, the
/// tree has little left to do, and other reducers would need each minibatch separately.
[[nodiscard]] std::string_view chosen_reducer(const TrainOptions& options, std::int64_t at_once);

/// The sizes of a leaf of the sum.
struct LeafSize {
  std::size_t parameters = 0;
  std::size_t buffers = 0;
  std::size_t value_bytes = 0;
};
/// Returns the sizes for require_training_memory().
[[nodiscard]] TrainingSizes training_sizes(const LeafSize& leaf, const StepEngineParts& parts,
                                           const TrainOptions& options, const StepRange& steps);

}  // namespace rubato
