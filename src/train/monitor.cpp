#include <algorithm>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <rubato/core/error.hpp>
#include <rubato/train/monitor.hpp>

namespace rubato {

TensorStatistics statistics_of(const NamedTensor& named, bool gradient) {
  const at::NoGradGuard no_grad;
  const at::Tensor values = named.tensor.detach().to(at::kDouble);
  return {.name = named.name,
          .gradient = gradient,
          .norm = values.norm().item<double>(),
          .mean = values.mean().item<double>(),
          .min = values.min().item<double>(),
          .max = values.max().item<double>()};
}

std::vector<NamedTensor> matching(std::span<const NamedTensor> parameters,
                                  const std::string& pattern) {
  std::vector<NamedTensor> matches;
  std::string names;
  for (const NamedTensor& named : parameters) {
    names.append(names.empty() ? "" : ", ").append(named.name);
    if (fnmatch(pattern.c_str(), named.name.c_str(), 0) == 0 && named.tensor.numel() > 0) {
      matches.push_back(named);
    }
  }
  if (matches.empty()) {
    throw Error(fmt::format("no parameter matches '{}'; the model's are {}", pattern, names));
  }
  return matches;
}

Monitor::Monitor(std::string pattern, std::int64_t every, Sink sink)
    : pattern_(std::move(pattern)), every_(every), sink_(std::move(sink)) {
  if (every < 1) throw Error(fmt::format("a monitor every {} steps: at least 1 is needed", every));
}

void Monitor::on_added(Training& training) {
  static_cast<void>(matching(training.parameters(), pattern_));
}

bool Monitor::wants_gradients(const StepPlan& step) const {
  return step.index.value() % every_ == 0;
}

void Monitor::on_gradients(Training& training, const StepPlan& step,
                           std::span<const NamedTensor> gradients) {
  std::vector<TensorStatistics> tensors;
  for (const NamedTensor& parameter : matching(training.parameters(), pattern_)) {
    tensors.push_back(statistics_of(parameter, false));
    // A frozen parameter has none.
    const auto gradient = std::find_if(
        gradients.begin(), gradients.end(),
        [&](const NamedTensor& candidate) { return candidate.name == parameter.name; });
    if (gradient != gradients.end()) tensors.push_back(statistics_of(*gradient, true));
  }
  sink_(step, tensors);
}

}  // namespace rubato
