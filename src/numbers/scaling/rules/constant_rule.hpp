#pragma once

#include <string_view>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref for every batch size. This null rule shows the shape of all others, and is the
/// baseline for the benefit of scaling.
class ConstantRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "constant"; }
  [[nodiscard]] bool follows_batch_size() const override { return false; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

}  // namespace rubato
