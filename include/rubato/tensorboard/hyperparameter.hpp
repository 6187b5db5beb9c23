#pragma once

#include <string>
#include <variant>

namespace rubato {

/// What a run was made with, for TensorBoard's table of runs (HPARAMS).
struct Hyperparameter {
  std::string name{};
  std::variant<bool, double, std::string> value{};

  friend bool operator==(const Hyperparameter&, const Hyperparameter&) = default;
};

}  // namespace rubato
