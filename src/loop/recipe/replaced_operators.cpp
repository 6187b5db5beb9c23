#include <array>
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/training_options.hpp>

#include "base/core/text/split.hpp"

namespace rubato {

namespace {

struct Named {
  std::string_view name;
  bool ReplacedOperators::*member;
};
constexpr std::array<Named, 3> kNames{{{"convolution", &ReplacedOperators::convolution},
                                       {"max-pool", &ReplacedOperators::max_pool},
                                       {"batch-norm", &ReplacedOperators::batch_norm}}};

}  // namespace

ReplacedOperators parse_replaced_operators(std::string_view text) {
  if (text == "all") return {};
  if (text == "none") return ReplacedOperators::none();
  ReplacedOperators operators = ReplacedOperators::none();
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

std::string to_string(const ReplacedOperators& operators) {
  std::vector<std::string_view> names;
  for (const Named& named : kNames) {
    if (operators.*named.member) names.push_back(named.name);
  }
  if (names.empty()) return "none";
  if (names.size() == kNames.size()) return "all";
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace rubato
