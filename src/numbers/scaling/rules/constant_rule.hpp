#pragma once

#include <string_view>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref, whatever the batch size. The null rule: the shape of every other one, and the
/// baseline that shows what scaling is worth.
class ConstantRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "constant"; }
  [[nodiscard]] bool follows_batch_size() const override { return false; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

}  // namespace rubato
