// The list of the optimizers, and everything that asks the row of one. Programs set options without
// a text, so parsing alone would not suffice: require_valid() checks the same numbers that
// read_method() parses. AdamW has a row of its own, but it is Adam with a flag and not an
// alternative of OptimizerMethod.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/optimizer.hpp>

#include "base/core/throw_error.hpp"
#include "make_optimizer.hpp"
#include "optimizer_row.hpp"
#include "ranges.hpp"

namespace rubato {

namespace {

void require(double value, std::string_view what, const RealRange& range) {
  if (range.holds(value)) return;
  // In a message a range is said of values: "from 0 to below 1".
  std::string_view accepted = range.words;
  accepted.remove_prefix(std::string_view("a number ").size());
  throw_error("{} {}: accepted are values {}", what, value, accepted);
}

// In the order in which they are listed.
const auto& rows() {
  static const std::array all{sgd_row(),     lars_row(),    adam_row(), adamw_row(),
                              rmsprop_row(), adagrad_row(), muon_row()};
  return all;
}

const OptimizerRow& row_of(const OptimizerMethod& method) {
  return *std::ranges::find_if(rows(), [&](const OptimizerRow& row) { return row.is(method); });
}

std::vector<MethodNumber> numbers_of(const OptimizerRow& row, OptimizerMethod& method) {
  return row.numbers == nullptr ? std::vector<MethodNumber>() : row.numbers(method);
}

// Reads the arguments of a method; without one, an option has the value of `defaults` if that is
// the same method.
OptimizerMethod read_method(const OptimizerRow& row, Spec& spec, const OptimizerMethod& defaults) {
  OptimizerMethod method = row.options_of(defaults);
  for (const MethodNumber& number : numbers_of(row, method)) {
    *number.value = spec.real(number.key, *number.value, number.range);
  }
  if (row.read != nullptr) row.read(spec, method);
  return method;
}

void require_factors(double momentum, double weight_decay) {
  require(momentum, "momentum", kBelowOne);
  require(weight_decay, "weight decay", kNotNegative);
}

}  // namespace

OptimizerOptions parse_optimizer(std::string_view text, const OptimizerOptions& defaults) {
  Spec spec(text);
  OptimizerOptions options = defaults;
  const OptimizerRow& row = find_row("optimizer", spec.name(), rows());
  options.method = read_method(row, spec, defaults.method);
  spec.finish();
  return options;
}

std::vector<Strategy> optimizers() {
  return strategies_of(rows(), [](const OptimizerRow& row, Spec& spec) {
    static_cast<void>(read_method(row, spec, {}));
  });
}

std::vector<std::string_view> optimizer_names() {
  return row_names(rows());
}

std::string_view optimizer_name(const OptimizerMethod& method) {
  return row_of(method).name;
}

MethodFacts facts_of(const OptimizerMethod& method) {
  return row_of(method).facts(method);
}

bool has_momentum(const OptimizerOptions& options) {
  const MethodFacts facts = facts_of(options.method);
  return facts.betas || (facts.usual_momentum && options.momentum != 0);
}

void set_nesterov(OptimizerMethod& method) {
  const OptimizerRow& row = row_of(method);
  if (row.set_nesterov != nullptr) return row.set_nesterov(method);
  std::vector<std::string_view> names;
  for (const OptimizerRow& other : rows()) {
    if (other.set_nesterov != nullptr) names.push_back(other.name);
  }
  throw Refused("nesterov", fmt::format("{} does not have it", row.name),
                fmt::format("with optimizer {}", fmt::join(names, ", ")));
}

void require_valid(const OptimizerOptions& options) {
  require_factors(options.momentum, options.weight_decay);
  const OptimizerRow& row = row_of(options.method);
  OptimizerMethod method = options.method;
  for (const MethodNumber& number : numbers_of(row, method)) {
    require(*number.value, number.name, number.range);
  }
  if (row.check != nullptr) row.check(options);
}

void require_valid(const OptimizerOptions& options, const std::vector<GroupOptions>& groups) {
  require_valid(options);
  for (const GroupOptions& group : groups) {
    require_factors(group.momentum.value_or(options.momentum),
                    group.weight_decay.value_or(options.weight_decay));
    if (!(group.learning_rate_factor >= 0)) {
      throw_error("learning-rate factor {} of a group: accepted are values of at least 0",
                  group.learning_rate_factor);
    }
  }
}

template <class T>
std::unique_ptr<FlatOptimizer<T>> make_optimizer(const OptimizerOptions& options,
                                                 const ParameterLayout& layout,
                                                 std::vector<GroupOptions> groups) {
  require_valid(options, groups);
  const auto make = std::get<OptimizerMaker<T>>(row_of(options.method).make);
  return make(options, layout, std::move(groups));
}

template std::unique_ptr<FlatOptimizer<float>> make_optimizer<float>(const OptimizerOptions&,
                                                                     const ParameterLayout&,
                                                                     std::vector<GroupOptions>);
template std::unique_ptr<FlatOptimizer<double>> make_optimizer<double>(const OptimizerOptions&,
                                                                       const ParameterLayout&,
                                                                       std::vector<GroupOptions>);

int remembered_values(const OptimizerOptions& options, const std::vector<GroupOptions>& groups) {
  const MethodFacts facts = facts_of(options.method);
  const bool velocity = facts.usual_momentum && any_momentum(options.momentum, groups);
  return facts.remembered + (velocity ? 1 : 0);
}

std::string memory_kind(const OptimizerOptions& options) {
  return fmt::format("{}{} {}", row_of(options.method).memory_name,
                     options.momentum == 0 ? "" : " momentum", facts_of(options.method).memory);
}

namespace {

bool is_vector(const NamedArray& array) {
  return array.shape.size() <= 1;
}

bool has_name(const std::string& pattern, const NamedArray& array) {
  return fnmatch(pattern.c_str(), array.name.c_str(), 0) == 0;
}

}  // namespace

bool takes(const std::string& pattern, const NamedArray& array) {
  return pattern == kVectorsPattern ? is_vector(array) : has_name(pattern, array);
}

MatrixShape matrix_shape(const OptimizerMethod& method, const NamedArray& array) {
  if (is_vector(array)) return {};
  const std::string pattern = facts_of(method).elements;
  if (!pattern.empty() && has_name(pattern, array)) return {};
  MatrixShape shape{.rows = static_cast<std::size_t>(array.shape.front()), .columns = 1};
  for (const std::int64_t size : std::span(array.shape).subspan(1)) {
    shape.columns *= static_cast<std::size_t>(size);
  }
  return shape;
}

namespace {

constexpr GroupOptions kNoDecay{.weight_decay = 0.0, .layer_wise = false};

}  // namespace

ParameterGroup no_decay_for_vectors() {
  return {.name = std::string(kVectorsPattern), .takes = is_vector, .options = kNoDecay};
}

ParameterGroup no_decay_for(const std::string& pattern) {
  return {.name = pattern,
          .takes = [pattern](const NamedArray& array) { return has_name(pattern, array); },
          .options = kNoDecay};
}

}  // namespace rubato
