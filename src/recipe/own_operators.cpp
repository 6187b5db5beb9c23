#include <array>
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/recipe/own_operators.hpp>

#include "core/split.hpp"

namespace rubato {

namespace {

struct Named {
  std::string_view name;
  bool OwnOperators::*member;
};
constexpr std::array<Named, 3> kNames{{{"convolution", &OwnOperators::convolution},
                                       {"max-pool", &OwnOperators::max_pool},
                                       {"batch-norm", &OwnOperators::batch_norm}}};

}  // namespace

OwnOperators parse_own_operators(std::string_view text) {
  if (text == "all") return {};
  if (text == "none") return OwnOperators::none();
  OwnOperators operators = OwnOperators::none();
  std::vector<std::string_view> accepted{"all", "none"};
  for (const Named& named : kNames) accepted.push_back(named.name);
  for (const std::string_view name : split_at(text, ',')) {
    bool found = false;
    for (const Named& named : kNames) {
      if (named.name != name) continue;
      operators.*named.member = true;
      found = true;
    }
    if (!found) throw Error(unknown_name_message("operator", name, accepted));
  }
  return operators;
}

std::string to_string(const OwnOperators& operators) {
  std::vector<std::string_view> names;
  for (const Named& named : kNames) {
    if (operators.*named.member) names.push_back(named.name);
  }
  if (names.empty()) return "none";
  if (names.size() == kNames.size()) return "all";
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace rubato
