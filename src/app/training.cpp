#include "app/training.hpp"

#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/config/data_source.hpp>
#include <rubato/config/fault_options.hpp>
#include <rubato/core/memory.hpp>
#include <rubato/data/digits.hpp>
#include <rubato/data/idx.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/state/sha256.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/train/monitor.hpp>

#include "app/output.hpp"

namespace rubato::app {

namespace {

constexpr std::string_view kVectors = "vectors";

std::vector<std::string> patterns_of(const std::string& no_decay) {
  std::vector<std::string> patterns;
  std::istringstream text(no_decay);
  for (std::string pattern; std::getline(text, pattern, ',');) patterns.push_back(pattern);
  return patterns;
}

std::vector<ParameterGroup> parameter_groups(const std::string& no_decay) {
  std::vector<ParameterGroup> groups;
  for (const std::string& pattern : patterns_of(no_decay)) {
    groups.push_back(pattern == kVectors ? no_decay_for_vectors() : no_decay_for(pattern));
  }
  return groups;
}

std::optional<LookaheadOptions> lookahead_options(const RunConfiguration& options) {
  if (options.lookahead == 0) return std::nullopt;
  return LookaheadOptions{
      .k = options.lookahead, .alpha = options.lookahead_alpha, .start = options.lookahead_start};
}

}  // namespace

TrainOptions trainer_options(const RunConfiguration& options) {
  FaultOptions faults = parse_random_faults(options.faults);
  faults.planned = parse_faults(options.fault);
  return {.epochs = options.epochs,
          .iterations = options.iterations,
          .minibatch_size = options.minibatch,
          .learning_rate = options.learning_rate,
          .reference_batch_size = options.reference_batch,
          .rule = options.rule,
          .schedule = options.schedule,
          .schedule_unit = options.schedule_unit,
          .watch = options.watch,
          .optimizer = optimizer_options(options),
          .groups = parameter_groups(options.no_decay),
          .lookahead = lookahead_options(options),
          .clip_norm = options.clip_norm,
          .clip_value = options.clip_value,
          .seed = options.seed,
          .top_k = options.top_k,
          .log_noise = options.log_noise,
          .log_minibatches = options.log_minibatches,
          .cores = options.cores,
          .assignment = options.assignment,
          .reduce = options.reduce,
          .exact = options.exact,
          .faults = std::move(faults),
          .stragglers = parse_stragglers(options.straggler),
          .threads = static_cast<int>(options.threads)};
}

TorchOptions torch_options(const RunConfiguration& options) {
  const PrecisionOptions precision = parse_precision(options.precision);
  return {
      .precision = precision.precision,
      .loss_scale = precision.loss_scale,
      .operators = parse_own_operators(options.operators),
      .initializer = parse_initializer(options.initializer),
      .augment = options.augment_shift > 0 ? random_shift(options.augment_shift) : Augmentation()};
}

namespace {

// Of pixels and labels, as they were read: a quarter of the bytes that they become.
std::string fingerprint_of(const ImageSet& images) {
  Sha256 sha;
  sha.add(fmt::format("{}x{}x{}\n", images.count, images.height, images.width));
  sha.add(images.pixels.data(), images.pixels.size());
  sha.add(images.labels.data(), images.labels.size());
  return sha.hex();
}

}  // namespace

TrainingData load_training_data(const RunConfiguration& options) {
  const auto folder = mnist_folder(options.data);
  const TrainTestImages images = folder ? read_idx_folder(*folder) : builtin_digits();
  double pixels = 0;
  for (const ImageSet* set : {&images.train, &images.test}) {
    pixels += static_cast<double>(set->pixels.size());
  }
  require_memory(
      pixels * (1 + sizeof(float)),
      fmt::format("the data, {} images of {} x {} pixels as bytes and as floats, need",
                  images.train.count + images.test.count, images.train.height, images.train.width),
      "fewer or smaller images need less");
  // Both sets by the training set's statistics: the test set is not known beforehand.
  const PixelStatistics statistics = pixel_statistics(images.train);
  TrainingData data{.train = to_tensors(images.train, statistics),
                    .test = to_tensors(images.test, statistics),
                    .height = images.train.height,
                    .width = images.train.width};
  data.train.fingerprint = fingerprint_of(images.train);
  // What it is normalised by is the training set's.
  data.test.fingerprint = fingerprint_of(images.test);
  return data;
}

TorchTrainer make_trainer(const RunConfiguration& options, const TrainingData& data,
                          const Trace& trace) {
  return make_trainer(options, data, trace, trainer_options(options));
}

TorchTrainer make_trainer(const RunConfiguration& options, const TrainingData& data,
                          const Trace& trace, const TrainOptions& train) {
  TorchTrainer trainer(builtin_model(options.model, {.height = data.height, .width = data.width}),
                       nll_loss(options.label_smoothing), data.train, trace, train,
                       torch_options(options));
  trainer.set_test(data.test, nll_loss());
  for (const std::string& pattern : patterns_of(options.no_decay)) {
    if (pattern != kVectors) require_match(trainer, "--no-decay", pattern);
  }
  return trainer;
}

void require_match(const TorchTrainer& trainer, std::string_view option,
                   const std::string& pattern) {
  try {
    static_cast<void>(matching(trainer.objective().parameters(), pattern));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", option, error.what()));
  }
}

void warn_of_slow_blas(const char* program) {
  if (has_fast_blas()) return;
  print_error(
      fmt::format("{}: the BLAS in use is not known to be fast and may make training ten times "
                  "slower\ninstall an OpenBLAS (Debian: libopenblas0) or see update-alternatives\n",
                  program));
}

}  // namespace rubato::app
