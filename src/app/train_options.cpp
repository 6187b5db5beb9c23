#include "app/train_options.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/runtime/reducer.hpp>
#include <rubato/scaling/rule.hpp>

#include "app/command_line.hpp"
#include "app/number.hpp"
#include "app/run_folder.hpp"
#include "app/trace_option.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr std::string_view kMnist = "mnist:";
constexpr std::array<std::string_view, 3> kModels{"mnist-cnn", "mlp", "softmax"};
constexpr std::int64_t kMaxThreads = 4096;
constexpr std::int64_t kMaxEpochs = 1'000'000;
constexpr std::int64_t kMaxLogSteps = 1'000'000'000;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr RealRange kLearningRates{0, kInfinity, false, false, "a number greater than 0"};
constexpr RealRange kMomenta{0, 1, true, false, "a number from 0 to below 1"};
constexpr RealRange kWeightDecays{0, kInfinity, true, false, "a number of at least 0"};
constexpr RealRange kAccuracies{0, 100, false, true, "a number above 0 and up to 100 (percent)"};

std::string known_name(std::string_view kind, const std::string& name,
                       std::span<const std::string_view> names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  throw Error(unknown_name_message(kind, name, names));
}

std::string known_data(const std::string& text) {
  if (text == "digits" || (text.starts_with(kMnist) && text.size() > kMnist.size())) return text;
  std::error_code ignored;
  if (std::filesystem::is_directory(text, ignored)) {
    throw Error(fmt::format("'{}' is a folder; did you mean '{}{}'?", text, kMnist, text));
  }
  throw Error(unknown_name_message("data set", text,
                                   std::array<std::string_view, 2>{"digits", "mnist:DIR"}));
}

void define_data(CommandLine& line, TrainCommandOptions& options) {
  line.group("Data and model");
  line.option("data", "digits|mnist:DIR",
              "the built-in digits (12,000 images), or the IDX files of MNIST, Fashion-MNIST or "
              "KMNIST in the folder DIR, raw or .gz",
              options.data, [&](const std::string& text) { options.data = known_data(text); });
  line.option("model", fmt::format("{}", fmt::join(kModels, "|")),
              "the network: two convolutions, two linear layers, or one", options.model,
              [&](const std::string& text) { options.model = known_name("model", text, kModels); });
}

void define_optimizer(CommandLine& line, TrainCommandOptions& options) {
  line.group("Optimizer (SGD)");
  line.option(
      "rule", fmt::format("{}", fmt::join(rule_names(), "|")),
      "how the learning rate follows the batch size", options.rule,
      [&](const std::string& text) { options.rule = known_name("rule", text, rule_names()); });
  line.option("ref-batch", "N", "the batch size, in samples, for which --lr is meant",
              fmt::to_string(options.reference_batch), [&](const std::string& text) {
                options.reference_batch = parse_whole(text, 1, kMaxBatchSize);
              });
  line.option(
      "lr", "X", "learning rate at the reference batch size", fmt::to_string(options.learning_rate),
      [&](const std::string& text) { options.learning_rate = parse_real(text, kLearningRates); });
  line.option("momentum", "X", "momentum, from 0 to below 1", fmt::to_string(options.momentum),
              [&](const std::string& text) { options.momentum = parse_real(text, kMomenta); });
  line.flag("nesterov", "Nesterov's momentum", options.nesterov);
  line.option(
      "weight-decay", "X", "L2 penalty on the parameters", "0",
      [&](const std::string& text) { options.weight_decay = parse_real(text, kWeightDecays); });
}

void define_run(CommandLine& line, TrainCommandOptions& options) {
  line.group("Run");
  line.option("epochs", "N", "epochs to train", fmt::to_string(options.epochs),
              [&](const std::string& text) { options.epochs = parse_whole(text, 1, kMaxEpochs); });
  line.option("seed", "N",
              "of the initial parameters and of the shuffling; epoch e shuffles with N + e",
              fmt::to_string(options.seed),
              [&](const std::string& text) { options.seed = parse_seed(text); });
  line.option("threads", "N", "hardware threads to use; the result does not depend on them",
              fmt::format("all, here {}", options.threads), [&](const std::string& text) {
                options.threads = parse_whole(text, 1, kMaxThreads);
              });
  line.option("reduce", "NAME",
              fmt::format("how gradients are summed: auto, tree, chunked-tree and sharded give the "
                          "same bits; further {}",
                          fmt::join(reducer_names().subspan(3), ", ")),
              options.reduce, [&](const std::string& text) {
                options.reduce =
                    text == "auto" ? text : known_name("reducer", text, reducer_names());
              });
  line.option(
      "target-accuracy", "P", "exit with code 21 when the final test accuracy is below P percent",
      "",
      [&](const std::string& text) { options.target_accuracy = parse_real(text, kAccuracies); });
}

void define_output(CommandLine& line, TrainCommandOptions& options) {
  line.group("Output");
  line.option("out", "DIR", "the run folder, which must not exist [runs/<UTC date and time>]", "",
              [&](const std::string& text) {
                if (text.empty())
                  throw Error("'' is empty; accepted: a folder that does not exist");
                options.out = text;
              });
  line.option("log-steps", "N",
              "when not on a terminal, print a line every N steps; 0 prints one per epoch only",
              fmt::to_string(options.log_steps), [&](const std::string& text) {
                options.log_steps = parse_whole(text, 0, kMaxLogSteps);
              });
  line.flag("quiet", "print nothing but errors", options.quiet);
}

// A path in a configuration is relative to the folder of that file.
void resolve_paths(TrainCommandOptions& options, const CommandLine& line) {
  if (!line.config_file()) return;
  const path base = line.config_file()->parent_path();
  std::string& trace = options.elasticity.trace;
  if (const auto file = trace_file(trace); file && !line.given("trace")) {
    trace = (base / *file).string();
  }
  if (const auto folder = mnist_folder(options); folder && !line.given("data")) {
    options.data = fmt::format("{}{}", kMnist, (base / *folder).string());
  }
}

void check_together(const TrainCommandOptions& options) {
  if (options.nesterov && options.momentum == 0) {
    throw Error("--nesterov: there is no momentum; accepted: with --momentum greater than 0");
  }
  if (const auto folder = mnist_folder(options)) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(*folder, ignored)) {
      throw Error(
          fmt::format("--data: no such folder as '{}'; accepted: the folder that holds the "
                      "IDX files (train-images-idx3-ubyte[.gz] and so on)",
                      folder->string()));
    }
  }
  if (options.out) check_run_folder(*options.out);
}

}  // namespace

std::int64_t hardware_threads() {
  return std::max<std::int64_t>(1, std::thread::hardware_concurrency());
}

std::optional<TrainCommandOptions> parse_train_options(std::span<const std::string> arguments) {
  TrainCommandOptions options;
  CommandLine line("rubato train",
                   "Trains a model while the number of accelerator cores, and with it the global "
                   "batch size, changes under it.");
  define_data(line, options);
  define_elasticity(line, options.elasticity);
  define_optimizer(line, options);
  define_run(line, options);
  define_output(line, options);
  line.config();
  line.footer(
      "Values in [] are the defaults. Examples:\n"
      "  rubato train\n"
      "  rubato train --data mnist:DIR --trace trace.csv --rule root --epochs 10\n"
      "  rubato train --config runs/2024-05-31T12-00-00Z/config.toml --threads 1\n"
      "Exit codes: 2 for a mistake in the options or files, 21 for a missed\n"
      "--target-accuracy, 22 for a loss that is no number.");
  if (!line.parse(arguments)) return std::nullopt;
  resolve_paths(options, line);
  check_together(options);
  return options;
}

std::optional<path> mnist_folder(const TrainCommandOptions& options) {
  if (!options.data.starts_with(kMnist)) return std::nullopt;
  return options.data.substr(kMnist.size());
}

}  // namespace rubato::app
