#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/system/memory.hpp"
#include "loop/runtime/host_sum.hpp"

namespace rubato {

/// Sizes that are known before a training allocates what grows with them.
struct TrainingSizes {
  /// Values of the model: parameters, and what is averaged behind their gradients.
  std::size_t parameters = 0;
  std::size_t buffers = 0;
  std::size_t value_bytes = sizeof(float);
  /// Of one sample, as it is given to the model.
  std::size_t sample_bytes = 0;
  std::int64_t minibatch = 1;
  /// Minibatches that a thread computes in one pass at most (Objective::minibatches_at_once()).
  std::int64_t at_once = 1;
  /// Minibatches of the largest step, and the cores it runs on; of several hosts, all of theirs.
  std::int64_t minibatches = 1;
  std::int64_t cores = 1;
  int threads = 1;
  std::string_view reducer = "auto";
  /// The buffers that it keeps at once, where it is none that buffers_of() knows.
  std::optional<std::int64_t> reducer_buffers{};
  /// What the optimizer remembers of each parameter (remembered_values()).
  int optimizer_values = 0;
  /// Whether the gradients of two steps of one minibatch each are kept, to compare them.
  bool gradient_pair = false;
  /// What the objective takes for itself (Objective::step_bytes()).
  std::size_t objective_bytes = 0;
  /// Where several hosts train: this one's part of the largest step.
  std::optional<HostLoad> host{};
  /// Whether matrix products are an OpenBLAS's.
  bool openblas = false;

  // Of this host, which sums one of its subtrees after the other.

  /// At least 1.
  [[nodiscard]] std::int64_t leaves_at_once() const;
  [[nodiscard]] std::int64_t busy_cores() const;
};

/// What a training needs at least, in bytes. What forward and backward passes need is not known
/// beforehand, and not in it.
struct TrainingMemory {
  std::int64_t gradient_buffers = 0;
  double gradient_buffer_bytes = 0;
  double optimizer_bytes = 0;
  /// The minibatches that are in work, and the replicas' own buffers.
  double thread_bytes = 0;
  double pair_bytes = 0;
  double objective_bytes = 0;
  /// What goes to the other hosts and comes from them.
  double host_bytes = 0;
  /// Addresses that the BLAS sets aside for matrix products, of which it uses little. An OpenBLAS
  /// that does not get them asks again without end, so that nobody would hear of it.
  double blas_addresses = 0;

  /// Of memory.
  [[nodiscard]] double bytes() const;
};
[[nodiscard]] TrainingMemory memory_of(const TrainingSizes& sizes);

/// Throws MemoryError, with the numbers, where that cannot fit.
void require_training_memory(const TrainingSizes& sizes, const MemoryLimit& limit = memory_limit());

}  // namespace rubato
