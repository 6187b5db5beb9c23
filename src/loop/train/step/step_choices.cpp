#include "step_choices.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "loop/optim/lookahead.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "loop/runtime/executors/host_executor.hpp"

namespace rubato {

namespace {

// The number of values that the optimizer remembers for each parameter.
int remembered_by_optimizer(const TrainOptions& options) {
  const int lookahead = options.lookahead ? Lookahead<float>::kRemembered : 0;
  if (options.own_optimizer) return lookahead + options.own_optimizer.remembered;
  return lookahead + remembered_values(options.optimizer, group_options(options.groups));
}

// The number of buffers that a user's own reducer keeps at once.
std::optional<std::int64_t> own_buffers(const OwnReducer& own, const TrainingSizes& sizes) {
  if (!own) return std::nullopt;
  const std::int64_t leaves = sizes.leaves_at_once();
  if (!own.buffers) return leaves;
  return own.buffers({.values = sizes.parameters + sizes.buffers, .max_leaves = leaves},
                     sizes.busy_cores(), sizes.threads);
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

std::int64_t most_at_once(const Objective& objective, const Rule& rule,
                          const TrainOptions& options) {
  if (takes_norms(rule, options) || options.log_minibatches ||
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
  const std::int64_t at_once = most_at_once(objective, parts.rule, options);
  TrainingSizes sizes{.parameters = leaf.parameters,
                      .buffers = leaf.buffers,
                      .value_bytes = leaf.value_bytes,
                      .sample_bytes = objective.sample_bytes(),
                      .minibatch = options.minibatch_size,
                      .at_once = at_once,
                      .minibatches = steps.most,
                      .cores = options.cores,
                      .threads = parts.workers.threads(),
                      .reducer = options.own_reducer ? std::string_view(options.own_reducer.name)
                                                     : chosen_reducer(options, at_once),
                      .optimizer_values = remembered_by_optimizer(options),
                      .gradient_pair = steps.least == 1 && takes_norms(parts.rule, options),
                      .objective_bytes = objective.step_bytes(),
                      .openblas = objective.uses_blas()};
  if (are_several(options.hosts.get())) {
    sizes.host = largest_load(options, steps, sizes.parameters + sizes.buffers, sizes.value_bytes);
  }
  sizes.reducer_buffers = own_buffers(options.own_reducer, sizes);
  return sizes;
}

}  // namespace rubato
