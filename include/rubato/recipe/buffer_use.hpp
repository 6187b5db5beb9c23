#pragma once

#include <array>

#include <rubato/core/choice.hpp>

namespace rubato {

/// What becomes of a model's buffers (the running statistics of batch normalisation) in a step.
enum class BufferUse {
  /// Each minibatch begins with the buffers of before the step, and they move by what all
  /// minibatches make of them (BufferCombination): the same whoever computes which minibatch.
  combined,
  /// As with one process for each core: a core begins a step with the model's buffers, its
  /// minibatches go on one after the other from what the last one left, and those of core 0 are the
  /// model's afterwards. So PyTorch's DistributedDataParallel has it, which broadcasts the buffers
  /// of rank 0. The result depends on the number of cores, not on threads.
  local,
};

inline constexpr std::array<Choice<BufferUse>, 2> kBufferUses{
    {{BufferUse::combined, "combined"}, {BufferUse::local, "local"}}};

}  // namespace rubato
