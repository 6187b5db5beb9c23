// Is the virtual clock's model of a step right? Predicts how long steps take on this machine's
// threads (rubato/runs/calibration.hpp, docs/cluster.md), measures them, and prints both.
//
// For each model and minibatch size, it calibrates, predicts a step of every number of cores, and
// measures such steps in turns. All of this is repeated in several rounds, so that a drifting
// machine affects prediction and measurement alike: an error compares a round's calibration with
// the steps of the same round.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/calibration.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/seconds.hpp"
#include "base/core/text/text_table.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/lab/measure.hpp"

namespace rubato {
namespace {

struct Settings {
  // The models to measure, as ENGINE/MODEL.
  std::vector<std::string> models{"libtorch/mnist-cnn", "libtorch/mlp", "eigen/mlp:hidden=512/512",
                                  "eigen/softmax"};
  std::vector<std::int64_t> minibatches{8, 32, 128};
  std::vector<std::int64_t> cores{1, 2, 8, 64};
  // The number of substeps of each core in a measured step.
  std::int64_t substeps = 3;
  int threads = static_cast<int>(hardware_threads());
  std::int64_t rounds = 5;
  // The seconds for each calibration, and for measuring all steps of a model and minibatch size.
  double seconds = 1.5;
  bool quick = false;
  std::string json;
};

// A way to predict the time of a step from calibrations.
struct Method {
  const char* name;
  const char* help;
  MachineCalibration (*of)(const MachineCalibration&);
};
constexpr std::array<Method, 4> kMethods{{
    {"alone", "calibrated with one core at work",
     [](const MachineCalibration& all) {
       MachineCalibration one{all.alone, all.alone};
       one.together.threads = all.threads();
       return one;
     }},
    {"together", "calibrated with a core on each thread",
     [](const MachineCalibration& all) {
       return MachineCalibration{all.together, all.together};
     }},
    {"both", "calibrated with both, and the line between them",
     [](const MachineCalibration& all) {
       return MachineCalibration{all.alone, all.together};
     }},
    {"all", "calibrated with many cores on each thread, too",
     [](const MachineCalibration& all) { return all; }},
}};

constexpr double kGoodError = 0.1;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// A row of the table, with the results of all rounds.
struct Cell {
  std::string model;
  std::int64_t minibatch = 0;
  std::int64_t cores = 0;
  std::vector<double> measured{};
  std::vector<MachineCalibration> calibrations{};
  std::array<std::vector<double>, kMethods.size()> predicted{};

  // The median error of the predicted seconds, relative to the measured ones.
  [[nodiscard]] double error(std::size_t method) const {
    std::vector<double> errors;
    for (std::size_t round = 0; round < measured.size(); ++round) {
      errors.push_back(predicted[method][round] / measured[round] - 1);
    }
    return median_of(errors);
  }
};

std::vector<double> sizes_of_errors(const std::vector<Cell>& cells, std::size_t method) {
  std::vector<double> sizes;
  sizes.reserve(cells.size());
  for (const Cell& cell : cells) sizes.push_back(std::abs(cell.error(method)));
  return sizes;
}

RunConfiguration configuration_of(const std::string& model, std::int64_t minibatch) {
  const std::size_t slash = model.find('/');
  const std::string engine = model.substr(0, slash);
  if (slash == std::string::npos || (engine != "eigen" && engine != "libtorch")) {
    throw Error(fmt::format("model {}; accepted: eigen/MODEL or libtorch/MODEL", model));
  }
  return {.model = model.substr(slash + 1),
          .engine = engine == "eigen" ? Engine::eigen : Engine::libtorch,
          .minibatch = minibatch};
}

std::shared_ptr<const Workload> workload_of(const RunConfiguration& configuration) {
  return configuration.engine == Engine::eigen ? dense_workload(configuration)
                                               : torch_workload(configuration);
}

// The number of steps of each kind that follow each other. The first of them finds the caches as
// the kind before has left them, and is not counted.
constexpr std::int64_t kEqualSteps = 4;

// Measures steps of several kinds in turns, and pauses training when enough time has passed.
class MeasuredSteps final : public Observer {
 public:
  MeasuredSteps(std::int64_t kinds, double seconds)
      : in_turn_(kEqualSteps * kinds), seconds_(seconds) {}

  void on_epoch_begin(Training&, const EpochStart&) override { step_.lap(); }
  void on_step(Training& training, const StepRecord& step) override {
    const double seconds = step_.lap();
    if (steps_ % kEqualSteps > 0) seconds_of_[step.plan.cores].push_back(seconds);
    ++steps_;
    if (steps_ % in_turn_ == 0 && all_.seconds() > seconds_) training.pause();
    step_.lap();
  }

  [[nodiscard]] double median(std::int64_t cores) const { return median_of(seconds_of_.at(cores)); }

 private:
  std::int64_t in_turn_;
  double seconds_;
  std::int64_t steps_ = 0;
  std::map<std::int64_t, std::vector<double>> seconds_of_;
  Stopwatch all_;
  Stopwatch step_;
};

std::shared_ptr<const MeasuredSteps> measured_steps(const Settings& settings,
                                                    const Workload& workload,
                                                    const RunConfiguration& configuration) {
  std::vector<TraceStep> turn;
  for (const std::int64_t cores : settings.cores) {
    turn.insert(
        turn.end(), kEqualSteps,
        {.batch_size = cores * settings.substeps * configuration.minibatch, .cores = cores});
  }
  TrainOptions options = train_options(configuration);
  options.threads = settings.threads;
  options.epochs = 1'000'000;
  // Steps of 64 cores are larger than the data set.
  options.remainder = Remainder::carry;
  options.learning_rate = 1e-9;
  Trainer trainer = make_trainer(
      workload, configuration,
      std::make_unique<TraceSource>(Trace(std::move(turn), TraceEnd::cycle, "turns")), options);
  auto steps = trainer.add_observer<MeasuredSteps>(static_cast<std::int64_t>(settings.cores.size()),
                                                   settings.seconds);
  static_cast<void>(trainer.fit());
  return steps;
}

void measure(const Settings& settings, std::vector<Cell>& cells, std::int64_t round) {
  auto cell = cells.begin();
  for (const std::string& model : settings.models) {
    for (const std::int64_t minibatch : settings.minibatches) {
      fmt::print(stderr, "round {} of {}: {}, minibatch {}\n", round, settings.rounds, model,
                 minibatch);
      const RunConfiguration configuration = configuration_of(model, minibatch);
      const auto workload = workload_of(configuration);
      const MachineCalibration calibration = calibrate_machine(
          *workload, configuration, {.threads = settings.threads, .seconds = settings.seconds});
      const auto steps = measured_steps(settings, *workload, configuration);
      for (const std::int64_t cores : settings.cores) {
        cell->measured.push_back(steps->median(cores));
        cell->calibrations.push_back(calibration);
        for (std::size_t method = 0; method < kMethods.size(); ++method) {
          cell->predicted[method].push_back(step_seconds_here(kMethods[method].of(calibration),
                                                              cores * settings.substeps, cores));
        }
        ++cell;
      }
    }
  }
}

std::vector<Cell> cells_of(const Settings& settings) {
  std::vector<Cell> cells;
  for (const std::string& model : settings.models) {
    for (const std::int64_t minibatch : settings.minibatches) {
      for (const std::int64_t cores : settings.cores) {
        cells.push_back({.model = model, .minibatch = minibatch, .cores = cores});
      }
    }
  }
  return cells;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", seconds * 1e3);
}
std::string percent(double share) {
  return fmt::format("{:+.1f}", share * 100);
}

void print_table(const Settings& settings, const std::vector<Cell>& cells) {
  TextTable table({Column::left, Column::right, Column::right, Column::right, Column::right,
                   Column::right, Column::right, Column::right, Column::right});
  std::vector<std::string> header{"model", "minibatch", "cores", "measured ms", "predicted ms"};
  for (const Method& method : kMethods) header.push_back(fmt::format("{} %", method.name));
  table.add(std::move(header));
  for (const Cell& cell : cells) {
    std::vector<std::string> row{cell.model, fmt::to_string(cell.minibatch),
                                 fmt::to_string(cell.cores), milliseconds(median_of(cell.measured)),
                                 milliseconds(median_of(cell.predicted.back()))};
    for (std::size_t method = 0; method < kMethods.size(); ++method) {
      row.push_back(percent(cell.error(method)));
    }
    table.add(std::move(row));
  }
  fmt::print("{} threads, {} minibatches of each core in a step, {} rounds\n\n{}\n",
             settings.threads, settings.substeps, settings.rounds, table.text());
  for (std::size_t method = 0; method < kMethods.size(); ++method) {
    const std::vector<double> errors = sizes_of_errors(cells, method);
    const auto good = std::count_if(errors.begin(), errors.end(),
                                    [](double error) { return error <= kGoodError; });
    fmt::print("{}: {}: error {:.1f} % (median), {:.1f} % (worst), at most {:.0f} % in {} of {}\n",
               kMethods[method].name, kMethods[method].help, 100 * median_of(errors),
               100 * *std::max_element(errors.begin(), errors.end()), 100 * kGoodError, good,
               errors.size());
  }
}

nlohmann::ordered_json json_of(const Calibration& calibration) {
  return {{"substep_seconds", calibration.substep_seconds},
          {"update_seconds", calibration.update_seconds},
          {"threads", calibration.threads},
          {"steps", calibration.steps},
          {"spread", calibration.spread}};
}

void write_json(const Settings& settings, const std::vector<Cell>& cells) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : lab::environment()) json["environment"][name] = value;
  json["threads"] = settings.threads;
  json["substeps"] = settings.substeps;
  json["rounds"] = settings.rounds;
  for (std::size_t method = 0; method < kMethods.size(); ++method) {
    const std::vector<double> errors = sizes_of_errors(cells, method);
    json["error"][kMethods[method].name] = {
        {"median", median_of(errors)}, {"worst", *std::max_element(errors.begin(), errors.end())}};
  }
  json["steps"] = nlohmann::ordered_json::array();
  for (const Cell& cell : cells) {
    nlohmann::ordered_json step{{"model", cell.model},
                                {"minibatch", cell.minibatch},
                                {"cores", cell.cores},
                                {"measured_seconds", cell.measured}};
    for (std::size_t method = 0; method < kMethods.size(); ++method) {
      step["predicted_seconds"][kMethods[method].name] = cell.predicted[method];
      step["error"][kMethods[method].name] = cell.error(method);
    }
    for (const MachineCalibration& calibration : cell.calibrations) {
      step["calibrations"].push_back({{"alone", json_of(calibration.alone)},
                                      {"together", json_of(calibration.together)},
                                      {"many_cores", json_of(calibration.many_cores)},
                                      {"many_full_cores", json_of(calibration.many_full_cores)}});
    }
    json["steps"].push_back(std::move(step));
  }
  std::ofstream file(settings.json);
  file << json.dump(2) << "\n";
  file.close();
  if (!file) throw Error(fmt::format("{} cannot be written", settings.json));
}

void check(Settings& settings) {
  if (settings.quick) {
    settings.rounds = 1;
    settings.seconds = 1e-3;
  }
  std::vector<Cell> cells = cells_of(settings);
  for (std::int64_t round = 1; round <= settings.rounds; ++round) measure(settings, cells, round);
  for (const auto& [name, value] : lab::environment()) fmt::print("{}: {}\n", name, value);
  print_table(settings, cells);
  if (!settings.json.empty()) write_json(settings, cells);
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  try {
    rubato::use_right_kernels(argv);
    rubato::Settings settings;
    CLI::App app("How long steps take on this machine, predicted and measured.",
                 "bench_step_model");
    const auto counts = [&app](const char* name, std::vector<std::int64_t>& values,
                               const char* help) {
      app.add_option(name, values, help)
          ->delimiter(',')
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
    };
    app.add_option("--models", settings.models, "ENGINE/MODEL, eigen or libtorch")
        ->capture_default_str();
    counts("--minibatches", settings.minibatches, "samples in a minibatch");
    counts("--cores", settings.cores, "emulated cores of a step");
    app.add_option("--substeps", settings.substeps, "minibatches of each core in a step")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--threads", settings.threads)
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--rounds", settings.rounds)->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--seconds", settings.seconds,
                   "for each calibration, and for the steps of a model and minibatch, in a round")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--quick", settings.quick,
                 "one round with very few steps, only to show that the program runs");
    app.add_option("--json", settings.json, "the file to write all numbers to");
    CLI11_PARSE(app, argc, argv);
    rubato::check(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_step_model: {}\n", error.what());
    return 2;
  }
  return 0;
}
