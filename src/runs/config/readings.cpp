#include "readings.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/intervals.hpp>
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kFault = "core=3,step=100";
constexpr std::string_view kFaults = "rate=0.01";
constexpr std::string_view kStraggler = "core=3,factor=4";
constexpr RealRange kFactors{1, 1e6, true, true, "a number from 1 to 1e6"};

// A Spec of arguments without a name. `example` shows what would be accepted.
Spec spec_of(const std::string& text, std::string_view example) {
  try {
    return Spec(":" + text);
  } catch (const Error&) {
    throw_error("'{}' is malformed; accepted: such as {}", text, example);
  }
}

// One Spec for each part between '+'.
std::vector<Spec> specs_of(const std::string& text, std::string_view example) {
  std::vector<Spec> specs;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '+');) specs.push_back(spec_of(part, example));
  return specs;
}

void require(const Spec& spec, std::string_view key, std::string_view example) {
  if (spec.has(key)) return;
  throw_error("there is no '{}'; accepted: such as {}", key, example);
}

CoreRank core_of(Spec& spec, std::string_view example) {
  require(spec, "core", example);
  return CoreRank{spec.whole("core", 0, 0, kMaxCores - 1)};
}

}  // namespace

std::vector<Fault> parse_faults(const std::string& text) {
  std::vector<Fault> faults;
  for (Spec& spec : specs_of(text, kFault)) {
    const CoreRank core = core_of(spec, kFault);
    require(spec, "step", kFault);
    const StepIndex step{spec.whole("step", 1, 1, kMost) - 1};
    faults.push_back({.core = core, .step = step, .substep = spec.whole("substep", 0, 0, kMost)});
    spec.finish();
  }
  return faults;
}

FaultOptions parse_random_faults(const std::string& text) {
  if (text.empty()) return {};
  Spec spec = spec_of(text, kFaults);
  require(spec, "rate", kFaults);
  FaultOptions options{.planned = {},
                       .rate = spec.real("rate", 0, kBelowOne),
                       .seed = static_cast<std::uint64_t>(spec.whole("seed", 0, 0, kMost))};
  spec.finish();
  return options;
}

std::vector<Straggler> parse_stragglers(const std::string& text) {
  std::vector<Straggler> stragglers;
  for (Spec& spec : specs_of(text, kStraggler)) {
    const CoreRank core = core_of(spec, kStraggler);
    require(spec, "factor", kStraggler);
    stragglers.push_back({.core = core, .factor = spec.real("factor", 1, kFactors)});
    spec.finish();
  }
  return stragglers;
}

TimelineSteps parse_timeline(const std::string& text) {
  constexpr std::string_view kSteps = "steps=";
  constexpr std::string_view kTo = "..";
  constexpr std::int64_t kLastStep = 1'000'000'000;
  if (text.empty() || text == "all") return {};
  const std::size_t to = text.find(kTo);
  if (!text.starts_with(kSteps) || to == std::string::npos) {
    throw_error("'{}' names no steps; accepted: all, or such as steps=100..120", text);
  }
  const std::int64_t first =
      parse_whole(std::string_view(text).substr(kSteps.size(), to - kSteps.size()), 1, kLastStep);
  const std::int64_t last =
      parse_whole(std::string_view(text).substr(to + kTo.size()), first, kLastStep);
  return {.first = StepIndex{first - 1}, .last = StepIndex{last - 1}};
}

RUBATO_PARSE(text, AvailabilityChoice)
RUBATO_PARSE(parse_cluster(text, kBytesOfModel), ClusterModel)
RUBATO_PARSE(parse_random_faults(text), FaultOptions)
RUBATO_PARSE(parse_initializer(text), InitializerOptions)
RUBATO_PARSE(parse_replaced_operators(text), ReplacedOperators)
RUBATO_PARSE(parse_precision(text), PrecisionOptions)
RUBATO_PARSE(parse_checkpoint_interval(text), std::optional<CheckpointInterval>)
RUBATO_PARSE(parse_price(text), DevicePrice)
RUBATO_PARSE(text.empty() ? nullptr : make_market_policy(text), std::shared_ptr<const MarketPolicy>)
RUBATO_PARSE(parse_digest_interval(text), DigestInterval)
RUBATO_PARSE(parse_memories(text), MemoriesInSamples)
RUBATO_PARSE(parse_batch_change(text), BatchChange)
RUBATO_PARSE(parse_augmentations(text), std::vector<AugmentationOptions>)
RUBATO_PARSE(parse_faults(text), std::vector<Fault>)
RUBATO_PARSE(parse_stragglers(text), std::vector<Straggler>)
RUBATO_PARSE(parse_timeline(text), TimelineSteps)

}  // namespace rubato
