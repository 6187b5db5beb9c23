// Which rule survives a larger batch? Trains the MNIST network at constant batch sizes under every
// rule, with the learning rate that was best at the smallest batch, and prints final accuracies and
// steps as a table.
//
// All rules but AdaScale train the same number of epochs. AdaScale trains until its gains have come
// to as many scale-invariant iterations as the smallest batch has steps in those epochs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>
#include <rubato/data/digits.hpp>
#include <rubato/data/idx.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch/torch_trainer.hpp>

namespace rubato {
namespace {

struct Settings {
  // A folder of IDX files; the built-in digits where it is empty.
  std::string data;
  std::int64_t epochs = 3;
  std::vector<std::int64_t> batches{32, 256, 1024, 4096};
  std::int64_t seeds = 3;
  std::vector<std::string> rules{"constant",        "linear",         "root",
                                 "linear-momentum", "lbsgd:epochs=1", "adascale"};
  // Tried at the smallest batch size; a single one is taken as it is.
  std::vector<double> learning_rates{0.01, 0.02, 0.05, 0.1, 0.2};
  double momentum = 0.5;
  std::int64_t most_epochs = 100;
};

struct Data {
  TensorDataset train;
  TensorDataset test;
};

struct Run {
  // Empty where training diverged.
  std::optional<double> accuracy;
  std::int64_t steps = 0;
};

Data load(const std::string& folder) {
  const TrainTestImages images = folder.empty() ? builtin_digits() : read_idx_folder(folder);
  const PixelStatistics statistics = pixel_statistics(images.train);
  return {to_tensors(images.train, statistics), to_tensors(images.test, statistics)};
}

Run run(const Settings& settings, const Data& data, const std::string& rule, std::int64_t batch,
        double learning_rate, std::int64_t seed) {
  const std::int64_t reference = settings.batches.front();
  TrainOptions options{.epochs = settings.epochs,
                       .minibatch_size = 32,
                       .learning_rate = learning_rate,
                       .reference_batch_size = reference,
                       .rule = rule,
                       .optimizer = {.momentum = settings.momentum},
                       .seed = static_cast<std::uint64_t>(seed)};
  if (rule.starts_with("adascale")) {
    options.epochs = settings.most_epochs;
    const std::int64_t steps_per_epoch = data.train.size() / reference;
    options.iterations = static_cast<double>(settings.epochs * steps_per_epoch);
  }
  TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), data.train,
                       Trace::constant(batch), options);
  // One evaluation, of what training came to.
  Run result;
  try {
    result.steps = trainer.fit().steps;
    result.accuracy = trainer.evaluate(data.test).accuracy;
  } catch (const Diverged&) {
    result.steps = trainer.result().steps;
  }
  return result;
}

double tuned(const Settings& settings, const Data& data) {
  if (settings.learning_rates.size() == 1) return settings.learning_rates.front();
  double best = 0;
  double best_accuracy = -1;
  for (const double rate : settings.learning_rates) {
    double accuracy = 0;
    for (std::int64_t seed = 1; seed <= settings.seeds; ++seed) {
      accuracy += run(settings, data, "constant", settings.batches.front(), rate, seed)
                      .accuracy.value_or(0) /
                  static_cast<double>(settings.seeds);
    }
    fmt::print("lr {} at batch {}: {:.2f} %\n", rate, settings.batches.front(), 100 * accuracy);
    std::fflush(stdout);
    if (accuracy > best_accuracy) {
      best_accuracy = accuracy;
      best = rate;
    }
  }
  return best;
}

// "98.61 (98.52 - 98.70), 5625 steps"
std::string cell_of(const std::vector<Run>& runs) {
  std::vector<double> accuracies;
  std::int64_t steps = 0;
  for (const Run& one : runs) {
    if (one.accuracy) accuracies.push_back(100 * *one.accuracy);
    steps += one.steps / static_cast<std::int64_t>(runs.size());
  }
  if (accuracies.empty()) return "diverged";
  double mean = 0;
  for (const double accuracy : accuracies)
    mean += accuracy / static_cast<double>(accuracies.size());
  const auto [low, high] = std::minmax_element(accuracies.begin(), accuracies.end());
  std::string cell = fmt::format("{:.2f} ({:.2f} - {:.2f}), {} steps", mean, *low, *high, steps);
  if (accuracies.size() < runs.size()) {
    cell += fmt::format(", {} of {} diverged", runs.size() - accuracies.size(), runs.size());
  }
  return cell;
}

void print_table(const Settings& settings) {
  const Data data = load(settings.data);
  const double rate = tuned(settings, data);
  fmt::print("\nlr {} at batch {}, momentum {}, {} epochs, seeds 1 to {}: test accuracy in %\n\n",
             rate, settings.batches.front(), settings.momentum, settings.epochs, settings.seeds);
  fmt::print("| rule | batch {} |\n", fmt::join(settings.batches, " | batch "));
  fmt::print("|---|{}\n", fmt::join(std::vector<std::string>(settings.batches.size(), "---|"), ""));
  for (const std::string& rule : settings.rules) {
    fmt::print("| {} |", rule);
    for (const std::int64_t batch : settings.batches) {
      std::vector<Run> runs;
      for (std::int64_t seed = 1; seed <= settings.seeds; ++seed) {
        runs.push_back(run(settings, data, rule, batch, rate, seed));
      }
      fmt::print(" {} |", cell_of(runs));
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  try {
    rubato::Settings settings;
    CLI::App app("Final accuracy and steps of every rule at constant batch sizes.", "bench_rules");
    app.add_option("--data", settings.data, "folder of IDX files [the built-in digits]");
    app.add_option("--epochs", settings.epochs, "epochs, at the smallest batch size")
        ->capture_default_str();
    app.add_option("--batches", settings.batches, "batch sizes, the first is the reference")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--seeds", settings.seeds)->capture_default_str();
    app.add_option("--rules", settings.rules)->capture_default_str();
    app.add_option("--lr", settings.learning_rates, "to choose from at the first batch size")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--momentum", settings.momentum)->capture_default_str();
    app.add_option("--most-epochs", settings.most_epochs, "that adascale may take")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    rubato::print_table(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_rules: {}\n", error.what());
    return 2;
  }
  return 0;
}
