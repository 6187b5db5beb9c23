#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include <rubato/recipe/optimizer_options.hpp>

#include "app/command_line.hpp"
#include "app/elasticity_options.hpp"

namespace rubato::app {

/// Hardware threads that this process may use, by its affinity and its control groups; at least 1.
[[nodiscard]] std::int64_t hardware_threads();

/// What `rubato train` was asked for. Every value is in its range after parse_train_options().
struct TrainCommandOptions {
  /// "digits" (built in) or "mnist:DIR"; see mnist_folder().
  std::string data = "digits";
  /// "mnist-cnn", "mlp", "softmax" or "toy-net".
  std::string model = "mnist-cnn";

  ElasticityOptions elasticity;

  /// As make_rule() takes it.
  std::string rule = "linear";
  /// Samples: the batch size for which `learning_rate` is meant.
  std::int64_t reference_batch = 128;
  double learning_rate = 0.01;
  /// As make_lr_schedule() takes it.
  std::string schedule = "constant";
  /// One of kScheduleUnits.
  std::string schedule_unit = "epochs";

  /// As parse_optimizer() takes it.
  std::string optimizer = "sgd";
  /// Where it is not the optimizer's usual one.
  std::optional<double> momentum;
  bool nesterov = false;
  double weight_decay = 0;
  /// Patterns of parameter names, with commas between them; "vectors" is all of one dimension.
  std::string no_decay;
  std::optional<double> clip_norm;
  std::optional<double> clip_value;
  /// Updates between two meetings of slow and fast weights; 0 is no Lookahead.
  std::int64_t lookahead = 0;
  double lookahead_alpha = 0.5;
  /// One of kLookaheadStarts.
  std::string lookahead_start = "before";

  /// As parse_initializer() takes it.
  std::string initializer = "default";
  /// As parse_precision() takes it.
  std::string precision = "full";
  /// As parse_own_operators() takes it.
  std::string operators = "all";
  double label_smoothing = 0;
  /// Pixels by which training images are moved at random, at most; 0 is not at all.
  std::int64_t augment_shift = 0;

  std::int64_t epochs = 5;
  std::optional<double> iterations;
  std::uint64_t seed = 42;
  /// "train-loss", "test-loss" or "test-accuracy".
  std::string watch = "test-loss";
  /// Epochs without improvement of `watch` before training stops; 0 is no early stopping.
  std::int64_t patience = 0;
  double min_delta = 0;
  bool keep_best = false;
  /// 0 is none.
  std::int64_t top_k = 0;
  std::int64_t threads = hardware_threads();
  /// "native" or "portable".
  std::string kernels = "native";
  /// "auto" or one of reducer_names().
  std::string reduce = "auto";
  /// Refuses reducers that are not exact.
  bool exact = true;
  /// As parse_checkpoint_interval() takes it.
  std::string checkpoint_every = "60seconds";
  /// Checkpoints that are kept, at least 1.
  std::int64_t keep = 3;
  /// As parse_faults(), parse_random_faults() and parse_stragglers() take them.
  std::string fault;
  std::string faults;
  std::string straggler;
  /// Test accuracy in percent that the run must reach, or its exit code is 21: at its end, or with
  /// target_best in any of its epochs.
  std::optional<double> target_accuracy;
  bool target_best = false;

  /// Steps between two progress lines when stdout is no terminal; 0 leaves one line per epoch.
  std::int64_t log_steps = 10;
  bool log_noise = false;
  bool log_minibatches = false;
  /// Pattern of parameter names; empty is no monitor.
  std::string monitor;
  std::int64_t monitor_every = 100;
  bool quiet = false;
  bool verbose = false;
  /// Of `rubato verify`: steps in each training.
  std::int64_t steps = 24;
  /// The run folder; see run_folder().
  std::optional<std::filesystem::path> out;
  /// The run folder of a run to go on with, and the one of its checkpoints to go on from; empty for
  /// the newest good one.
  std::optional<std::filesystem::path> resume;
  std::optional<std::filesystem::path> checkpoint;

  GivenOptions given;

  friend bool operator==(const TrainCommandOptions&, const TrainCommandOptions&) = default;
};

/// The commands that take these options.
enum class TrainCommand { train, verify };

/// Reads the arguments behind `rubato train` (or `rubato verify`), with those of the file that
/// --config names, or of the run that --resume names. Empty
/// when they ask for the help, which is then printed. Throws Error for what the user got wrong,
/// without looking into the trace or the data.
[[nodiscard]] std::optional<TrainCommandOptions> parse_train_options(
    std::span<const std::string> arguments, TrainCommand command = TrainCommand::train);

/// What the configuration of a run alone says, not checked for what else it needs: it may name data
/// that lie elsewhere now.
[[nodiscard]] TrainCommandOptions options_of_run(const std::filesystem::path& run);

/// The optimizer with all that belongs to it.
[[nodiscard]] OptimizerOptions optimizer_options(const TrainCommandOptions& options);

/// The folder of the IDX files; empty for the built-in digits.
[[nodiscard]] std::optional<std::filesystem::path> mnist_folder(const TrainCommandOptions& options);

/// The text of a configuration file in `folder` that reproduces the run: all options but --out,
/// --quiet, --config and --resume. Paths to what is inside `folder` are relative to it, others are
/// absolute, so that the folder may be moved. --config reads it back to the same options.
[[nodiscard]] std::string to_config(const TrainCommandOptions& options,
                                    const std::filesystem::path& folder);

}  // namespace rubato::app
