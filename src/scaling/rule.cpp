#include <algorithm>
#include <array>

#include <rubato/core/choice.hpp>
#include <rubato/scaling/constant_rule.hpp>
#include <rubato/scaling/linear_momentum_rule.hpp>
#include <rubato/scaling/linear_rule.hpp>
#include <rubato/scaling/root_rule.hpp>
#include <rubato/scaling/rule.hpp>

namespace rubato {

namespace {

template <class R>
std::unique_ptr<Rule> make() {
  return std::make_unique<R>();
}

constexpr std::array<std::string_view, 4> kNames{"constant", "linear", "root", "linear-momentum"};
constexpr std::array<std::unique_ptr<Rule> (*)(), kNames.size()> kMakers{
    make<ConstantRule>, make<LinearRule>, make<RootRule>, make<LinearMomentumRule>};

}  // namespace

std::span<const std::string_view> rule_names() {
  return kNames;
}

std::unique_ptr<Rule> make_rule(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) throw Error(unknown_name_message("rule", name, kNames));
  return kMakers.at(static_cast<std::size_t>(found - kNames.begin()))();
}

}  // namespace rubato
