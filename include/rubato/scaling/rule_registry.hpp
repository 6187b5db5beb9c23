#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/spec.hpp>
#include <rubato/scaling/rule.hpp>

namespace rubato {

struct Strategy;  // core/family.hpp

/// The rules that can be asked for by name: the built-in ones, and a user's own.
///
///   constant         constant_rule.hpp
///   linear           linear_rule.hpp
///   root             root_rule.hpp
///   linear-momentum  linear_momentum_rule.hpp
///   adascale         adascale_rule.hpp
///   lbsgd            lbsgd_rule.hpp
///
/// strategies() has their arguments. All whose rate follows the batch size take ramp=N, too:
/// RampRule over N steps. What does nothing with the other arguments (epochs=3 with warmup=lars) is
/// refused.
class RuleRegistry {
 public:
  /// Reads the arguments that the rule takes, given or not: they are described by that.
  using Maker = std::function<std::unique_ptr<Rule>(Spec& arguments)>;
  /// The factor on the base learning rate.
  using Factor = std::function<double(const RuleInput& input)>;

  /// The built-in rules.
  RuleRegistry();

  /// Adds a rule of the user's own; `help` says what it is. Throws Error where the name is taken.
  void add(std::string name, Maker maker, std::string help = {});
  /// The same for a rule that is a function (LambdaRule).
  void add(const std::string& name, Factor factor, std::string help = {});

  [[nodiscard]] std::vector<std::string_view> names() const;
  /// All of them with their arguments. Throws what a maker throws without arguments.
  [[nodiscard]] std::vector<Strategy> strategies() const;

  /// The rule that `spec` asks for (core/spec.hpp): "linear", "adascale:smoothing=0.9". Throws
  /// Error for an unknown name, with the nearest, and for arguments that the rule does not take.
  [[nodiscard]] std::unique_ptr<Rule> make(std::string_view spec) const;

 private:
  struct Row {
    std::string name;
    std::string help;
    Maker make;
  };

  // Without finish().
  static std::unique_ptr<Rule> read(const Row& row, Spec& arguments);

  std::vector<Row> rows_;
};

/// The built-in rules alone.
[[nodiscard]] std::unique_ptr<Rule> make_rule(std::string_view spec);
[[nodiscard]] std::vector<std::string_view> rule_names();
[[nodiscard]] std::vector<Strategy> rules();

}  // namespace rubato
