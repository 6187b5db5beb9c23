#pragma once

#include <string>
#include <variant>

namespace rubato {

/// A setting that a run was made with, for HPARAMS, TensorBoard's table of runs.
struct Hyperparameter {
  std::string name{};
  std::variant<bool, double, std::string> value{};

  friend bool operator==(const Hyperparameter&, const Hyperparameter&) = default;
};

/// What the values of a hyperparameter are in all runs of an experiment.
enum class HyperparameterType { flag, number, text };

/// A column of HPARAMS that shows a hyperparameter.
struct HyperparameterColumn {
  std::string name{};
  HyperparameterType type = HyperparameterType::text;

  friend bool operator==(const HyperparameterColumn&, const HyperparameterColumn&) = default;
};

}  // namespace rubato
