// memory_of() adds up what a training allocates for itself, by sizes that are known before it
// allocates anything: gradient buffers, of which the reducer says how many it keeps, what the parts
// of a step remember, minibatches in work, copies, messages to hosts. require_training_memory()
// compares the sum with the limit of the machine and names its terms; addresses that OpenBLAS
// reserves count only if addresses are limited. training_sizes() collects the sizes from options,
// objective and trace; the load of a host is the largest of all steps that may come, as each may
// divide its minibatches differently.

#include "step_choices.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/loop/reducer.hpp>

#include "loop/runtime/host_sum.hpp"
#include "step_part.hpp"

namespace rubato {

namespace {

// Describes the memory that only some trainings need.
std::string further_needs(const TrainingMemory& memory, bool addresses) {
  std::string text;
  const auto add = [&text](double bytes, std::string_view what) {
    if (bytes > 0) fmt::format_to(std::back_inserter(text), ", {} {}", bytes_text(bytes), what);
  };
  add(memory.metric_bytes, "for the optimizer's metric");
  add(memory.pair_bytes, "for the gradients of two steps");
  add(memory.copy_bytes, "for a copy of the state during tests");
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
         metric_bytes + thread_bytes + pair_bytes + copy_bytes + objective_bytes + host_bytes;
}

TrainingMemory memory_of(const TrainingSizes& sizes) {
  const std::size_t values = sizes.leaf_values();
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
          .optimizer_bytes = parameter_bytes * (sizes.optimizer_values + sizes.optimizer_scratch),
          .metric_bytes = sizes.metric ? parameter_bytes : 0,
          .thread_bytes = busy_threads * static_cast<double>(sizes.minibatch) *
                              static_cast<double>(std::min(sizes.at_once, leaves)) *
                              static_cast<double>(sizes.sample_bytes) +
                          sizes.threads * static_cast<double>(sizes.buffers) * bytes,
          .pair_bytes = sizes.gradient_pair ? 2 * parameter_bytes : 0,
          .copy_bytes = sizes.copies_state ? static_cast<double>(sizes.buffers) * bytes +
                                                 parameter_bytes * (1 + sizes.optimizer_values)
                                           : 0,
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

namespace {

// The number of buffers that a user's own reducer keeps at once.
std::optional<std::int64_t> own_buffers(const OwnReducer& own, const TrainingSizes& sizes) {
  if (!own) return std::nullopt;
  const std::int64_t leaves = sizes.leaves_at_once();
  if (!own.buffers) return leaves;
  return own.buffers({.values = sizes.leaf_values(), .max_leaves = leaves}, sizes.busy_cores(),
                     sizes.threads);
}

// The elementwise maximum of the loads of all steps that may come.
HostLoad largest_load(const TrainOptions& options, const StepRange& steps, std::size_t values,
                      std::size_t value_bytes) {
  const Hosts& hosts = *options.hosts;
  HostLoad largest =
      load_of_host(hosts, {.leaves = steps.most, .cores = options.cores}, values, value_bytes);
  for (const std::vector<std::int64_t>& host_cores : steps.host_cores) {
    const StepSize step{
        .leaves = steps.most,
        .cores = std::accumulate(host_cores.begin(), host_cores.end(), std::int64_t{0}),
        .host_cores = host_cores};
    const HostLoad load = load_of_host(hosts, step, values, value_bytes);
    largest = {.most_leaves = std::max(largest.most_leaves, load.most_leaves),
               .cores = std::max(largest.cores, load.cores),
               .bytes = std::max(largest.bytes, load.bytes)};
  }
  return largest;
}

}  // namespace

std::vector<GroupOptions> group_options(std::span<const ParameterGroup> groups) {
  std::vector<GroupOptions> options(1);
  for (const ParameterGroup& group : groups) options.push_back(group.options);
  return options;
}

bool takes_norms(const Rule& rule, const TrainOptions& options) {
  return rule.needs().group_norms || options.log_noise;
}

std::int64_t most_at_once(const Objective& objective, const Rule& rule, const TrainOptions& options,
                          bool squares) {
  if (squares || takes_norms(rule, options) || options.log_minibatches ||
      options.dealing == Dealing::in_turns) {
    return 1;
  }
  return std::clamp<std::int64_t>(objective.minibatches_at_once(options.minibatch_size), 1,
                                  Objective::kMostAtOnce);
}

std::string_view chosen_reducer(const TrainOptions& options, std::int64_t at_once) {
  return options.reduce == "auto" && at_once > 1 ? "tree" : std::string_view(options.reduce);
}

TrainingSizes training_sizes(const LeafSize& leaf, const StepEngineParts& parts,
                             const TrainOptions& options, const StepRange& steps) {
  const Objective& objective = parts.objective;
  const PartNeeds needs = needs_of_parts(options);
  const std::int64_t at_once = most_at_once(objective, parts.rule, options, needs.squares);
  TrainingSizes sizes{.parameters = leaf.parameters,
                      .buffers = leaf.buffers,
                      .squares = needs.squares ? leaf.parameters : 0,
                      .value_bytes = leaf.value_bytes,
                      .sample_bytes = objective.sample_bytes(),
                      .minibatch = options.minibatch_size,
                      .at_once = at_once,
                      .minibatches = steps.most,
                      .cores = options.cores,
                      .threads = parts.workers.threads(),
                      .reducer = options.own_reducer ? std::string_view(options.own_reducer.name)
                                                     : chosen_reducer(options, at_once),
                      .optimizer_values = needs.remembered,
                      .optimizer_scratch = needs.scratch,
                      .copies_state = needs.tests_others && objective.has_test(),
                      .gradient_pair = steps.least == 1 && takes_norms(parts.rule, options),
                      .metric = parts.rule.needs().metric_norms,
                      .objective_bytes = objective.step_bytes(),
                      .openblas = objective.uses_blas()};
  if (are_several(options.hosts.get())) {
    sizes.host = largest_load(options, steps, sizes.leaf_values(), sizes.value_bytes);
  }
  sizes.reducer_buffers = own_buffers(options.own_reducer, sizes);
  return sizes;
}

}  // namespace rubato
