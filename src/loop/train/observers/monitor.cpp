#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observers.hpp>

namespace rubato {

namespace {

// Also reads arrays that are not trained and have another type.
std::vector<double> numbers_of(const NamedArray& array) {
  std::vector<double> numbers(array.size());
  const auto copy = [&](auto values) { std::copy(values.begin(), values.end(), numbers.begin()); };
  switch (array.type) {
    case ElementType::f64:
      copy(array.values<double>());
      break;
    case ElementType::f32:
      copy(array.values<float>());
      break;
    case ElementType::i64:
      copy(array.values<std::int64_t>());
      break;
    default:
      throw Error(fmt::format("'{}' is {}, which a monitor does not read; accepted: F64, F32, I64",
                              array.name, name_of(array.type)));
  }
  return numbers;
}

}  // namespace

TensorStatistics statistics_of(const NamedArray& array, bool gradient) {
  const std::vector<double> numbers = numbers_of(array);
  double sum = 0;
  double squares = 0;
  for (const double number : numbers) {
    sum += number;
    squares += number * number;
  }
  const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
  return {.name = array.name,
          .gradient = gradient,
          .norm = std::sqrt(squares),
          .mean = sum / static_cast<double>(numbers.size()),
          .min = *min,
          .max = *max};
}

std::vector<NamedArray> matching(std::span<const NamedArray> parameters,
                                 const std::string& pattern) {
  std::vector<NamedArray> matches;
  std::string names;
  for (const NamedArray& named : parameters) {
    names.append(names.empty() ? "" : ", ").append(named.name);
    if (fnmatch(pattern.c_str(), named.name.c_str(), 0) == 0 && named.size() > 0) {
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
  if (!sink_) throw Error("a monitor without a sink; accepted: a function that it calls");
}

void Monitor::on_added(Training& training) {
  static_cast<void>(matching(training.parameters(), pattern_));
}

bool Monitor::wants_gradients(const StepPlan& step) const {
  return step.index.value() % every_ == 0;
}

void Monitor::on_gradients(Training& training, const StepPlan& step,
                           std::span<const NamedArray> gradients) {
  std::vector<TensorStatistics> tensors;
  for (const NamedArray& parameter : matching(training.parameters(), pattern_)) {
    tensors.push_back(statistics_of(parameter, false));
    // A frozen parameter has no gradient.
    const auto gradient =
        std::find_if(gradients.begin(), gradients.end(),
                     [&](const NamedArray& candidate) { return candidate.name == parameter.name; });
    if (gradient != gradients.end()) tensors.push_back(statistics_of(*gradient, true));
  }
  sink_(step, tensors);
}

}  // namespace rubato
