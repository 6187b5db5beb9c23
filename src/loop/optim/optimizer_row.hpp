// One optimizer, as everything knows it but its own arithmetic. Its row stands in its file, and
// optimizer_options.cpp has the list of the rows.
#pragma once

#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/optimizer.hpp>

#include "make_optimizer.hpp"

namespace rubato {

/// A number among the options of a method.
struct MethodNumber {
  /// Its names as an argument, and in messages.
  std::string_view key;
  std::string_view name;
  double* value = nullptr;
  RealRange range;
};

/// Makes an optimizer of options that have been checked.
template <class T>
using OptimizerMaker = std::unique_ptr<FlatOptimizer<T>> (*)(const OptimizerOptions& options,
                                                             const ParameterLayout& layout,
                                                             std::vector<GroupOptions> groups);

struct OptimizerRow {
  std::string_view name;
  std::string_view help;
  /// The name in memory_kind(); equal for optimizers that remember the same.
  std::string_view memory_name = name;
  /// Returns whether the options are those of this optimizer.
  bool (*is)(const OptimizerMethod& method) = nullptr;
  /// The numbers among the options, in `method`, which is one of this row.
  std::vector<MethodNumber> (*numbers)(OptimizerMethod& method) = nullptr;
  /// Reads the other options.
  void (*read)(Spec& spec, OptimizerMethod& method) = nullptr;
  /// Sets Nesterov's momentum, which --nesterov asks for; null if it is no option of the method.
  void (*set_nesterov)(OptimizerMethod& method) = nullptr;
  /// Throws Error for options that are not allowed, besides numbers out of range.
  void (*check)(const OptimizerOptions& options) = nullptr;
  MethodFacts (*facts)(const OptimizerMethod& method) = nullptr;

  // The following members are set by row_of_method().

  /// The options of `method` if they are of this row's type, else their defaults.
  OptimizerMethod (*options_of)(const OptimizerMethod& method) = nullptr;
  std::tuple<OptimizerMaker<float>, OptimizerMaker<double>> make{};
};

template <class T, template <class> class Optimizer>
std::unique_ptr<FlatOptimizer<T>> make_for_row(const OptimizerOptions& options,
                                               const ParameterLayout& layout,
                                               std::vector<GroupOptions> groups) {
  return std::make_unique<Optimizer<T>>(options, layout, std::move(groups));
}

/// Completes a row by the type of its options and by the class of its optimizer.
template <class Options, template <class> class Optimizer>
[[nodiscard]] OptimizerRow row_of_method(OptimizerRow row) {
  row.options_of = [](const OptimizerMethod& method) -> OptimizerMethod {
    return method_options<Options>(method);
  };
  if (row.is == nullptr) {
    row.is = [](const OptimizerMethod& method) { return std::holds_alternative<Options>(method); };
  }
  row.make = {make_for_row<float, Optimizer>, make_for_row<double, Optimizer>};
  return row;
}

// The optimizers, each in its file.
[[nodiscard]] OptimizerRow sgd_row();
[[nodiscard]] OptimizerRow lars_row();
[[nodiscard]] OptimizerRow adam_row();
[[nodiscard]] OptimizerRow adamw_row();
[[nodiscard]] OptimizerRow rmsprop_row();
[[nodiscard]] OptimizerRow adagrad_row();
[[nodiscard]] OptimizerRow muon_row();

}  // namespace rubato
