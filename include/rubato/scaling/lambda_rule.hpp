#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <rubato/scaling/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref x factor(step): a rule of the user's own, without a class.
///
///     rubato::LambdaRule log2("log2", [](const rubato::RuleInput& step) {
///       return 1 + std::log2(step.scale());
///     });
class LambdaRule final : public Rule {
 public:
  LambdaRule(std::string name, std::function<double(const RuleInput& input)> factor)
      : name_(std::move(name)), factor_(std::move(factor)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Rates rates(const RuleInput& input) override {
    return scaled(input, factor_(input));
  }

 private:
  std::string name_;
  std::function<double(const RuleInput& input)> factor_;
};

}  // namespace rubato
