#include "training_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rubato/runtime/reducer.hpp>

namespace rubato {

double TrainingMemory::bytes() const {
  return static_cast<double>(gradient_buffers) * gradient_buffer_bytes + optimizer_bytes +
         thread_bytes;
}

TrainingMemory memory_of(const TrainingSizes& sizes) {
  const std::size_t values = sizes.parameters + sizes.buffers;
  const auto bytes = static_cast<double>(sizes.value_bytes);
  const std::int64_t cores = std::min(sizes.cores, sizes.minibatches);
  const auto busy_threads = static_cast<double>(std::min<std::int64_t>(sizes.threads, cores));
  // OpenBLAS's BUFFER_SIZE on x86-64 is at most 128 MiB, and it rounds and aligns generously.
  constexpr double kOpenBlasBuffer = 160e6;
  return {.gradient_buffers =
              sizes.reducer_buffers
                  ? *sizes.reducer_buffers
                  : buffers_of(sizes.reducer, {.values = values, .max_leaves = sizes.minibatches},
                               sizes.value_bytes, cores, sizes.threads),
          .gradient_buffer_bytes = static_cast<double>(values) * bytes,
          .optimizer_bytes = static_cast<double>(sizes.parameters) * bytes * sizes.optimizer_values,
          .thread_bytes = busy_threads * static_cast<double>(sizes.minibatch) *
                              static_cast<double>(sizes.sample_bytes) +
                          sizes.threads * static_cast<double>(sizes.buffers) * bytes,
          .blas_addresses = sizes.openblas ? busy_threads * kOpenBlasBuffer : 0};
}

void require_training_memory(const TrainingSizes& sizes, const MemoryLimit& limit) {
  const TrainingMemory memory = memory_of(sizes);
  const double blas = limit.of_addresses ? memory.blas_addresses : 0;
  require_memory(
      memory.bytes() + blas,
      fmt::format(
          "training needs {} gradient buffers of {} ({} minibatches in a step, reducer {}), "
          "{} for the optimizer{} and {} for {} threads with minibatches of {}, together",
          memory.gradient_buffers, bytes_text(memory.gradient_buffer_bytes), sizes.minibatches,
          sizes.reducer, bytes_text(memory.optimizer_bytes),
          blas > 0 ? fmt::format(", {} of addresses for OpenBLAS", bytes_text(blas)) : "",
          bytes_text(memory.thread_bytes), sizes.threads, sizes.minibatch),
      "smaller minibatches or steps, fewer threads or the reducer tree need less", limit);
}

}  // namespace rubato
