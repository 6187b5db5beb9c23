// Which rule survives a larger batch? Trains the MNIST network at constant batch sizes under every
// rule, with the learning rate that was best at the smallest batch, and prints final accuracies and
// steps as a table.
//
// All rules but AdaScale train the same number of epochs. AdaScale trains until its gains add up to
// as many scale-invariant iterations as the smallest batch has steps in those epochs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/run.hpp>

#include "base/core/text/text_table.hpp"
#include "runs/config/values/data_source.hpp"

namespace rubato {
namespace {

struct Settings {
  // A folder of IDX files; the built-in digits if empty.
  std::string data;
  std::int64_t epochs = 3;
  std::vector<std::int64_t> batches{32, 256, 1024, 4096};
  std::int64_t seeds = 3;
  std::vector<std::string> rules{"constant",        "linear",         "root",
                                 "linear-momentum", "lbsgd:epochs=1", "adascale"};
  // The rates to try at the smallest batch size; a single one is used without a trial.
  std::vector<double> learning_rates{0.01, 0.02, 0.05, 0.1, 0.2};
  double momentum = 0.5;
  std::int64_t most_epochs = 100;
};

struct Outcome {
  // The test accuracy; empty if training diverged.
  std::optional<double> accuracy;
  std::int64_t steps = 0;
};

RunConfiguration configuration_of(const Settings& settings) {
  RunConfiguration configuration{.minibatch = 32, .reference_batch = settings.batches.front()};
  if (!settings.data.empty()) configuration.data = mnist_data(settings.data);
  configuration.momentum = settings.momentum;
  return configuration;
}

Outcome train(const Settings& settings, const std::shared_ptr<const Workload>& workload,
              const std::string& rule, std::int64_t batch, double learning_rate,
              std::int64_t seed) {
  RunConfiguration configuration = configuration_of(settings);
  configuration.trace = fmt::to_string(batch);
  configuration.rule = rule;
  configuration.learning_rate = learning_rate;
  configuration.epochs = settings.epochs;
  configuration.seed = static_cast<std::uint64_t>(seed);
  if (rule.starts_with("adascale")) {
    configuration.epochs = settings.most_epochs;
    const std::int64_t steps_per_epoch = workload->samples() / configuration.reference_batch;
    configuration.iterations = static_cast<double>(settings.epochs * steps_per_epoch);
  }
  const RunOutcome outcome = Run(configuration, workload).execute();
  const TrainResult& result = outcome.summary.value().result;
  if (outcome.end == RunEnd::diverged) return {.accuracy = {}, .steps = result.steps};
  return {.accuracy = result.final_test.value().accuracy, .steps = result.steps};
}

double tuned(const Settings& settings, const std::shared_ptr<const Workload>& workload) {
  if (settings.learning_rates.size() == 1) return settings.learning_rates.front();
  double best = 0;
  double best_accuracy = -1;
  for (const double rate : settings.learning_rates) {
    double accuracy = 0;
    for (std::int64_t seed = 1; seed <= settings.seeds; ++seed) {
      accuracy += train(settings, workload, "constant", settings.batches.front(), rate, seed)
                      .accuracy.value_or(0) /
                  static_cast<double>(settings.seeds);
    }
    fmt::print(stderr, "lr {} at batch {}: {:.2f} %\n", rate, settings.batches.front(),
               100 * accuracy);
    if (accuracy > best_accuracy) {
      best_accuracy = accuracy;
      best = rate;
    }
  }
  return best;
}

// Returns a cell such as "98.61 (98.52 - 98.70), 5625 steps".
std::string cell_of(const std::vector<Outcome>& runs) {
  std::vector<double> accuracies;
  std::int64_t steps = 0;
  for (const Outcome& one : runs) {
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

std::vector<Outcome> train_all_seeds(const Settings& settings,
                                     const std::shared_ptr<const Workload>& workload,
                                     const std::string& rule, std::int64_t batch, double rate) {
  std::vector<Outcome> runs;
  for (std::int64_t seed = 1; seed <= settings.seeds; ++seed) {
    runs.push_back(train(settings, workload, rule, batch, rate, seed));
  }
  return runs;
}

// Prints the table to stdout after all training, and each result to stderr as soon as it is known.
void print_table(const Settings& settings) {
  const auto workload = torch_workload(configuration_of(settings));
  const double rate = tuned(settings, workload);
  TextTable table(std::vector(1 + settings.batches.size(), Column::left));
  std::vector<std::string> header{"rule"};
  for (const std::int64_t batch : settings.batches)
    header.push_back(fmt::format("batch {}", batch));
  table.add(std::move(header));
  for (const std::string& rule : settings.rules) {
    std::vector<std::string> row{rule};
    for (const std::int64_t batch : settings.batches) {
      row.push_back(cell_of(train_all_seeds(settings, workload, rule, batch, rate)));
      fmt::print(stderr, "{} at batch {}: {}\n", rule, batch, row.back());
    }
    table.add(std::move(row));
  }
  fmt::print("\nlr {} at batch {}, momentum {}, {} epochs, seeds 1 to {}: test accuracy in %\n\n{}",
             rate, settings.batches.front(), settings.momentum, settings.epochs, settings.seeds,
             table.text());
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  try {
    rubato::use_right_kernels(argv);
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
    app.add_option("--lr", settings.learning_rates, "rates to choose from at the first batch size")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--momentum", settings.momentum)->capture_default_str();
    app.add_option("--most-epochs", settings.most_epochs, "the most epochs that adascale may take")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    rubato::print_table(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_rules: {}\n", error.what());
    return 2;
  }
  return 0;
}
