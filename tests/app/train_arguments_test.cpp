#include "clients/app/train/train_arguments.hpp"

#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "base/machine/instruction_set.hpp"
#include "runs/config/readings.hpp"
#include "runs/config/values/data_source.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {
namespace {

using Arguments = std::vector<std::string>;

TrainArguments parsed(const Arguments& arguments) {
  return parse_train_arguments(arguments);
}

std::string error_parsing(const Arguments& arguments) {
  return test::error_of([&] { static_cast<void>(parse_train_arguments(arguments)); });
}

// The configuration file of a run in `folder`.
std::string config_text(const TrainArguments& arguments, const std::filesystem::path& folder) {
  return to_toml(with_paths_from(folder, arguments.run));
}

// Options that differ from the defaults everywhere.
Arguments every_option(const test::TempFolder& folder) {
  return {"--data=mnist:" + folder.path().string(),
          "--model=softmax",
          "--trace=" + folder.write("a \"b\" #c.csv", "step,batchsize\n0,32\n").string(),
          "--on-trace-end=cycle",
          "--cores=3",
          "--minibatch=16",
          "--assignment=strided",
          "--init=msra:fan=out",
          "--precision=bf16",
          "--operators=max-pool",
          "--augment=shift:pixels=1+flip",
          "--label-smoothing=0.1",
          "--rule=linear-momentum:ramp=10",
          "--schedule=warmup:length=1+step:every=2",
          "--schedule-unit=iterations",
          "--optimizer=sgd",
          "--no-decay=*.bias,vectors",
          "--clip-norm=2.5",
          "--lookahead=6",
          "--lookahead-alpha=0.8",
          "--lookahead-start=after",
          "--iterations=1e4",
          "--watch=test-accuracy",
          "--patience=3",
          "--min-delta=0.001",
          "--keep-best",
          "--top-k=5",
          "--log-noise",
          "--log-minibatches",
          "--monitor=conv1.*",
          "--monitor-every=7",
          "--tensorboard",
          "--histograms=*.weight",
          "--histograms-every=9",
          "--ref-batch=64",
          "--lr=0.1",
          "--momentum=0.30000000000000004",
          "--nesterov",
          "--weight-decay=1e-5",
          "--epochs=7",
          "--seed=18446744073709551615",
          "--threads=2",
          "--reduce=sharded",
          "--exact=false",
          "--checkpoint-every=7 epochs",
          "--keep=9",
          "--fault=core=1,step=2+core=3,step=4,substep=5",
          "--faults=rate=0.25,seed=6",
          "--straggler=core=2,factor=1.5",
          "--target-accuracy=99.5,best",
          "--log-steps=0"};
}

class WorkingFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::current_path(folder_.path()); }
  void TearDown() override { std::filesystem::current_path(before_); }

  const test::TempFolder folder_;
  const std::filesystem::path before_ = std::filesystem::current_path();
};

TEST(TrainArguments, HaveTheOriginalsDefaults) {
  const TrainArguments options = parsed({});
  EXPECT_EQ(options, TrainArguments{});
  EXPECT_EQ(options.run.cores, 8);
  EXPECT_EQ(options.run.minibatch, 32);
  EXPECT_EQ(options.run.rule, "linear");
  EXPECT_EQ(options.run.reference_batch, 128);
  EXPECT_EQ(options.run.learning_rate, 0.01);
  EXPECT_EQ(optimizer_options(options.run), OptimizerOptions{.momentum = 0.5});
  EXPECT_EQ(options.run.epochs, 5);
  EXPECT_EQ(options.run.seed, 42U);
  EXPECT_GE(options.run.threads, 1);
  EXPECT_EQ(options.run.data->path, "");
}

TEST(TrainArguments, AreAllRead) {
  const test::TempFolder folder;
  Arguments arguments = every_option(folder);
  arguments.insert(arguments.end(), {"--out=" + (folder.path() / "run").string(), "--verbose"});
  const TrainArguments options = parsed(arguments);
  EXPECT_EQ(options.run.data->path, folder.path());
  EXPECT_EQ(options.run.model, "softmax");
  EXPECT_EQ(options.run.trace.text(), folder.path() / "a \"b\" #c.csv");
  EXPECT_EQ(options.run.on_trace_end, TraceEnd::cycle);
  EXPECT_EQ(options.run.cores, 3);
  EXPECT_EQ(options.run.minibatch, 16);
  EXPECT_EQ(options.run.assignment, Assignment::strided);
  EXPECT_EQ(options.run.initializer, "msra:fan=out");
  EXPECT_EQ(options.run.precision, "bf16");
  EXPECT_EQ(options.run.operators, "max-pool");
  EXPECT_EQ(options.run.label_smoothing, 0.1);
  EXPECT_EQ(options.run.augment, "shift:pixels=1+flip");
  EXPECT_EQ(options.run.rule, "linear-momentum:ramp=10");
  EXPECT_EQ(options.run.schedule, "warmup:length=1+step:every=2");
  EXPECT_EQ(options.run.schedule_unit, ScheduleUnit::iterations);
  EXPECT_EQ(options.run.optimizer, "sgd");
  EXPECT_EQ(options.run.no_decay, "*.bias,vectors");
  EXPECT_EQ(options.run.clip_norm, 2.5);
  EXPECT_EQ(options.run.lookahead, 6);
  EXPECT_EQ(options.run.lookahead_alpha, 0.8);
  EXPECT_EQ(options.run.lookahead_start, LookaheadStart::after_first_update);
  EXPECT_EQ(options.run.iterations, 1e4);
  EXPECT_EQ(options.run.watch, "test-accuracy");
  EXPECT_EQ(options.run.patience, 3);
  EXPECT_EQ(options.run.min_delta, 0.001);
  EXPECT_TRUE(options.run.keep_best);
  EXPECT_FALSE(options.run.exact);
  EXPECT_EQ(options.run.checkpoint_every, "7 epochs");
  EXPECT_EQ(options.run.keep, 9);
  EXPECT_EQ(*options.run.fault,
            (std::vector<Fault>{{CoreRank{1}, StepIndex{1}, 0}, {CoreRank{3}, StepIndex{3}, 5}}));
  EXPECT_EQ(*options.run.faults, (FaultOptions{.rate = 0.25, .seed = 6}));
  EXPECT_EQ(*options.run.straggler, (std::vector<Straggler>{{CoreRank{2}, 1.5}}));
  EXPECT_EQ(options.run.top_k, 5);
  EXPECT_TRUE(options.run.log_noise);
  EXPECT_EQ(options.run.monitor, "conv1.*");
  EXPECT_EQ(options.run.monitor_every, 7);
  EXPECT_TRUE(options.run.tensorboard);
  EXPECT_EQ(options.run.histograms, "*.weight");
  EXPECT_EQ(options.run.histograms_every, 9);
  EXPECT_EQ(options.run.reference_batch, 64);
  EXPECT_EQ(options.run.learning_rate, 0.1);
  EXPECT_EQ(options.run.momentum, 0.30000000000000004);
  EXPECT_TRUE(options.run.nesterov);
  EXPECT_EQ(options.run.weight_decay, 1e-5);
  EXPECT_EQ(options.run.epochs, 7);
  EXPECT_EQ(options.run.seed, 18446744073709551615U);
  EXPECT_EQ(options.run.threads, 2);
  EXPECT_EQ(options.run.reduce, "sharded");
  EXPECT_EQ(options.run.target_accuracy, (AccuracyTarget{.percent = 99.5, .best = true}));
  EXPECT_EQ(options.run.log_steps, 0);
  EXPECT_TRUE(parsed({"--quiet"}).quiet);
  EXPECT_TRUE(options.verbose);
  EXPECT_EQ(options.out, folder.path() / "run");
}

TEST(TrainArguments, OptimizersHaveTheirUsualMomentum) {
  const auto momentum = [](const char* optimizer) {
    return optimizer_options(parsed({"--optimizer", optimizer}).run).momentum;
  };
  EXPECT_EQ(momentum("sgd"), 0.5);
  EXPECT_EQ(momentum("lars"), 0.5);
  EXPECT_EQ(momentum("rmsprop"), 0);
  EXPECT_EQ(momentum("adam"), 0);
  const OptimizerOptions options = optimizer_options(
      parsed({"--optimizer=rmsprop:alpha=0.9", "--momentum=0.7", "--weight-decay=0.1"}).run);
  EXPECT_EQ(options.kind, OptimizerKind::rmsprop);
  EXPECT_EQ(options.alpha, 0.9);
  EXPECT_EQ(options.momentum, 0.7);
  EXPECT_EQ(options.weight_decay, 0.1);
}

TEST(TrainArguments, PortableKernelsAreKeptInTheConfiguration) {
  EXPECT_EQ(parsed({}).run.kernels, Kernels::native);
  EXPECT_EQ(error_parsing({"--kernels=avx2"}),
            "--kernels: unknown kernels 'avx2'; accepted: native, portable");
  if (cpu_instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "needs AVX2";
  const test::TempFolder folder;
  const TrainArguments options = parsed({"--kernels=portable"});
  EXPECT_EQ(options.run.kernels, Kernels::portable);
  const std::string config = config_text(options, folder.path() / "run");
  EXPECT_EQ(parsed({"--config", folder.write("run/config.toml", config)}), options);
  EXPECT_THAT(error_parsing({"--kernels=portable", "--precision=bf16"}),
              testing::HasSubstr("accepted: with --precision full or fp16"));
  EXPECT_EQ(parsed({"--kernels=portable", "--precision=fp16"}).run.precision, "fp16");
}

TEST(TrainArguments, SeparateValuesAndTheLastOneCount) {
  EXPECT_EQ(parsed({"--cores", "4"}).run.cores, 4);
  EXPECT_EQ(parsed({"--cores", "4", "--cores=5"}).run.cores, 5);
  EXPECT_FALSE(parsed({"--nesterov", "--nesterov=false"}).run.nesterov);
}

TEST(TrainArguments, AreReproducedByTheirConfiguration) {
  const test::TempFolder folder;
  for (const Arguments& arguments : {Arguments{}, every_option(folder)}) {
    const TrainArguments options = parsed(arguments);
    const std::string config = config_text(options, folder.path() / "run");
    EXPECT_EQ(parsed({"--config", folder.write("run/config.toml", config)}), options) << config;
  }
}

TEST(TrainArguments, ConfigurationLeavesOutWhereAndHowLoud) {
  const test::TempFolder folder;
  const auto file =
      folder.write("config.toml", config_text(parsed({"--out=new_run", "--quiet"}), folder.path()));
  EXPECT_EQ(parsed({"--config", file}), TrainArguments{});
}

TEST_F(WorkingFolder, ConfigurationHasPathsThatSurviveAMove) {
  folder_.write("data/here", "");
  folder_.write("run/t.csv", "");
  const std::string config =
      config_text(parsed({"--data=mnist:./data", "--trace=run/../run/t.csv"}), "run");
  const std::string here = std::filesystem::current_path();
  EXPECT_THAT(config, testing::HasSubstr("data = \"mnist:" + here + "/data\"\n"));
  EXPECT_THAT(config, testing::HasSubstr("trace = \"t.csv\"\n"));
}

TEST_F(WorkingFolder, PathsInTheConfigurationAreRelativeToIt) {
  const auto config =
      folder_.write("run/config.toml", "trace = \"t.csv\"\ndata = \"mnist:images\"\n");
  folder_.write("run/images/here", "");
  folder_.write("images/here", "");
  const TrainArguments options = parsed({"--config=run/config.toml"});
  EXPECT_EQ(options.run.trace, "run/t.csv");
  EXPECT_EQ(options.run.data->path, "run/images");
  // Those in the arguments are relative to here.
  const TrainArguments overridden =
      parsed({"--config=run/config.toml", "--trace=t.csv", "--data=mnist:images"});
  EXPECT_EQ(overridden.run.trace, "t.csv");
  EXPECT_EQ(overridden.run.data->path, "images");
}

TEST(TrainArguments, ArgumentsOverrideTheConfiguration) {
  const test::TempFolder folder;
  const auto file = folder.write("c.toml", "cores = 4\nepochs = 9\nnesterov = true\n");
  const TrainArguments options = parsed({"--cores=5", "--nesterov=false", "--config", file});
  EXPECT_EQ(options.run.cores, 5);
  EXPECT_EQ(options.run.epochs, 9);
  EXPECT_FALSE(options.run.nesterov);
}

TEST(TrainArguments, ErrorsInTheConfigurationHaveTheirLine) {
  const test::TempFolder folder;
  const auto error_in = [&](std::string_view text) {
    const std::string file = folder.write("c.toml", text);
    const std::string message = error_parsing({"--config", file});
    return message.starts_with(file) ? message.substr(file.size()) : message;
  };
  EXPECT_EQ(error_in("cores = 8\nepoch = 4\n"),
            ":2: unknown option 'epoch'; did you mean 'epochs'?");
  EXPECT_EQ(error_in("\ncores = 0\n"),
            ":2: cores: '0' is out of range; accepted: a whole number from 1 to 1048576");
  EXPECT_EQ(
      error_in("rule = \"lin\"\n"),
      ":1: rule: unknown rule 'lin'; did you mean 'linear'? accepted: constant, linear, root, "
      "linear-momentum, adascale, lbsgd");
  EXPECT_EQ(error_in("config = \"d.toml\"\n"), ":1: config is accepted as an argument only");
  EXPECT_EQ(error_in("nesterov = 1\n"),
            ":1: nesterov: '1' is neither true nor false; accepted: true, false");
  // A line that an argument overrides has to be right all the same.
  EXPECT_EQ(error_in("threads = 0\n"),
            ":1: threads: '0' is out of range; accepted: a whole number from 1 to 4096");
}

struct WrongArguments {
  Arguments arguments;
  std::string message;
};

// Nobody would want the run without them: that they do nothing is an error before it begins.
TEST(TrainArguments, RejectArgumentsThatWouldDoNothing) {
  const std::vector<WrongArguments> cases{
      {{"--lookahead-alpha=0.8"},
       "--lookahead-alpha: there is no Lookahead; accepted: with --lookahead K"},
      {{"--lookahead-start=after", "--lookahead=0"},
       "--lookahead-start: there is no Lookahead; accepted: with --lookahead K"},
      {{"--min-delta=0.1"}, "--min-delta: nothing stops early; accepted: with --patience N"},
      {{"--monitor-every=3"},
       "--monitor-every: nothing is monitored; accepted: with --monitor PATTERN"},
      {{"--histograms=*"},
       "--histograms: nothing is written for TensorBoard; accepted: with --tensorboard"},
      {{"--tensorboard", "--histograms-every=3"},
       "--histograms-every: there are no histograms; accepted: with --histograms PATTERN"},
      {{"--schedule-unit=steps"},
       "--schedule-unit: constant counts nothing; accepted: with another --schedule"},
      {{"--schedule-unit=steps", "--schedule=plateau"},
       "--schedule-unit: plateau counts nothing; accepted: with another --schedule"},
      {{"--watch=test-accuracy"},
       "--watch: nothing uses test-accuracy; accepted: with --patience, --keep-best or the "
       "schedule plateau"},
      {{"--no-decay=vectors"},
       "--no-decay: nothing decays, and no rate is layer-wise; accepted: with --weight-decay, "
       "lars, "
       "lbsgd or adascale"},
      {{"--momentum=0.9", "--optimizer=adam"},
       "--momentum: adam has none; accepted: with sgd, lars or rmsprop"},
      {{"--log-steps=5", "--quiet"}, "--log-steps: --quiet prints none; accepted: one of them"},
      {{"--keep=5", "--checkpoint-every=never"},
       "--keep: without --checkpoint-every there are none; accepted: with an interval, such as "
       "100steps"},
      {{"--trace=128", "--on-trace-end=stop"},
       "--on-trace-end: a constant trace has no end; accepted: with a file or elastic"},
      {{"--top-k=1000001"},
       "--top-k: '1000001' is out of range; accepted: a whole number from 0 to 1000000"},
  };
  for (const WrongArguments& wrong : cases) {
    EXPECT_EQ(error_parsing(wrong.arguments), wrong.message)
        << testing::PrintToString(wrong.arguments);
  }
  for (const Arguments& arguments :
       {Arguments{"--lookahead=5", "--lookahead-alpha=0.8", "--lookahead-start=after"},
        {"--patience=2", "--min-delta=0.1"},
        {"--monitor=*", "--monitor-every=3"},
        {"--tensorboard", "--histograms=*", "--histograms-every=3"},
        {"--schedule=exponential", "--schedule-unit=steps"},
        {"--schedule=plateau+exponential", "--schedule-unit=steps"},
        {"--watch=train-loss", "--patience=1"},
        {"--watch=train-loss", "--keep-best"},
        {"--watch=train-loss", "--schedule=plateau"},
        {"--no-decay=vectors", "--weight-decay=0.1"},
        {"--no-decay=vectors", "--optimizer=lars"},
        {"--no-decay=vectors", "--rule=adascale"},
        {"--no-decay=vectors", "--rule=lbsgd:warmup=lars"},
        {"--no-decay=vectors", "--log-noise"},
        {"--keep=5", "--checkpoint-every=1epochs"},
        {"--trace=elastic", "--on-trace-end=stop"},
        {"--top-k=10"}}) {
    EXPECT_EQ(error_parsing(arguments), "no error") << testing::PrintToString(arguments);
  }
}

// An argument may switch off what another line of the file is for.
TEST(TrainArguments, InAConfigurationMayDoNothing) {
  const test::TempFolder folder;
  const std::string config =
      folder.write("c.toml",
                   "lookahead = 0\nlookahead-alpha = 0.8\nlookahead-start = \"after\"\n"
                   "patience = 3\nmin-delta = 0.5\nmonitor-every = 7\nschedule-unit = \"steps\"\n"
                   "watch = \"train-loss\"\nno-decay = \"vectors\"\nkeep = 3\ntrace = 128\n"
                   "on-trace-end = \"cycle\"\nlog-steps = 7\n");
  EXPECT_EQ(error_parsing({"--config", config}), "no error");
  EXPECT_EQ(
      error_parsing({"--config", config, "--patience=0", "--checkpoint-every=never", "--quiet"}),
      "no error");
  EXPECT_THAT(error_parsing({"--config", config, "--patience=0", "--min-delta=1"}),
              testing::HasSubstr("nothing stops early"));
}

TEST(TrainArguments, OfVerifyAreThoseThatItGoesBy) {
  const auto error = [](const Arguments& arguments) {
    return test::error_of(
        [&] { static_cast<void>(parse_train_arguments(arguments, TrainCommand::verify)); });
  };
  for (const char* option : {"patience=3", "min-delta=1", "keep-best", "top-k=3",
                             "target-accuracy=50", "checkpoint-every=3steps", "keep=3", "out=run",
                             "log-steps=3", "monitor=*", "monitor-every=3", "quiet"}) {
    const std::string text(option);
    EXPECT_EQ(error({"--" + text}),
              "--" + text.substr(0, text.find('=')) +
                  ": `rubato verify` keeps nothing and shows nothing but its table; accepted: with "
                  "`rubato train`");
  }
  EXPECT_EQ(error({"--steps=1"}),
            "--steps: '1' is out of range; accepted: a whole number from 2 to 1000000000");
  EXPECT_EQ(error({"--steps=2", "--rule=adascale", "--log-noise", "--faults=rate=0.1"}),
            "no error");
  const test::TempFolder folder;
  EXPECT_EQ(error({"--config", folder.write("c.toml", config_text(parsed({}), folder.path()))}),
            "no error");
}

TEST(TrainArguments, FaultsAndStragglersNameTheirArguments) {
  EXPECT_EQ(error_parsing({"--straggler=core=1,factor=2,speed=3"}),
            "--straggler: unknown argument 'speed'; accepted: core, factor");
  EXPECT_EQ(error_parsing({"--fault=core=1,step=2,speed=3"}),
            "--fault: unknown argument 'speed'; accepted: core, step, substep");
  EXPECT_EQ(error_parsing({"--faults=rate=0.1,speed=3"}),
            "--faults: unknown argument 'speed'; did you mean 'seed'? accepted: rate, seed");
  EXPECT_EQ(error_parsing({"--faults=rate=1"}),
            "--faults: rate: '1' is out of range; accepted: a number from 0 to below 1");
  EXPECT_EQ(error_parsing({"--fault=core=1,step=0"}),
            "--fault: step: '0' is out of range; accepted: a whole number from 1 to "
            "9223372036854775807");
  EXPECT_EQ(error_parsing({"--straggler=core=1,factor=2,factor=3"}),
            "--straggler: 'core=1,factor=2,factor=3' is malformed; accepted: such as "
            "core=3,factor=4");
}

class RunToResume : public testing::Test {
 protected:
  RunToResume() { folder_.write("run/config.toml", config_text(parsed({}), run_)); }

  const test::TempFolder folder_;
  const std::filesystem::path run_ = folder_.path() / "run";
};

TEST_F(RunToResume, IsAFolderOrOneOfItsCheckpoints) {
  const TrainArguments options = parsed({"--resume", run_.string(), "--epochs=9"});
  EXPECT_EQ(options.resume, run_);
  EXPECT_EQ(options.checkpoint, std::nullopt);
  EXPECT_EQ(options.run.epochs, 9);
  EXPECT_EQ(read_configuration(run_ / "config.toml").epochs, 5);
  const auto file = run_ / "checkpoints" / "step-89.safetensors";
  const TrainArguments older = parsed({"--resume=" + file.string()});
  EXPECT_EQ(older.resume, run_);
  EXPECT_EQ(older.checkpoint, file);
}

TEST_F(RunToResume, StaysInItsFolder) {
  EXPECT_EQ(error_parsing({"--resume", run_.string(), "--out", (folder_.path() / "new").string()}),
            "--out: a resumed run stays in its folder; accepted: --resume alone");
  EXPECT_EQ(error_parsing({"--resume", run_.string(), "--config", "c.toml"}),
            "--config: --resume has a configuration of its own; accepted: one of them");
}

TEST_F(WorkingFolder, ACheckpointMayBeNamedFromInsideOfItsRun) {
  folder_.write("config.toml", "epochs = 3\n");
  folder_.write("checkpoints/step-1.safetensors", "");
  EXPECT_EQ(parsed({"--resume=checkpoints/step-1.safetensors"}).resume, ".");
  std::filesystem::current_path("checkpoints");
  EXPECT_EQ(parsed({"--resume=step-1.safetensors"}).resume, "..");
  EXPECT_EQ(parsed({"--resume=./step-1.safetensors"}).run.epochs, 3);
}

TEST(TrainArguments, ATargetIsOfTheEndOrOfTheBest) {
  EXPECT_FALSE(parsed({"--target-accuracy=98.5"}).run.target_accuracy->best);
  const TrainArguments best = parsed({"--target-accuracy=98.5,best"});
  EXPECT_EQ(best.run.target_accuracy, (AccuracyTarget{.percent = 98.5, .best = true}));
  EXPECT_EQ(
      error_parsing({"--target-accuracy=98,last"}),
      "--target-accuracy: '98,last' is not a number; accepted: a number above 0 and up to 100 "
      "(percent), and ',best' after it or not");
  EXPECT_EQ(error_parsing({"--target-accuracy=,best"}),
            "--target-accuracy: '' is empty; accepted: a number above 0 and up to 100 "
            "(percent), and ',best' after it or not");
}

TEST(TrainArguments, RejectWhatIsWrong) {
  const std::vector<WrongArguments> cases{
      {{"--coers", "4"},
       "unknown option '--coers'; did you mean '--cores'? see rubato train --help"},
      {{"--coers=4"}, "unknown option '--coers'; did you mean '--cores'? see rubato train --help"},
      {{"-cores", "4"}, "unknown option '-cores'; did you mean '--cores'? see rubato train --help"},
      {{"--zzzzzzzzzz"}, "unknown option '--zzzzzzzzzz'; see rubato train --help"},
      {{"-7"}, "unknown option '-7'; see rubato train --help"},
      {{"mnist"}, "unexpected argument 'mnist'; see rubato train --help"},
      {{"--quiet", "-"}, "unexpected argument '-'; see rubato train --help"},
      {{"--cores"}, "--cores needs a value; accepted: --cores N"},
      {{"--cores="}, "--cores needs a value; accepted: --cores N"},
      {{"--trace", "--cores", "4"},
       "--trace needs a value; accepted: --trace FILE|N|elastic|GENERATOR"},
      {{"--cores", "0"},
       "--cores: '0' is out of range; accepted: a whole number from 1 to 1048576"},
      {{"--cores", "-8"},
       "--cores: '-8' is out of range; accepted: a whole number from 1 to 1048576"},
      {{"--cores", "eight"},
       "--cores: 'eight' is not a number; accepted: a whole number from 1 to 1048576"},
      {{"--threads", "0"},
       "--threads: '0' is out of range; accepted: a whole number from 1 to 4096"},
      {{"--minibatch", "0"},
       "--minibatch: '0' is out of range; accepted: a whole number from 1 to 214748363"},
      {{"--epochs", "0"},
       "--epochs: '0' is out of range; accepted: a whole number from 1 to 1000000"},
      {{"--ref-batch", "1.5"},
       "--ref-batch: '1.5' is not a whole number; accepted: a whole number from 1 to "
       "1099511627776"},
      {{"--log-steps", "-1"},
       "--log-steps: '-1' is out of range; accepted: a whole number from 0 to 1000000000"},
      {{"--seed", "-1"},
       "--seed: '-1' is out of range; accepted: a whole number from 0 to 18446744073709551615"},
      {{"--lr", "0"}, "--lr: '0' is out of range; accepted: a number greater than 0"},
      {{"--lr", "inf"},
       "--lr: 'inf' is out of range; accepted: a number greater than 0, up to 1e+300"},
      {{"--lr", "nan"}, "--lr: 'nan' is out of range; accepted: a number greater than 0"},
      {{"--momentum", "1"},
       "--momentum: '1' is out of range; accepted: a number from 0 to below 1"},
      {{"--momentum", "-0.1"},
       "--momentum: '-0.1' is out of range; accepted: a number from 0 to below 1"},
      {{"--weight-decay", "-1"},
       "--weight-decay: '-1' is out of range; accepted: a number of at least 0"},
      {{"--target-accuracy", "0"},
       "--target-accuracy: '0' is out of range; accepted: a number above 0 and up to 100 "
       "(percent), and ',best' after it or not"},
      {{"--target-accuracy", "100.5"},
       "--target-accuracy: '100.5' is out of range; accepted: a number above 0 and up to 100 "
       "(percent), and ',best' after it or not"},
      {{"--rule", "linaer"},
       "--rule: unknown rule 'linaer'; did you mean 'linear'? accepted: constant, linear, root, "
       "linear-momentum, adascale, lbsgd"},
      {{"--rule", "adascale:smooth=1"},
       "--rule: unknown argument of adascale 'smooth'; did you mean 'smoothing'? accepted: "
       "smoothing, averaging, rescale-variance, ramp"},
      {{"--rule", "linear-momentum", "--optimizer", "adam"},
       "--rule linear-momentum: it sums gradients, which adam cannot follow; accepted: with sgd or "
       "lars"},
      {{"--schedule", "cosine"}, "--schedule: cosine needs a 'total'; accepted: cosine:total=90"},
      {{"--schedule-unit", "step"},
       "--schedule-unit: unknown unit 'step'; did you mean 'steps'? accepted: epochs, "
       "whole-epochs, steps, samples, iterations"},
      {{"--schedule", "warmup:length=1+step:every=2", "--schedule-unit", "whole-epochs"},
       "--schedule: the schedule warmup:length=1+step:every=2 has a rate of 0 for the whole first "
       "epoch where whole epochs are counted; accepted: the unit epochs, which counts their "
       "fractions, or a start above 0"},
      {{"--schedule", "plateau:mode=min", "--watch", "test-accuracy"},
       "--schedule: plateau: mode: test-accuracy is watched, which is better when it is larger; "
       "accepted: max"},
      {{"--watch", "train-loss", "--schedule", "plateau:mode=max"},
       "--schedule: plateau: mode: train-loss is watched, which is better when it is smaller; "
       "accepted: min"},
      {{"--rule", "lbsgd:warmup=lars,epochs=3"},
       "--rule: lbsgd: epochs: does nothing with warmup=lars, which has factors of the layers "
       "instead; accepted: with warmup=linear, power2 or sqrt"},
      {{"--optimizer", "adam:beta1=1"},
       "--optimizer: adam: beta1: '1' is out of range; accepted: a number from 0 to below 1"},
      {{"--optimizer", "adam", "--momentum", "0.9"},
       "--momentum: adam has none; accepted: with sgd, lars or rmsprop"},
      {{"--optimizer", "adam", "--nesterov"}, "Nesterov momentum applies to sgd only, not to adam"},
      {{"--clock", "wall"}, "--clock: unknown clock 'wall'; accepted: real, virtual"},
      {{"--hours", "3"}, "--hours: there is no modelled time; accepted: with --clock virtual"},
      {{"--money", "3"}, "--money: there is no modelled time; accepted: with --clock virtual"},
      {{"--cluster", "substep=1"},
       "--cluster: there is no modelled time; accepted: with --clock virtual"},
      {{"--price", "3"}, "--price: there is no modelled time; accepted: with --clock virtual"},
      {{"--on-idle", "pause"},
       "--on-idle: there is no modelled time; accepted: with --clock virtual"},
      {{"--clock", "virtual", "--money", "3"},
       "--money: nothing costs anything; accepted: with --price"},
      {{"--clock", "virtual", "--cluster", "substep=0"},
       "--cluster: substep: '0' is out of range; accepted: a number greater than 0"},
      {{"--clock", "virtual", "--cluster", "substep"},
       "--cluster: 'substep' is malformed; accepted: NAME=VALUE,NAME=VALUE"},
      {{"--clock", "virtual", "--fault", "core=1,step=2"},
       "--fault: in modelled time cores are lost when devices leave; accepted: an availability "
       "as --trace (docs/traces.md), or --clock real"},
      {{"--clock", "virtual", "--faults", "rate=0.5"},
       "--faults: in modelled time cores are lost when devices leave; accepted: an availability "
       "as --trace (docs/traces.md), or --clock real"},
      {{"--init", "msra:fan=up"},
       "--init: msra: fan: unknown value 'up'; did you mean 'in'? accepted: in, out"},
      {{"--precision", "fp61"},
       "--precision: unknown precision 'fp61'; did you mean 'fp16'? accepted: full, bf16, fp16"},
      {{"--precision", "fp16:growth=0.5"},
       "--precision: fp16: growth: '0.5' is out of range; accepted: a number of at least 1"},
      {{"--precision", "bf16:scale=2"}, "--precision: bf16 takes no arguments, but has 'scale'"},
      {{"--operators", "some"},
       "--operators: unknown operator 'some'; did you mean 'none'? accepted: all, none, "
       "convolution, max-pool, "
       "batch-norm"},
      {{"--reduce", "foo"},
       "--reduce: unknown reducer 'foo'; accepted: auto, tree, chunked-tree, sharded, "
       "sequential, ring, recursive-doubling, halving-doubling, binary-tree, "
       "double-binary-tree, two-level"},
      {{"--reduce", "two-level:host=2", "--exact=false"},
       "--reduce: unknown argument of two-level 'host'; did you mean 'hosts'? accepted: hosts, "
       "inner, outer"},
      {{"--reduce", "two-level:hosts=2"},
       "reducer two-level:hosts=2 does not give the same bits for every number of threads and "
       "cores; accepted: auto, tree, chunked-tree, sharded, or any without exactness "
       "(--exact=false)"},
      {{"--watch", "loss"},
       "--watch: unknown metric 'loss'; accepted: train-loss, test-loss, "
       "test-accuracy"},
      {{"--clip-norm", "0"}, "--clip-norm: '0' is out of range; accepted: a number greater than 0"},
      {{"--clip-value", "0"},
       "--clip-value: '0' is out of range; accepted: a number greater than 0"},
      {{"--clip-value", "1", "--clip-norm", "1"},
       "--clip-value: gradients are clipped by their norm already; accepted: with --clip-norm or "
       "--clip-value, not both"},
      {{"--optimizer", "sgd:form=mxnet", "--momentum=0"},
       "--optimizer sgd:form=mxnet: there is no momentum; accepted: with --momentum greater than "
       "0"},
      {{"--label-smoothing", "1"},
       "--label-smoothing: '1' is out of range; accepted: a number from 0 to below 1"},
      {{"--lookahead-alpha", "0"},
       "--lookahead-alpha: '0' is out of range; accepted: a number above 0 and up to 1"},
      {{"--monitor-every", "0"},
       "--monitor-every: '0' is out of range; accepted: a whole number from 1 to 1000000000"},
      {{"--histograms-every", "0"},
       "--histograms-every: '0' is out of range; accepted: a whole number from 1 to 1000000000"},
      {{"--model", "cnn"},
       "--model: unknown model 'cnn'; accepted: mnist-cnn, mlp, softmax, toy-net, resnet20, "
       "transformer, quadratic, script:FILE"},
      {{"--assignment", "stride"},
       "--assignment: unknown assignment 'stride'; did you mean 'strided'? accepted: contiguous, "
       "strided"},
      {{"--on-trace-end", "hodl"},
       "--on-trace-end: unknown end 'hodl'; did you mean 'hold'? accepted: error, hold, cycle, "
       "stop"},
      {{"--data", "digit"},
       "--data: unknown data set 'digit'; did you mean 'digits'? accepted: digits, mnist:DIR, "
       "cifar10:DIR, tensors:FILE, images:DIR, csv:FILE, text:FILE, mnist, fashion-mnist, cifar10"},
      {{"--data", "mnist:"},
       "--data: unknown data set 'mnist:'; did you mean 'mnist:DIR'? accepted: digits, mnist:DIR, "
       "cifar10:DIR, tensors:FILE, images:DIR, csv:FILE, text:FILE, mnist, fashion-mnist, cifar10"},
      {{"--data", "/"},
       "--data: '/' is a folder; did you mean 'mnist:/', 'cifar10:/' or 'images:/'?"},
      {{"--data", "mnist:/no/where"},
       "--data: no such folder as '/no/where'; accepted: the folder that holds the IDX files "
       "(train-images-idx3-ubyte[.gz] and so on)"},
      {{"--nesterov", "--momentum=0"},
       "--nesterov: there is no momentum; accepted: with --momentum greater than 0"},
      {{"--nesterov=1"}, "--nesterov: '1' is neither true nor false; accepted: true, false"},
      {{"--out", "/"}, "--out: '/' exists already; accepted: a folder that does not exist yet"},
      {{"--out", ""}, "--out: '' is empty; accepted: a folder that does not exist"},
      {{"--config", "/no/where"},
       "cannot read the configuration /no/where: No such file or directory; accepted: a file of "
       "lines such as 'cores = 8'"},
  };
  for (const WrongArguments& wrong : cases) {
    EXPECT_EQ(error_parsing(wrong.arguments), wrong.message)
        << testing::PrintToString(wrong.arguments);
  }
}

}  // namespace
}  // namespace rubato::app
