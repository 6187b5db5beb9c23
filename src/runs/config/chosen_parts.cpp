#include "chosen_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "loop/train/step/step_part.hpp"
#include "readings.hpp"

namespace rubato {

namespace {

// The parts of a text between '+'; none of empty text.
std::vector<std::string_view> parts_of(const std::string& text) {
  return text.empty() ? std::vector<std::string_view>() : split_at(text, '+');
}

// A configuration can be read without having the rule kOwn, which then is nameless and has no
// rates.
RuleChoice rule_of(const std::string& text, const RuleRegistry& rules) {
  const bool elsewhere = Spec(text).name() == kOwn && std::ranges::count(rules.names(), kOwn) == 0;
  if (!elsewhere) return rules.choose(text);
  return {text, {}, [] {
            return std::make_unique<FunctionRule>(std::string(kOwn), FunctionRule::Factor());
          }};
}

OptimizerChoice optimizer_of(const std::string& text, const Extensions& own) {
  if (auto made = own.optimizers.make(text)) return {.own = std::move(made)};
  return {.method = parse_optimizer(text, {}).method};
}

std::vector<OwnGradientTransform> transforms_of(const std::string& text, const Extensions& own) {
  return vector_of(parts_of(text),
                   [&](std::string_view part) { return make_transform(part, own.transforms); });
}

// A configuration can be read without having the sampler kOwn, whose order is then an error.
Sampler sampler_of(const std::string& text, const OwnSamplers& own) {
  const bool elsewhere = text == kOwn && std::ranges::count(own.names(), kOwn) == 0;
  if (!elsewhere) return make_sampler(text, own);
  return {.name = text, .order = [](const EpochDraw&) -> std::vector<std::int64_t> {
            throw Error(
                "--sampler own: the weights are in the program that trained with them; accepted: "
                "that program, or the name of a sampler (rubato list samplers)");
          }};
}

ReducerChoice reducer_of(const std::string& text, const Extensions& own) {
  ReducerChoice reducer{own.reducers.make(text)};
  if (!reducer.own) require_reducer(text);
  return reducer;
}

MetricChoice metrics_of(const std::string& text, const Extensions& own) {
  MetricChoice metrics;
  std::string built_in;
  for (const std::string_view part : parts_of(text)) {
    const Spec spec(part);
    if (auto made = own.metrics.make(spec)) {
      metrics.own.push_back(*std::move(made));
      metrics.own_names.push_back(spec.name());
    } else {
      built_in.append(built_in.empty() ? "" : "+").append(part);
    }
  }
  metrics.built_in = parse_test_metrics(built_in);
  return metrics;
}

// Empty for a metric of the user's own.
std::optional<WatchedMetric> watched_of(const std::string& text, const Extensions& own) {
  std::vector<std::string_view> names;
  const std::vector<WatchedMetric> built_in = built_in_metrics();
  for (const WatchedMetric& metric : built_in) {
    if (metric.name() == text) return metric;
    names.push_back(metric.name());
  }
  for (const auto& metric : own.metrics.rows()) {
    if (metric.name == text) return std::nullopt;
    names.push_back(metric.name);
  }
  throw Error(unknown_name_message("metric", text, names));
}

}  // namespace

RUBATO_PARSE(rule_of(text, own.rules), RuleChoice)
RUBATO_PARSE(choose_lr_schedule(text, own.schedules), ScheduleChoice)
RUBATO_PARSE(optimizer_of(text, own), OptimizerChoice)
RUBATO_PARSE(transforms_of(text, own), std::vector<OwnGradientTransform>)
RUBATO_PARSE(sampler_of(text, own.samplers), Sampler)
RUBATO_PARSE(reducer_of(text, own), ReducerChoice)
RUBATO_PARSE(metrics_of(text, own), MetricChoice)
RUBATO_PARSE(watched_of(text, own), std::optional<WatchedMetric>)
RUBATO_PARSE(choose_batch_policy(text, own.batch_policies), BatchPolicyChoice)

WatchedMetric watched_metric(const RunConfiguration& run) {
  if (*run.watch) return **run.watch;
  const std::vector<std::string>& names = run.metric->own_names;
  const auto found = std::ranges::find(names, run.watch.text());
  if (found != names.end()) return run.metric->own[static_cast<std::size_t>(found - names.begin())];
  throw_error("--watch {0}: nothing computes it; accepted: with --metric {0}", run.watch.text());
}

std::string_view own_rule_name(std::string_view rule) {
  constexpr std::string_view kNamed = "own:name=";
  return rule.starts_with(kNamed) ? rule.substr(kNamed.size()) : std::string_view();
}

PlanOptions plan_options(const RunConfiguration& run, std::int64_t samples, std::int64_t epochs) {
  return {.dataset_size = samples,
          .minibatch_size = run.minibatch,
          .cores = run.cores,
          .remainder = run.remainder,
          .epochs = epochs};
}

bool has_batch_policy(const RunConfiguration& run) {
  return !is_fixed_batch_policy(run.batch.text());
}

std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run) {
  if (!has_batch_policy(run)) return nullptr;
  const ClusterModel& cluster = *run.cluster;
  // Hosts that train together exchange data in each step, however few cores take part in it.
  return run.batch->make({.minibatch_size = run.minibatch,
                          .reference_batch_size = run.reference_batch,
                          .cores_per_host = cluster.hosts > 1 ? 1 : cluster.cores_per_host});
}

}  // namespace rubato
