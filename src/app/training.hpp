#pragma once

#include <string>
#include <string_view>

#include <rubato/data/image_set.hpp>
#include <rubato/train/dataset.hpp>
#include <rubato/train/trainer.hpp>

#include "app/train_options.hpp"

namespace rubato::app {

/// The data that options ask for, normalised.
struct TrainingData {
  TensorDataset train;
  TensorDataset test;
  std::int64_t height = 0;
  std::int64_t width = 0;
};
[[nodiscard]] TrainingData load_training_data(const TrainCommandOptions& options);

/// The library's options for those of the command line.
[[nodiscard]] TrainOptions trainer_options(const TrainCommandOptions& options);

/// Throws Error where a pattern that `option` was given matches none of the trainer's parameters.
void require_match(const Trainer& trainer, std::string_view option, const std::string& pattern);

/// A trainer for them, with its test set. Throws Error for what the trainer rejects, and where
/// --no-decay names parameters that the model has not.
[[nodiscard]] Trainer make_trainer(const TrainCommandOptions& options, const TrainingData& data,
                                   const Trace& trace, Dealing dealing = Dealing::by_thread);

/// To stderr, where the BLAS would make training ten times slower.
void warn_of_slow_blas(const char* program);

}  // namespace rubato::app
