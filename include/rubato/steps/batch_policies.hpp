#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/spec.hpp>
#include <rubato/steps/batch_policy.hpp>

namespace rubato {

/// The settings of a training on which policies depend.
struct BatchPolicySetting {
  /// Samples in a minibatch; every batch is a multiple of it. At least 1.
  std::int64_t minibatch_size = 32;
  /// The batch size for which the base learning rate was tuned, in samples; at least 1.
  std::int64_t reference_batch_size = 32;
  /// Cores that need no network between them (ClusterModel::cores_per_host); at least 1.
  std::int64_t cores_per_host = 8;
};

/// A batch policy by its text: "fixed", "noise-scale:max=1024", "goodput:min=64,max=1024". Throws
/// Error for an unknown name or argument. make() throws Error for bounds without a multiple of the
/// minibatch between them, and for a setting out of range.
using BatchPolicyChoice = Chosen<BatchPolicy, BatchPolicySetting>;
/// @cond Doxygen does not know specialisations of members.
template <>
BatchPolicyChoice BatchPolicyChoice::built_in(std::string_view text);
/// @endcond

/// Batch policies that users add, by name.
using OwnBatchPolicies = Additions<std::unique_ptr<BatchPolicy>, BatchPolicySetting>;
/// Reads such text with the user's policies.
[[nodiscard]] BatchPolicyChoice choose_batch_policy(std::string_view text,
                                                    const OwnBatchPolicies& own);

/// True if the policy always takes what is offered, so that it need not be asked.
[[nodiscard]] bool is_fixed_batch_policy(std::string_view text);

/// The names of the built-in policies.
[[nodiscard]] std::vector<std::string_view> batch_policy_names();
/// The policies with their arguments.
[[nodiscard]] std::vector<Strategy> batch_policies();

}  // namespace rubato
