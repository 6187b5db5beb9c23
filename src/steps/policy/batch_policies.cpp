// Every built-in policy is a row of kBatchPolicies, whose function reads the arguments from a Spec
// and makes the policy. `fixed` and `ramp` depend on nothing but the offer and the number of
// samples and are defined here; the two that follow measurements are in adaptive_policies.cpp. A
// choice is read before the training's setting is known: its text is checked by making a policy for
// minibatches of one sample, and the policies that decide are made from the same text later.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/steps/batch_policies.hpp>

#include "adaptive_policies.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr std::string_view kFixed = "fixed";
constexpr std::int64_t kMostSteps = 1'000'000'000;

// Takes every offer; shows the shape of a policy.
class FixedPolicy final : public BatchPolicy {
 public:
  [[nodiscard]] std::string name() const override { return std::string(kFixed); }
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& /*progress*/) const override {
    return {.step = offered};
  }
  [[nodiscard]] std::int64_t max_batch(std::int64_t offered) const override { return offered; }
};

std::unique_ptr<BatchPolicy> make_fixed(Spec& /*spec*/, const BatchPolicySetting& /*setting*/) {
  return std::make_unique<FixedPolicy>();
}

struct RampOptions {
  /// Samples of the first and of the last batch, and of the ramp between them.
  std::int64_t from = 1;
  std::int64_t to = 1;
  std::int64_t samples = 1;
  /// Jumps by equal factors; 0 for a linear ramp.
  std::int64_t stages = 0;
};

// The batch after s samples of training is, rounded to the nearest minibatch,
//
//     from + (to - from) min(1, s / samples)                         without stages
//     from (to / from)^(k / stages), k = floor(stages min(1, s / samples))  with
//
// The second is half of "Seesaw" (Meterez et al. 2025): where a schedule would halve the rate,
// divide it by sqrt 2 and double the batch. It depends on nothing but s, so it has no state.
class RampPolicy final : public BatchPolicy {
 public:
  RampPolicy(const BatchBounds& bounds, const RampOptions& options)
      : bounds_(bounds), options_(options) {}

  [[nodiscard]] std::string name() const override {
    return fmt::format("ramp from {} to {} in minibatches of {} over {} samples, {}", options_.from,
                       options_.to, bounds_.minibatch_size(), options_.samples,
                       options_.stages == 0 ? "linear" : fmt::format("stages {}", options_.stages));
  }
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const override {
    const double target = target_after(std::min(progress.samples, options_.samples));
    return {.step = bounds_.step_of(bounds_.nearest(target), offered.cores),
            .inputs = {{.name = "target", .value = target}}};
  }
  [[nodiscard]] std::int64_t max_batch(std::int64_t /*offered*/) const override {
    return bounds_.max_batch();
  }

 private:
  [[nodiscard]] double target_after(std::int64_t samples) const {
    const auto from = static_cast<double>(options_.from);
    const auto to = static_cast<double>(options_.to);
    const auto all = static_cast<double>(options_.samples);
    if (options_.stages == 0) return from + (to - from) * (static_cast<double>(samples) / all);
    const std::int64_t stage = samples * options_.stages / options_.samples;
    if (stage == options_.stages) return to;
    return from *
           exact::pow(to / from, static_cast<double>(stage) / static_cast<double>(options_.stages));
  }

  BatchBounds bounds_;
  RampOptions options_;
};

// Reads the number of stages, "8" or "doublings"; 0 if they are not given.
std::int64_t read_stages(Spec& spec, std::int64_t from, std::int64_t to) {
  constexpr std::string_view kDoublings = "doublings";
  constexpr std::int64_t kMost = 1000;
  constexpr std::string_view kAccepted = "a number of jumps from 1 to 1000, or doublings";
  const auto text = spec.text("stages", Unset{"none, it grows linearly"}, kAccepted);
  if (!text) return 0;
  if (*text != kDoublings) {
    try {
      return parse_whole(*text, 1, kMost);
    } catch (const Error&) {
      spec.reject("stages", fmt::format("'{}'; accepted: {}", *text, kAccepted));
    }
  }
  std::int64_t stages = 0;
  std::int64_t batch = from;
  for (; batch < to; ++stages) batch *= 2;
  if (batch != to || stages == 0) {
    spec.reject("stages", fmt::format("{} is not {} doubled several times; accepted: a number of "
                                      "jumps, or another to",
                                      to, from));
  }
  return stages;
}

std::unique_ptr<BatchPolicy> make_ramp(Spec& spec, const BatchPolicySetting& setting) {
  RampOptions options;
  options.from = spec.whole("from", Required{"64"}, 1, kMaxBatchSize);
  options.to = spec.whole("to", Required{"1024"}, 1, kMaxBatchSize);
  options.samples = spec.whole("samples", Required{"100000"}, 1, kMaxBatchSize);
  if (options.from > options.to) {
    spec.reject("from", fmt::format("{} is above to={}; accepted: 1 to {}", options.from,
                                    options.to, options.to));
  }
  options.stages = read_stages(spec, options.from, options.to);
  return std::make_unique<RampPolicy>(
      BatchBounds(options.from, options.to, setting.minibatch_size, {"from", "to"}), options);
}

BatchBounds read_bounds(Spec& spec, std::int64_t least, std::string_view least_is,
                        const BatchPolicySetting& setting) {
  const auto min = spec.whole("min", Unset{least_is}, 1, kMaxBatchSize);
  const std::int64_t max = spec.whole("max", Required{"1024"}, 1, kMaxBatchSize);
  if (min && *min > max) {
    spec.reject("min", fmt::format("{} is above max={}; accepted: 1 to {}", *min, max, max));
  }
  if (!min && least > max) {
    // A smaller min helps only if some batch is at most `max`.
    const std::string other = max < setting.minibatch_size
                                  ? std::string()
                                  : fmt::format(", or with a min of at most {}", max);
    spec.reject("max", fmt::format("{} is below the min that is not given, {} ({}); accepted: {} "
                                   "and more{}",
                                   max, least, least_is, least, other));
  }
  return {min.value_or(least), max, setting.minibatch_size};
}

std::unique_ptr<BatchPolicy> make_noise_scale(Spec& spec, const BatchPolicySetting& setting) {
  const BatchBounds bounds = read_bounds(spec, setting.minibatch_size, "a minibatch", setting);
  NoiseScalePolicyOptions options;
  options.factor = spec.real("factor", options.factor, kPositive);
  options.smoothing = spec.real("smoothing", options.smoothing, kBelowOne);
  options.change = spec.real("change", options.change, kNotNegative);
  options.every = spec.whole("every", options.every, 1, kMostSteps);
  options.wait = spec.whole("wait", options.wait, 0, kMostSteps);
  return std::make_unique<NoiseScalePolicy>(bounds, options);
}

std::unique_ptr<BatchPolicy> make_goodput(Spec& spec, const BatchPolicySetting& setting) {
  const BatchBounds bounds =
      read_bounds(spec, setting.reference_batch_size, "--ref-batch", setting);
  GoodputPolicyOptions options{.reference_batch_size = setting.reference_batch_size,
                               .cores_per_host = setting.cores_per_host};
  options.threshold = spec.real("threshold", options.threshold, kNotNegative);
  return std::make_unique<GoodputPolicy>(bounds, options);
}

struct BatchPolicyRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<BatchPolicy> (*make)(Spec& spec, const BatchPolicySetting& setting);
};

constexpr std::array<BatchPolicyRow, 4> kBatchPolicies{
    {{kFixed, "as the trace or the availability says", make_fixed},
     {"ramp", "the batch grows with the samples trained, linearly or in jumps by equal factors",
      make_ramp},
     {"noise-scale",
      "the batch follows the gradient noise scale times a factor, between bounds (McCandlish et "
      "al. 2018)",
      make_noise_scale},
     {"goodput",
      "the batch, and the cores, of the most progress in a second of modelled time: throughput "
      "times statistical efficiency (Pollux, Qiao et al. 2021)",
      make_goodput}}};

void require_setting(std::string_view name, std::int64_t value) {
  if (value >= 1 && value <= kMaxBatchSize) return;
  throw_error("the setting of a policy has {} {}; accepted: {}", value, name,
              whole_range(1, kMaxBatchSize));
}

std::unique_ptr<BatchPolicy> built_in_policy(Spec spec, const BatchPolicySetting& setting) {
  require_setting("samples in a minibatch", setting.minibatch_size);
  require_setting("samples in the reference batch", setting.reference_batch_size);
  require_setting("cores in a host", setting.cores_per_host);
  auto policy = find_row("batch policy", spec.name(), kBatchPolicies).make(spec, setting);
  spec.finish();
  return policy;
}

}  // namespace

template <>
BatchPolicyChoice BatchPolicyChoice::built_in(std::string_view text) {
  return choose_batch_policy(text, {"batch policy", batch_policy_names});
}

BatchPolicyChoice choose_batch_policy(std::string_view text, const OwnBatchPolicies& own) {
  const Spec spec(text);
  const auto make = [text = std::string(text), spec, own](const BatchPolicySetting& setting) {
    auto made = own.make(spec, setting);
    if (!made) return built_in_policy(spec, setting);
    if (*made != nullptr) return *std::move(made);
    throw_error("batch policy '{}' is made as null; accepted: any but null", text);
  };
  // A minibatch of one sample fits all bounds.
  return {text, {spec.name()}, make, {.minibatch_size = 1, .reference_batch_size = 1}};
}

bool is_fixed_batch_policy(std::string_view text) {
  return text == kFixed;
}

std::vector<std::string_view> batch_policy_names() {
  return row_names(kBatchPolicies);
}

std::vector<Strategy> batch_policies() {
  return strategies_of(kBatchPolicies, [](const BatchPolicyRow& row, Spec& spec) {
    static_cast<void>(row.make(spec, {}));
  });
}

}  // namespace rubato
