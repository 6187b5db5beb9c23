#include "training_memory.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/loop/reducer.hpp>

namespace rubato {

namespace {

// Describes the memory that only some trainings need.
std::string further_needs(const TrainingMemory& memory, bool addresses) {
  std::string text;
  const auto add = [&text](double bytes, std::string_view what) {
    if (bytes > 0) fmt::format_to(std::back_inserter(text), ", {} {}", bytes_text(bytes), what);
  };
  add(memory.pair_bytes, "for the gradients of two steps");
  add(memory.objective_bytes, "for the objective's own copies");
  add(memory.host_bytes, "for messages between hosts");
  if (addresses) add(memory.blas_addresses, "of addresses for OpenBLAS");
  return text;
}

}  // namespace

std::int64_t TrainingSizes::leaves_at_once() const {
  return host ? std::max<std::int64_t>(1, host->most_leaves) : minibatches;
}

std::int64_t TrainingSizes::busy_cores() const {
  return std::min(host ? host->cores : cores, leaves_at_once());
}

double TrainingMemory::bytes() const {
  return static_cast<double>(gradient_buffers) * gradient_buffer_bytes + optimizer_bytes +
         thread_bytes + pair_bytes + objective_bytes + host_bytes;
}

TrainingMemory memory_of(const TrainingSizes& sizes) {
  const std::size_t values = sizes.parameters + sizes.buffers;
  const auto bytes = static_cast<double>(sizes.value_bytes);
  const std::int64_t leaves = sizes.leaves_at_once();
  const std::int64_t cores = sizes.busy_cores();
  const auto busy_threads = static_cast<double>(std::min<std::int64_t>(sizes.threads, cores));
  // "auto" selects by the size of the whole step.
  const std::string_view reducer =
      sizes.reducer == "auto"
          ? auto_reducer({.values = values, .max_leaves = sizes.minibatches}, sizes.value_bytes)
          : sizes.reducer;
  const double parameter_bytes = static_cast<double>(sizes.parameters) * bytes;
  // OpenBLAS's BUFFER_SIZE on x86-64 is at most 128 MiB, and it rounds and aligns generously.
  constexpr double kOpenBlasBuffer = 160e6;
  return {.gradient_buffers = sizes.reducer_buffers
                                  ? *sizes.reducer_buffers
                                  : buffers_of(reducer, {.values = values, .max_leaves = leaves},
                                               sizes.value_bytes, cores, sizes.threads),
          .gradient_buffer_bytes = static_cast<double>(values) * bytes,
          .optimizer_bytes = parameter_bytes * sizes.optimizer_values,
          .thread_bytes = busy_threads * static_cast<double>(sizes.minibatch) *
                              static_cast<double>(std::min(sizes.at_once, leaves)) *
                              static_cast<double>(sizes.sample_bytes) +
                          sizes.threads * static_cast<double>(sizes.buffers) * bytes,
          .pair_bytes = sizes.gradient_pair ? 2 * parameter_bytes : 0,
          .objective_bytes = static_cast<double>(sizes.objective_bytes),
          .host_bytes = sizes.host ? sizes.host->bytes : 0,
          .blas_addresses = sizes.openblas ? busy_threads * kOpenBlasBuffer : 0};
}

void require_training_memory(const TrainingSizes& sizes, const MemoryLimit& limit) {
  const TrainingMemory memory = memory_of(sizes);
  require_memory(
      memory.bytes() + (limit.of_addresses ? memory.blas_addresses : 0),
      fmt::format(
          "training needs {} gradient buffers of {} ({} minibatches in a step, reducer {}), "
          "{} for the optimizer{} and {} for {} threads with minibatches of {}, together",
          memory.gradient_buffers, bytes_text(memory.gradient_buffer_bytes), sizes.minibatches,
          sizes.reducer, bytes_text(memory.optimizer_bytes),
          further_needs(memory, limit.of_addresses), bytes_text(memory.thread_bytes), sizes.threads,
          sizes.minibatch),
      "smaller minibatches or steps, fewer threads or the reducer tree need less", limit);
}

}  // namespace rubato
