#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/base/error.hpp>

#include "runs/config/run_option.hpp"

namespace rubato::test {

/// Text that sets the option to another value than its default. Where nothing fits, the test fails:
/// a new option with a language of its own needs an example here.
inline std::string other_value(const RunOption& option) {
  std::vector<std::string> candidates{"true",
                                      "false",
                                      "2",
                                      "0.5",
                                      "0.25",
                                      "softmax",
                                      "mse",
                                      "mnist:images",
                                      "one",
                                      "bf16",
                                      "none",
                                      "root:ramp=3",
                                      "cosine:total=5",
                                      "adam:beta1=0.8",
                                      "beta2=samples",
                                      "rescale",
                                      "sharded",
                                      "7epochs",
                                      "core=1,step=2",
                                      "rate=0.25,seed=6",
                                      "every=7",
                                      "core=2,factor=1.5",
                                      "weak:quantum=2",
                                      "substep=2",
                                      "on-demand",
                                      "noise-scale:max=1024",
                                      "flip",
                                      "in-order",
                                      "run@3",
                                      "noise:deviation=0.5",
                                      "perplexity",
                                      "train-loss",
                                      "all"};
  std::istringstream choices(option.accepted);
  for (std::string choice; choices >> choice;) {
    candidates.push_back(choice.substr(0, choice.find(',')));
  }
  const auto by_default = option.text(RunConfiguration());
  for (const std::string& candidate : candidates) {
    try {
      RunConfiguration configuration;
      option.set(configuration, candidate);
      if (option.text(configuration) != by_default) return candidate;
    } catch (const Error&) {
      continue;
    }
  }
  ADD_FAILURE() << "no example is a value of --" << option.name;
  return {};
}

/// The default configuration but for one option.
inline RunConfiguration with_other_value(const RunOption& option) {
  RunConfiguration configuration;
  option.set(configuration, other_value(option));
  return configuration;
}

}  // namespace rubato::test
