#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "loop/optim/make_optimizer.hpp"

namespace rubato::test {

struct AdaptiveCase {
  std::string name;
  OptimizerOptions options;
};

/// Adam, AdamW, RMSprop and Adagrad, with each option by itself and with all together.
[[nodiscard]] inline std::vector<AdaptiveCase> adaptive_cases() {
  constexpr auto kAdam = OptimizerKind::adam;
  constexpr auto kAdamw = OptimizerKind::adamw;
  constexpr auto kRmsprop = OptimizerKind::rmsprop;
  constexpr auto kAdagrad = OptimizerKind::adagrad;
  return {{"adam", {.kind = kAdam}},
          {"adam's beta1", {.kind = kAdam, .beta1 = 0.5}},
          {"adam's beta2", {.kind = kAdam, .beta2 = 0.7}},
          {"adam's epsilon", {.kind = kAdam, .epsilon = 0.1}},
          {"adam's amsgrad", {.kind = kAdam, .beta2 = 0.3, .amsgrad = true}},
          {"adam's weight decay", {.kind = kAdam, .weight_decay = 0.1}},
          {"all of adam",
           {.kind = kAdam,
            .weight_decay = 0.03,
            .beta1 = 0.8,
            .beta2 = 0.6,
            .amsgrad = true,
            .epsilon = 1e-3}},
          {"adamw", {.kind = kAdamw}},
          {"adamw's weight decay", {.kind = kAdamw, .weight_decay = 0.1}},
          {"all of adamw",
           {.kind = kAdamw,
            .weight_decay = 0.03,
            .beta1 = 0.8,
            .beta2 = 0.6,
            .amsgrad = true,
            .epsilon = 1e-3}},
          {"rmsprop", {.kind = kRmsprop}},
          {"rmsprop's alpha", {.kind = kRmsprop, .alpha = 0.5}},
          {"rmsprop's epsilon", {.kind = kRmsprop, .epsilon = 0.1}},
          {"rmsprop's momentum", {.kind = kRmsprop, .momentum = 0.9}},
          {"rmsprop's weight decay", {.kind = kRmsprop, .weight_decay = 0.1}},
          {"centred rmsprop", {.kind = kRmsprop, .alpha = 0.9, .centered = true}},
          {"all of rmsprop",
           {.kind = kRmsprop,
            .momentum = 0.5,
            .weight_decay = 0.03,
            .alpha = 0.8,
            .centered = true,
            .epsilon = 1e-3}},
          {"adagrad", {.kind = kAdagrad, .epsilon = 1e-10}},
          {"adagrad's epsilon", {.kind = kAdagrad, .epsilon = 0.1}},
          {"adagrad's weight decay", {.kind = kAdagrad, .weight_decay = 0.1}},
          {"adagrad's decay of the rate", {.kind = kAdagrad, .lr_decay = 0.3}},
          {"adagrad's accumulator", {.kind = kAdagrad, .initial_accumulator = 0.7}},
          {"all of adagrad",
           {.kind = kAdagrad,
            .weight_decay = 0.03,
            .lr_decay = 0.1,
            .initial_accumulator = 0.2,
            .epsilon = 1e-3}}};
}

/// Several tensors, of two groups in turns.
[[nodiscard]] inline ParameterLayout layout_of_tensors(const std::vector<std::size_t>& sizes) {
  ParameterLayout layout;
  layout.layer_ends.resize(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), layout.layer_ends.begin());
  for (std::size_t i = 0; i < sizes.size(); ++i) layout.layer_groups.push_back(i % 2);
  return layout;
}

}  // namespace rubato::test
