#pragma once

#include <string>
#include <string_view>

#include <rubato/config/run_configuration.hpp>
#include <rubato/data/image_set.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/torch_trainer.hpp>

namespace rubato::app {

/// The data that a configuration asks for, normalised.
struct TrainingData {
  TensorDataset train;
  TensorDataset test;
  std::int64_t height = 0;
  std::int64_t width = 0;
};
[[nodiscard]] TrainingData load_training_data(const RunConfiguration& options);

/// The library's options for those of the configuration.
[[nodiscard]] TrainOptions trainer_options(const RunConfiguration& options);
[[nodiscard]] TorchOptions torch_options(const RunConfiguration& options);

/// Throws Error where a pattern that `option` was given matches none of the trainer's parameters.
void require_match(const TorchTrainer& trainer, std::string_view option,
                   const std::string& pattern);

/// A trainer for them, with its test set. Throws Error for what the trainer rejects, and where
/// --no-decay names parameters that the model has not.
[[nodiscard]] TorchTrainer make_trainer(const RunConfiguration& options, const TrainingData& data,
                                        const Trace& trace);
/// The same with `train` in place of trainer_options(options).
[[nodiscard]] TorchTrainer make_trainer(const RunConfiguration& options, const TrainingData& data,
                                        const Trace& trace, const TrainOptions& train);

/// To stderr, where the BLAS would make training ten times slower.
void warn_of_slow_blas(const char* program);

}  // namespace rubato::app
