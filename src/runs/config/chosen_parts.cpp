#include "chosen_parts.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/training_options.hpp>
#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

// The parts of a text between '+'; none of empty text.
std::vector<std::string_view> parts_of(const std::string& text) {
  return text.empty() ? std::vector<std::string_view>() : split_at(text, '+');
}

std::vector<OwnGradientTransform> transforms_of(const std::string& text, const Extensions& own) {
  std::vector<OwnGradientTransform> all;
  for (const std::string_view part : parts_of(text)) {
    all.push_back(make_transform(part, own.transforms));
  }
  return all;
}

std::vector<OwnMetric> metrics_of(const std::string& text, const Extensions& own) {
  std::vector<OwnMetric> all;
  for (const std::string_view part : parts_of(text)) {
    if (auto made = own.metrics.make(part)) all.push_back(*std::move(made));
  }
  return all;
}

std::string built_in_part(const std::string& text, const Additions<OwnMetric>& own) {
  std::string rest;
  for (const std::string_view part : parts_of(text)) {
    if (own.find(Spec(part).name()) != nullptr) continue;
    rest.append(rest.empty() ? "" : "+").append(part);
  }
  return rest;
}

}  // namespace

std::optional<OwnOptimizer> own_optimizer(const RunConfiguration& run) {
  return run.extensions.optimizers.make(run.optimizer);
}

std::optional<OwnReducer> own_reducer(const RunConfiguration& run) {
  return run.extensions.reducers.make(run.reduce);
}

std::vector<OwnGradientTransform> gradient_transforms(const RunConfiguration& run) {
  return transforms_of(run.transform, run.extensions);
}

std::vector<OwnMetric> own_metrics(const RunConfiguration& run) {
  return metrics_of(run.metric, run.extensions);
}

std::string built_in_metrics(const RunConfiguration& run) {
  return built_in_part(run.metric, run.extensions.metrics);
}

WatchedMetric watched_metric(const RunConfiguration& run) {
  for (const auto& metric : kMetrics) {
    if (metric.name == run.watch) return metric.value;
  }
  for (const std::string_view part : parts_of(run.metric)) {
    if (Spec(part).name() != run.watch) continue;
    if (const auto made = run.extensions.metrics.make(part)) return *made;
  }
  throw_error("--watch {0}: nothing computes it; accepted: with --metric {0}", run.watch);
}

bool is_elsewhere(const std::string& rule, const Extensions& own) {
  return Spec(rule).name() == kOwn && std::ranges::count(own.rules.names(), kOwn) == 0;
}

std::string_view own_rule_name(std::string_view rule) {
  constexpr std::string_view kNamed = "own:name=";
  return rule.starts_with(kNamed) ? rule.substr(kNamed.size()) : std::string_view();
}

// A configuration can be read without having the rule.
void require_rule(const std::string& text, const Extensions& own) {
  if (!is_elsewhere(text, own)) static_cast<void>(own.rules.make(text));
}

void require_schedule(const std::string& text, const Extensions& own) {
  static_cast<void>(make_lr_schedule(text, {}, own.schedules));
}

void require_optimizer(const std::string& text, const Extensions& own) {
  if (!own.optimizers.make(text)) static_cast<void>(parse_optimizer(text, {}));
}

void require_transforms(const std::string& text, const Extensions& own) {
  static_cast<void>(transforms_of(text, own));
}

void require_sampler(const std::string& text, const Extensions& own) {
  static_cast<void>(make_sampler(text, own.samplers));
}

void require_reduction(const std::string& text, const Extensions& own) {
  if (!own.reducers.make(text)) require_reducer(text);
}

void require_metrics(const std::string& text, const Extensions& own) {
  static_cast<void>(metrics_of(text, own));
  static_cast<void>(parse_test_metrics(built_in_part(text, own.metrics)));
}

void require_watched(const std::string& text, const Extensions& own) {
  std::vector<std::string_view> names;
  names.reserve(kMetrics.size() + own.metrics.rows().size());
  for (const auto& metric : kMetrics) names.push_back(metric.name);
  for (const auto& metric : own.metrics.rows()) names.push_back(metric.name);
  if (std::ranges::find(names, text) != names.end()) return;
  throw Error(unknown_name_message("metric", text, names));
}

// Checks the text with a minibatch size of 1, which fits all bounds; require_consistent() knows
// that of the run.
void require_batch_policy(const std::string& text, const Extensions& own) {
  static_cast<void>(make_batch_policy(text, {.minibatch_size = 1, .reference_batch_size = 1},
                                      own.batch_policies));
}

bool has_batch_policy(const RunConfiguration& run) {
  return !is_fixed_batch_policy(run.batch);
}

std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run) {
  if (!has_batch_policy(run)) return nullptr;
  const ClusterModel& cluster = *run.cluster;
  // Hosts that train together exchange data in each step, however few cores take part in it.
  return make_batch_policy(run.batch,
                           {.minibatch_size = run.minibatch,
                            .reference_batch_size = run.reference_batch,
                            .cores_per_host = cluster.hosts > 1 ? 1 : cluster.cores_per_host},
                           run.extensions.batch_policies);
}

}  // namespace rubato
