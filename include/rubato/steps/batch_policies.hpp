#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/spec.hpp>
#include <rubato/steps/batch_policy.hpp>

namespace rubato {

/// Of a training, what policies decide by.
struct BatchPolicySetting {
  /// Samples in a minibatch, which every batch is a multiple of; at least 1.
  std::int64_t minibatch_size = 32;
  /// The batch size for which the base learning rate was tuned, in samples; at least 1.
  std::int64_t reference_batch_size = 32;
  /// Cores that need no network between them (ClusterModel::cores_per_host); at least 1.
  std::int64_t cores_per_host = 8;
};

/// The policy of that name, with its arguments: "fixed", "noise-scale:max=1024",
/// "goodput:min=64,max=1024". Throws Error for an unknown name or argument, bounds between which
/// there is no multiple of the minibatch, and a setting out of its range.
[[nodiscard]] std::unique_ptr<BatchPolicy> make_batch_policy(std::string_view text,
                                                             const BatchPolicySetting& setting);

/// Batch policies of the user's own, by name.
using OwnBatchPolicies = Additions<std::unique_ptr<BatchPolicy>, BatchPolicySetting>;
/// The same, with those of the user's own among them.
[[nodiscard]] std::unique_ptr<BatchPolicy> make_batch_policy(std::string_view text,
                                                             const BatchPolicySetting& setting,
                                                             const OwnBatchPolicies& own);

/// Whether it takes what is offered, whatever happens, so that no policy has to be asked.
[[nodiscard]] bool is_fixed_batch_policy(std::string_view text);

/// All names.
[[nodiscard]] std::vector<std::string_view> batch_policy_names();
/// The policies with their arguments.
[[nodiscard]] std::vector<Strategy> batch_policies();

}  // namespace rubato
