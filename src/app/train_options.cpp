#include "app/train_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/check.hpp>
#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/machine/cpus.hpp>
#include <rubato/machine/kernels.hpp>
#include <rubato/recipe/checkpoint_interval.hpp>
#include <rubato/recipe/initializer_options.hpp>
#include <rubato/recipe/own_operators.hpp>
#include <rubato/recipe/precision.hpp>
#include <rubato/runtime/reducer.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/rule_registry.hpp>

#include "app/command_line.hpp"
#include "app/fault_options.hpp"
#include "app/run_folder.hpp"
#include "app/trace_option.hpp"
#include "app/train_checks.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr std::string_view kMnist = "mnist:";
constexpr std::array<std::string_view, 4> kModels{"mnist-cnn", "mlp", "softmax", "toy-net"};
constexpr std::int64_t kMaxThreads = 4096;
constexpr std::int64_t kMaxEpochs = 1'000'000;
constexpr std::int64_t kMaxLogSteps = 1'000'000'000;

constexpr std::int64_t kMaxShift = 1000;
constexpr std::int64_t kMaxKept = 1'000'000;
// The classes of all data sets that there are.
constexpr std::int64_t kMaxTopK = 10;
constexpr RealRange kAlphas{0, 1, false, true, "a number above 0 and up to 1"};
constexpr RealRange kAccuracies{
    0, 100, false, true, "a number above 0 and up to 100 (percent), and ',best' after it or not"};

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

// "98" or "98,best".
void read_target(const std::string& text, TrainCommandOptions& options) {
  constexpr std::string_view kBest = ",best";
  const bool best = text.ends_with(kBest);
  options.target_accuracy =
      parse_real(text.substr(0, text.size() - (best ? kBest.size() : 0)), kAccuracies);
  options.target_best = best;
}

// A value that is read by what will use it, so that what it rejects is rejected here.
template <class Read>
std::string checked_by(const Read& read, const std::string& text) {
  static_cast<void>(read(text));
  return text;
}

void define_data(CommandLine& line, TrainCommandOptions& options) {
  line.group("Data and model");
  line.option("data", "digits|mnist:DIR",
              "the built-in digits (12,000 images), or the IDX files of MNIST, Fashion-MNIST or "
              "KMNIST in the folder DIR, raw or .gz",
              options.data, [&](const std::string& text) { options.data = known_data(text); });
  line.option("model", fmt::format("{}", fmt::join(kModels, "|")),
              "the network: two convolutions, three linear layers, one, or four convolutions "
              "(docs/models.md)",
              options.model,
              [&](const std::string& text) { options.model = known_name("model", text, kModels); });
  line.option("init", "NAME",
              fmt::format("initial weights: {}; such as xavier:distribution=normal,gain=2",
                          names_of(kInitializers, ", ")),
              options.initializer, [&](const std::string& text) {
                options.initializer = checked_by(parse_initializer, text);
              });
  line.option(
      "precision", names_of(kPrecisions),
      "what forward and backward compute in; master weights, sums and updates stay float32; "
      "such as fp16:scale=1024,interval=100",
      options.precision,
      [&](const std::string& text) { options.precision = checked_by(parse_precision, text); });
  line.option("operators", "all|none|NAME,...",
              "which of libtorch's operators rubato computes itself, where it is faster: "
              "convolution, max-pool, batch-norm (docs/operators.md)",
              options.operators, [&](const std::string& text) {
                options.operators = checked_by(parse_own_operators, text);
              });
  line.option(
      "augment-shift", "N",
      "move each training image by up to N pixels in each direction, anew in each epoch", "0",
      [&](const std::string& text) { options.augment_shift = parse_whole(text, 0, kMaxShift); });
  line.option(
      "label-smoothing", "X",
      "share of each target that is spread over all classes, from 0 to below 1", "0",
      [&](const std::string& text) { options.label_smoothing = parse_real(text, kBelowOne); });
}

void define_learning_rate(CommandLine& line, TrainCommandOptions& options) {
  line.group("Learning rate");
  line.option("rule", "NAME",
              fmt::format("how it follows the batch size: {}; such as adascale:smoothing=0.9, "
                          "lbsgd:warmup=sqrt,epochs=2, or any with ramp=STEPS",
                          fmt::join(rule_names(), ", ")),
              options.rule,
              [&](const std::string& text) { options.rule = checked_by(make_rule, text); });
  line.option("ref-batch", "N", "the batch size, in samples, for which --lr is meant",
              fmt::to_string(options.reference_batch), [&](const std::string& text) {
                options.reference_batch = parse_whole(text, 1, kMaxBatchSize);
              });
  line.option(
      "lr", "X", "learning rate at the reference batch size", fmt::to_string(options.learning_rate),
      [&](const std::string& text) { options.learning_rate = parse_real(text, kPositive); });
  line.option("schedule", "NAME",
              fmt::format("how it changes in the course of training: {}; such as cosine:total=5, "
                          "or several as in warmup:length=1+step:every=2",
                          fmt::join(lr_schedule_names(), ", ")),
              options.schedule, [&](const std::string& text) {
                options.schedule = checked_by(
                    [](const std::string& name) { return make_lr_schedule(name); }, text);
              });
  line.option("schedule-unit", names_of(kScheduleUnits),
              "what the numbers of --schedule count; epochs have fractions; iterations are "
              "scale-invariant: a step counts for as many as the rule makes of its rate",
              options.schedule_unit, [&](const std::string& text) {
                static_cast<void>(parse_choice("unit", text, kScheduleUnits));
                options.schedule_unit = text;
              });
}

void define_optimizer(CommandLine& line, TrainCommandOptions& options) {
  line.group("Optimizer");
  line.option(
      "optimizer", "NAME",
      fmt::format("{}; such as adam:beta1=0.8, lars:trust=0.01", names_of(kOptimizers, ", ")),
      options.optimizer, [&](const std::string& text) {
        static_cast<void>(parse_optimizer(text, {}));
        options.optimizer = text;
      });
  line.option("momentum", "X", "momentum, from 0 to below 1 [0.5 of sgd and lars, 0 of rmsprop]",
              "", [&](const std::string& text) { options.momentum = parse_real(text, kBelowOne); });
  line.flag("nesterov", "Nesterov's momentum, of sgd", options.nesterov);
  line.option(
      "weight-decay", "X", "L2 penalty on the parameters; decoupled with adamw", "0",
      [&](const std::string& text) { options.weight_decay = parse_real(text, kNotNegative); });
  line.option("no-decay", "PATTERN,...",
              "parameters without weight decay and layer-wise rates: names such as '*.bias', or "
              "vectors for all of one dimension",
              "", [&](const std::string& text) { options.no_decay = text; });
  line.option("clip-norm", "X", "shorten gradients that are longer than X", "",
              [&](const std::string& text) { options.clip_norm = parse_real(text, kPositive); });
  line.option("clip-value", "X", "bound each element of the mean gradient to [-X, X]", "",
              [&](const std::string& text) { options.clip_value = parse_real(text, kPositive); });
  line.option("lookahead", "K",
              "Lookahead around the optimizer: slow weights meet the fast ones every K updates; 0 "
              "is without",
              "0", [&](const std::string& text) {
                options.lookahead = parse_whole(text, 0, kMaxLogSteps);
              });
  line.option("lookahead-alpha", "X", "how far the slow weights go when they meet",
              fmt::to_string(options.lookahead_alpha), [&](const std::string& text) {
                options.lookahead_alpha = parse_real(text, kAlphas);
              });
  line.option("lookahead-start", names_of(kLookaheadStarts),
              "whether the slow weights begin before or after the first update",
              options.lookahead_start, [&](const std::string& text) {
                static_cast<void>(parse_choice("start", text, kLookaheadStarts));
                options.lookahead_start = text;
              });
}

void define_run(CommandLine& line, TrainCommandOptions& options) {
  line.group("Run");
  line.option("epochs", "N", "epochs to train", fmt::to_string(options.epochs),
              [&](const std::string& text) { options.epochs = parse_whole(text, 1, kMaxEpochs); });
  line.option("iterations", "X",
              "stop after X scale-invariant iterations, or --epochs if that is sooner", "",
              [&](const std::string& text) { options.iterations = parse_real(text, kPositive); });
  line.option(
      "seed", "N",
      "of the initial parameters and of the shuffling; the first epoch shuffles with N, the "
      "second with N + 1, and so on",
      fmt::to_string(options.seed),
      [&](const std::string& text) { options.seed = parse_seed(text); });
  line.option(
      "threads", "N", "hardware threads to use; the result does not depend on them",
      fmt::format("all that it may use, here {}", options.threads),
      [&](const std::string& text) { options.threads = parse_whole(text, 1, kMaxThreads); });
  line.option(
      "kernels", names_of(kKernels),
      "what ATen, oneDNN and OpenBLAS compute with: the best that this CPU has, or the same "
      "AVX2 and FMA, and so the same bits, on every CPU",
      options.kernels, [&](const std::string& text) {
        static_cast<void>(parse_choice("kernels", text, kKernels));
        options.kernels = text;
      });
  line.option("reduce", "NAME",
              fmt::format("how gradients are summed: auto, tree, chunked-tree and sharded give the "
                          "same bits; further {} (with hosts=N,inner=NAME,outer=NAME)",
                          fmt::join(reducer_names().subspan(3), ", ")),
              options.reduce, [&](const std::string& text) {
                require_reducer(text);
                options.reduce = text;
              });
  line.option("watch", names_of(kMetrics),
              "what --patience, --keep-best and the plateau schedule go by", options.watch,
              [&](const std::string& text) {
                static_cast<void>(parse_choice("metric", text, kMetrics));
                options.watch = text;
              });
  line.option(
      "patience", "N", "stop when the watched metric has not improved for N epochs; 0 never stops",
      "0", [&](const std::string& text) { options.patience = parse_whole(text, 0, kMaxEpochs); });
  line.option("min-delta", "X", "by how much it has to be better to count as improved", "0",
              [&](const std::string& text) { options.min_delta = parse_real(text, kNotNegative); });
  line.flag("keep-best", "keep the weights with the best watched metric, too, as best.pt",
            options.keep_best);
  line.option("top-k", "K",
              "report how often the target is among the K largest outputs; 0 does not", "0",
              [&](const std::string& text) { options.top_k = parse_whole(text, 0, kMaxTopK); });
  line.flag("exact",
            "refuse what would make the result depend on threads or cores; --exact=false allows it",
            options.exact);
  line.option("target-accuracy", "P[,best]",
              "exit with code 21 when the final test accuracy is below P percent; with ,best the "
              "best of all epochs",
              "", [&](const std::string& text) { read_target(text, options); });
}

void define_safety(CommandLine& line, TrainCommandOptions& options) {
  line.group("Checkpoints and faults");
  line.option("checkpoint-every", "N steps|epochs|seconds",
              "how often a checkpoint is written, such as 100steps; never writes none but on a "
              "signal",
              options.checkpoint_every, [&](const std::string& text) {
                options.checkpoint_every = checked_by(parse_checkpoint_interval, text);
              });
  line.option("keep", "N", "checkpoints that are kept", fmt::to_string(options.keep),
              [&](const std::string& text) { options.keep = parse_whole(text, 1, kMaxKept); });
  line.option("fault", "core=K,step=N[,substep=M]",
              "an emulated core dies, and its step is redone by those left; several with + between",
              "", [&](const std::string& text) { options.fault = checked_by(parse_faults, text); });
  line.option(
      "faults", "rate=X[,seed=N]", "each busy core dies in a step with probability X", "",
      [&](const std::string& text) { options.faults = checked_by(parse_random_faults, text); });
  line.option(
      "straggler", "core=K,factor=F",
      "a core's substeps take F times as long; several with + between", "",
      [&](const std::string& text) { options.straggler = checked_by(parse_stragglers, text); });
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
  line.flag("log-noise",
            "write the gradient noise scale and the gain that AdaScale would give to the metrics",
            options.log_noise);
  line.flag("log-minibatches",
            "write loss and gradient norm of every minibatch, and who computed it, to the metrics",
            options.log_minibatches);
  line.option("monitor", "PATTERN",
              "write norm, mean and extremes of the parameters of such names, as 'conv1.*', and of "
              "their gradients to the metrics",
              "", [&](const std::string& text) { options.monitor = text; });
  line.option("monitor-every", "N", "steps from one time to the next",
              fmt::to_string(options.monitor_every), [&](const std::string& text) {
                options.monitor_every = parse_whole(text, 1, kMaxLogSteps);
              });
  line.flag("quiet", "print nothing but errors", options.quiet);
  line.flag("verbose", "print all that is known of an error, libtorch's stack included",
            options.verbose);
}

// A path in a configuration is relative to the folder of that file.
void resolve_paths(TrainCommandOptions& options, const CommandLine& line) {
  if (!line.config_file()) return;
  const path base = line.config_file()->parent_path();
  std::string& trace = options.elasticity.trace;
  if (const auto file = trace_file(trace); file && !line.given().contains("trace")) {
    trace = (base / *file).string();
  }
  if (const auto folder = mnist_folder(options); folder && !line.given().contains("data")) {
    options.data = fmt::format("{}{}", kMnist, (base / *folder).string());
  }
}

void define_resume(CommandLine& line, TrainCommandOptions& options) {
  line.config_of("resume", "RUN|RUN/checkpoints/FILE",
                 "go on with the run in the folder RUN, from its newest good checkpoint or from "
                 "FILE; newer ones are then kept aside",
                 [&](const std::string& text) {
                   const ResumePoint point = resume_point(text);
                   options.resume = point.run;
                   options.checkpoint = point.checkpoint;
                   return point.run / "config.toml";
                 });
}

void define_verification(CommandLine& line, TrainCommandOptions& options) {
  line.group("Verification");
  line.option("steps", "N", "steps in each training", fmt::to_string(options.steps),
              [&](const std::string& text) { options.steps = parse_whole(text, 2, kMaxLogSteps); });
}

// What --help says around the options.
struct CommandTexts {
  const char* name;
  const char* description;
  const char* footer;
};
constexpr CommandTexts kTrain{
    "rubato train",
    "Trains a model while the number of accelerator cores, and with it the global batch size, "
    "changes under it.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato train\n"
    "  rubato train --data mnist:DIR --trace trace.csv --rule root --epochs 10\n"
    "  rubato train --config runs/2024-05-31T12-00-00Z/config.toml --threads 1\n"
    "  rubato train --resume runs/2024-05-31T12-00-00Z\n"
    "Exit codes: 2 for a mistake in the options or files, 21 for a missed\n"
    "--target-accuracy, 22 for a loss that is no number, 24 for output that could\n"
    "not be written, 25 for memory that could not be had, 130 or 143 after a\n"
    "signal, with a checkpoint."};
constexpr CommandTexts kVerify{
    "rubato verify",
    "Trains a few dozen steps of a configuration again and again, on other threads and cores, with "
    "other reducers, faults and resumes, and compares every bit. Options are those of `rubato "
    "train`; those of checkpoints and output are errors here, and mean nothing in a configuration.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato verify\n"
    "  rubato verify --config runs/2024-05-31T12-00-00Z/config.toml --steps 100\n"
    "Exit codes: 23 when a bit differs, 2 for a mistake in the options or files."};

// Reads the options of a command into `options`.
class TrainCommandLine : public CommandLine {
 public:
  TrainCommandLine(TrainCommandOptions& options, TrainCommand command)
      : TrainCommandLine(options, command, command == TrainCommand::train ? kTrain : kVerify) {}

 private:
  TrainCommandLine(TrainCommandOptions& options, TrainCommand command, const CommandTexts& texts)
      : CommandLine(texts.name, texts.description) {
    define_data(*this, options);
    define_elasticity(*this, options.elasticity);
    define_learning_rate(*this, options);
    define_optimizer(*this, options);
    define_run(*this, options);
    define_safety(*this, options);
    define_output(*this, options);
    config();
    if (command == TrainCommand::train) define_resume(*this, options);
    if (command == TrainCommand::verify) define_verification(*this, options);
    footer(texts.footer);
  }
};

}  // namespace

std::int64_t hardware_threads() {
  return cpus().usable();
}

std::optional<TrainCommandOptions> parse_train_options(std::span<const std::string> arguments,
                                                       TrainCommand command) {
  TrainCommandOptions options;
  TrainCommandLine line(options, command);
  if (!line.parse(arguments)) return std::nullopt;
  resolve_paths(options, line);
  check_together(options, line, command);
  options.given = line.given();
  return options;
}

TrainCommandOptions options_of_run(const path& run) {
  TrainCommandOptions options;
  TrainCommandLine line(options, TrainCommand::train);
  RUBATO_CHECK(line.parse(std::array{std::string("--resume"), run.string()}), "nobody wants help");
  resolve_paths(options, line);
  return options;
}

OptimizerOptions optimizer_options(const TrainCommandOptions& options) {
  constexpr double kUsualMomentum = 0.5;
  OptimizerOptions optimizer = parse_optimizer(
      options.optimizer, {.weight_decay = options.weight_decay, .nesterov = options.nesterov});
  const bool usual = optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::lars;
  optimizer.momentum = options.momentum.value_or(usual ? kUsualMomentum : 0);
  return optimizer;
}

std::optional<path> mnist_folder(const TrainCommandOptions& options) {
  if (!options.data.starts_with(kMnist)) return std::nullopt;
  return options.data.substr(kMnist.size());
}

}  // namespace rubato::app
