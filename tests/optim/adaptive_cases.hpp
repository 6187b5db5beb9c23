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
  return {
      {"adam", {.method = AdamOptions{}}},
      {"adam's beta1", {.method = AdamOptions{.beta1 = 0.5}}},
      {"adam's beta2", {.method = AdamOptions{.beta2 = 0.7}}},
      {"adam's epsilon", {.method = AdamOptions{.epsilon = 0.1}}},
      {"adam's amsgrad", {.method = AdamOptions{.beta2 = 0.3, .amsgrad = true}}},
      {"adam's weight decay", {.method = AdamOptions{}, .weight_decay = 0.1}},
      {"all of adam",
       {.method = AdamOptions{.beta1 = 0.8, .beta2 = 0.6, .amsgrad = true, .epsilon = 1e-3},
        .weight_decay = 0.03}},
      {"adamw", {.method = AdamOptions{.decoupled = true}}},
      {"adamw's weight decay", {.method = AdamOptions{.decoupled = true}, .weight_decay = 0.1}},
      {"all of adamw",
       {.method =
            AdamOptions{
                .beta1 = 0.8, .beta2 = 0.6, .amsgrad = true, .epsilon = 1e-3, .decoupled = true},
        .weight_decay = 0.03}},
      {"adam of minibatches",
       {.method = AdamOptions{.beta2 = 0.6, .second_moment = SecondMoment::minibatch},
        .weight_decay = 0.1}},
      {"all of adamw of minibatches",
       {.method = AdamOptions{.beta1 = 0.8,
                              .beta2 = 0.6,
                              .amsgrad = true,
                              .epsilon = 1e-3,
                              .decoupled = true,
                              .second_moment = SecondMoment::minibatch},
        .weight_decay = 0.03}},
      {"rmsprop", {.method = RmspropOptions{}}},
      {"rmsprop's alpha", {.method = RmspropOptions{.alpha = 0.5}}},
      {"rmsprop's epsilon", {.method = RmspropOptions{.epsilon = 0.1}}},
      {"rmsprop's momentum", {.method = RmspropOptions{}, .momentum = 0.9}},
      {"rmsprop's weight decay", {.method = RmspropOptions{}, .weight_decay = 0.1}},
      {"centred rmsprop", {.method = RmspropOptions{.alpha = 0.9, .centered = true}}},
      {"all of rmsprop",
       {.method = RmspropOptions{.alpha = 0.8, .centered = true, .epsilon = 1e-3},
        .momentum = 0.5,
        .weight_decay = 0.03}},
      {"adagrad", {.method = AdagradOptions{.epsilon = 1e-10}}},
      {"adagrad's epsilon", {.method = AdagradOptions{.epsilon = 0.1}}},
      {"adagrad's weight decay", {.method = AdagradOptions{}, .weight_decay = 0.1}},
      {"adagrad's decay of the rate", {.method = AdagradOptions{.lr_decay = 0.3}}},
      {"adagrad's accumulator", {.method = AdagradOptions{.initial_accumulator = 0.7}}},
      {"all of adagrad",
       {.method = AdagradOptions{.lr_decay = 0.1, .initial_accumulator = 0.2, .epsilon = 1e-3},
        .weight_decay = 0.03}}};
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
