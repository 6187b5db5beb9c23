#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/family.hpp>
#include <rubato/plan/sampler.hpp>
#include <rubato/policy/batch_policies.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/rule_registry.hpp>

namespace rubato {

struct OwnDataSource;         // data/image_set.hpp
struct OwnGradientTransform;  // train/gradient_transform.hpp
struct OwnMetric;             // train/metric.hpp
struct OwnOptimizer;          // train/own_optimizer.hpp
struct OwnReducer;            // runtime/own_reducer.hpp

/// The names that options take besides the built-in ones, and what they stand for: parts of the
/// user's own. A RunConfiguration has one, by which its texts are read; so they reach whatever is
/// done with a configuration, and have its run folders, resumes and comparisons:
///
///     rubato::RunConfiguration configuration;
///     configuration.extensions.rules.add(
///         "log2", [](const rubato::RuleInput& step) { return std::log2(1 + step.scale()); });
///     configuration.rule = "log2";
///     rubato::Run run(configuration, rubato::dense_workload(configuration),
///                     rubato::RunLocation::create("runs/first"));
///
/// Run folders and states know a part by its name and arguments alone. Those of a plug-in
/// (docs/extending.md) are bound by the SHA-256 of its file besides.
struct Extensions {
  Extensions();

  /// --rule.
  RuleRegistry rules{};
  /// --schedule.
  OwnSchedules schedules;
  /// --optimizer. What belongs into one is an argument of its own: --momentum, --nesterov and
  /// --weight-decay are of the built-in ones.
  Additions<OwnOptimizer> optimizers;
  /// --transform, one after the other.
  Additions<OwnGradientTransform> transforms;
  /// --sampler.
  OwnSamplers samplers;
  /// --reduce.
  Additions<OwnReducer> reducers;
  /// --metric. The values of one that trains are in metrics.jsonl.
  Additions<OwnMetric> metrics;
  /// --batch.
  OwnBatchPolicies batch_policies;
  /// --data.
  Additions<OwnDataSource> data;

  /// Whether both have the same names.
  friend bool operator==(const Extensions& a, const Extensions& b);
};

/// Every built-in strategy that an option of a run takes by name, family by family: models, losses,
/// data, samplers, traces, generators and policies of availability, rules, schedules, optimizers,
/// transforms, initializers, precisions, reducers and
/// all-reduce algorithms. Traces and generators are of one option, as are reducers and algorithms.
/// The same for the whole life of the process.
[[nodiscard]] std::span<const Family> families();
/// The same and, behind those, the user's own.
[[nodiscard]] std::vector<Family> families(const Extensions& extensions);

/// The family of that name, or of its singular: "rules", "rule". Throws Error for an unknown one,
/// naming the nearest.
[[nodiscard]] const Family& family(std::string_view name,
                                   std::span<const Family> among = families());

/// What a plug-in and the program that loads it have to have in common. Itself the same in all
/// versions.
struct PluginAbi {
  /// The version of rubato and a digest of its public headers.
  const char* rubato;
  /// __GXX_ABI_VERSION and _GLIBCXX_USE_CXX11_ABI.
  int compiler;
  int library;
};

/// Defines the entry point of a plug-in, a shared library that is linked with rubato::plugin: a
/// function that adds what it has to `extensions`, whose body stands behind it in braces
/// (examples/plugin/your_parts.cpp). It is called once for each configuration that names the
/// plug-in; the message of what it throws is an answer to the user.
// NOLINTBEGIN(bugprone-macro-parentheses): the name of a parameter.
#define RUBATO_PLUGIN(extensions)                                                     \
  extern "C" [[gnu::visibility("default")]] ::rubato::PluginAbi rubato_plugin_abi() { \
    return {RUBATO_PLUGIN_ABI, __GXX_ABI_VERSION, _GLIBCXX_USE_CXX11_ABI};            \
  }                                                                                   \
  extern "C" [[gnu::visibility("default")]] void rubato_plugin(::rubato::Extensions& extensions)
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace rubato
