#include "clients/app/train/train_arguments.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "app/run_program.hpp"
#include "base/machine/instruction_set.hpp"
#include "config/other_value.hpp"
#include "runs/config/readings.hpp"
#include "runs/config/values/data_source.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {
namespace {

using test::Words;

TrainArguments parsed(const Words& arguments, TrainCommand command = TrainCommand::train) {
  return parse_train_arguments(arguments.all(), command);
}

std::string error_parsing(const Words& arguments, TrainCommand command = TrainCommand::train) {
  return error_of([&] { return parsed(arguments, command); });
}

// The configuration file of a run in `folder`.
std::string config_text(const TrainArguments& arguments, const std::filesystem::path& folder) {
  return to_toml(with_paths_from(folder, arguments.run));
}

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

// Options that do nothing alone are refused for that, and for no other reason.
TEST(TrainArguments, TakeEveryOptionOfARun) {
  const test::TempFolder folder;
  int read = 0;
  for (const RunOption& option : run_options()) {
    const std::string argument = fmt::format("--{}={}", option.name, test::other_value(option));
    SCOPED_TRACE(argument);
    const std::string error = error_parsing({argument});
    if (error != "no error") {
      EXPECT_THAT(error, Not(HasSubstr("unknown option")));
      continue;
    }
    ++read;
    EXPECT_EQ(option.text(parsed({argument}).run), option.text(test::with_other_value(option)));
  }
  EXPECT_GT(read, 45);
  const TrainArguments loud = parsed({"--verbose", "--out=" + (folder.path() / "new").string()});
  EXPECT_TRUE(loud.verbose);
  EXPECT_EQ(loud.out, folder.path() / "new");
  EXPECT_TRUE(parsed("--quiet").quiet);
}

TEST(TrainArguments, OptimizersHaveTheirUsualMomentum) {
  const auto momentum = [](const char* optimizer) {
    return optimizer_options(parsed(Words{"--optimizer", optimizer}).run).momentum;
  };
  EXPECT_EQ(momentum("sgd"), 0.5);
  EXPECT_EQ(momentum("lars"), 0.5);
  EXPECT_EQ(momentum("rmsprop"), 0);
  EXPECT_EQ(momentum("adam"), 0);
  const OptimizerOptions options = optimizer_options(
      parsed("--optimizer=rmsprop:alpha=0.9 --momentum=0.7 --weight-decay=0.1").run);
  EXPECT_EQ(options.method, OptimizerMethod(RmspropOptions{.alpha = 0.9}));
  EXPECT_EQ(options.momentum, 0.7);
  EXPECT_EQ(options.weight_decay, 0.1);
}

TEST(TrainArguments, PortableKernelsHaveNoBf16) {
  EXPECT_EQ(parsed({}).run.kernels, Kernels::native);
  if (cpu_instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "needs AVX2";
  EXPECT_THAT(error_parsing("--kernels=portable --precision=bf16"),
              HasSubstr("accepted: with --precision full or fp16"));
  EXPECT_EQ(parsed("--kernels=portable --precision=fp16").run.precision, "fp16");
}

TEST(TrainArguments, SeparateValuesAndTheLastOneCount) {
  EXPECT_EQ(parsed("--cores 4").run.cores, 4);
  EXPECT_EQ(parsed("--cores 4 --cores=5").run.cores, 5);
  EXPECT_FALSE(parsed("--nesterov --nesterov=false").run.nesterov);
}

TEST(TrainArguments, ConfigurationLeavesOutWhereAndHowLoud) {
  const test::TempFolder folder;
  const std::string file =
      folder.write("config.toml", config_text(parsed("--out=new_run --quiet"), folder.path()));
  EXPECT_EQ(parsed("--config " + file), TrainArguments{});
}

TEST(TrainArguments, ArgumentsOverrideTheConfiguration) {
  const test::TempFolder folder;
  const std::string file = folder.write("c.toml", "cores = 4\nepochs = 9\nnesterov = true\n");
  const TrainArguments options = parsed("--cores=5 --nesterov=false --config " + file);
  EXPECT_EQ(options.run.cores, 5);
  EXPECT_EQ(options.run.epochs, 9);
  EXPECT_FALSE(options.run.nesterov);
}

TEST(TrainArguments, ErrorsInTheConfigurationHaveTheirLine) {
  const test::TempFolder folder;
  const auto error_in = [&](std::string_view text) {
    return error_parsing({"--config", folder.write("c.toml", text)});
  };
  EXPECT_THAT(error_in("config = \"d.toml\"\n"),
              EndsWith("c.toml:1: config is accepted as an argument only"));
  // A line that an argument overrides has to be right all the same.
  EXPECT_THAT(error_in("\nthreads = 0\n"), HasSubstr("c.toml:2: threads: '0' is out of range"));
}

// Arguments, and what their refusal says of the first one.
struct Refused {
  std::string arguments;
  std::string cause;
  std::string accepted;
};

void expect_refused(const std::vector<Refused>& all) {
  for (const auto& [text, cause, accepted] : all) {
    const std::string option = text.substr(0, text.find_first_of(" ="));
    EXPECT_THAT(error_parsing(text),
                AllOf(StartsWith(option + ": " + cause), HasSubstr("accepted: " + accepted)))
        << text;
  }
}

// Nobody would want the run without them: that they do nothing is an error before it begins.
TEST(TrainArguments, RejectArgumentsThatWouldDoNothing) {
  expect_refused({
      {"--lookahead-alpha=0.8", "there is no Lookahead", "with --lookahead K"},
      {"--lookahead-start=after --lookahead=0", "there is no Lookahead", "with --lookahead K"},
      {"--min-delta=0.1", "nothing stops early", "with --patience N"},
      {"--monitor-every=3", "nothing is monitored", "with --monitor PATTERN"},
      {"--histograms=*", "nothing is written for TensorBoard", "with --tensorboard"},
      {"--histograms-every=3 --tensorboard", "there are no histograms", "with --histograms"},
      {"--schedule-unit=steps", "constant counts nothing", "with another --schedule"},
      {"--schedule-unit=steps --schedule=plateau", "plateau counts nothing", "with another"},
      {"--watch=test-accuracy", "nothing uses test-accuracy", "with --patience, --keep-best or"},
      {"--no-decay=vectors", "nothing decays, and no rate is layer-wise", "with --weight-decay"},
      {"--momentum=0.9 --optimizer=adam", "adam has none", "with sgd, lars or rmsprop"},
      {"--log-steps=5 --quiet", "--quiet prints none", "one of them"},
      {"--keep=5 --checkpoint-every=never", "without --checkpoint-every there are none", "with an"},
      {"--on-trace-end=stop --trace=128", "a constant trace has no end", "with a file or elastic"},
      {"--top-k=1000001", "'1000001' is out of range", "a whole number from 0 to 1000000"},
  });
  for (const char* const arguments :
       {"--lookahead=5 --lookahead-alpha=0.8 --lookahead-start=after",
        "--patience=2 --min-delta=0.1", "--monitor=* --monitor-every=3",
        "--tensorboard --histograms=* --histograms-every=3",
        "--schedule=exponential --schedule-unit=steps",
        "--schedule=plateau+exponential --schedule-unit=steps", "--watch=train-loss --patience=1",
        "--watch=train-loss --keep-best", "--watch=train-loss --schedule=plateau",
        "--no-decay=vectors --weight-decay=0.1", "--no-decay=vectors --optimizer=lars",
        "--no-decay=vectors --rule=adascale", "--no-decay=vectors --rule=lbsgd:warmup=lars",
        "--no-decay=vectors --log-noise", "--keep=5 --checkpoint-every=1epochs",
        "--trace=elastic --on-trace-end=stop", "--top-k=10"}) {
    EXPECT_EQ(error_parsing(arguments), "no error") << arguments;
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
  EXPECT_EQ(error_parsing("--config " + config), "no error");
  EXPECT_EQ(error_parsing("--config " + config + " --patience=0 --checkpoint-every=never --quiet"),
            "no error");
  EXPECT_THAT(error_parsing("--config " + config + " --patience=0 --min-delta=1"),
              HasSubstr("nothing stops early"));
}

TEST(TrainArguments, OfVerifyExcludeOptionsOfResultsThatItDoesNotKeep) {
  const auto error = [](const Words& arguments) {
    return error_parsing(arguments, TrainCommand::verify);
  };
  for (const std::string text :
       {"patience=3", "min-delta=1", "keep-best", "top-k=3", "target-accuracy=50",
        "checkpoint-every=3steps", "keep=3", "out=run", "log-steps=3", "monitor=*",
        "monitor-every=3", "quiet"}) {
    const std::string option = text.substr(0, text.find('='));
    EXPECT_THAT(error({"--" + text}),
                StartsWith("--" + option + ": `rubato verify` keeps nothing"));
  }
  EXPECT_EQ(error("--steps=1"),
            "--steps: '1' is out of range; accepted: a whole number from 2 to 1000000000");
  EXPECT_EQ(error("--steps=2 --rule=adascale --log-noise --faults=rate=0.1"), "no error");
  const test::TempFolder folder;
  EXPECT_EQ(error({"--config", folder.write("c.toml", config_text(parsed({}), folder.path()))}),
            "no error");
}

TEST(TrainArguments, FaultsAndStragglersNameTheirArguments) {
  expect_refused({
      {"--straggler=core=1,factor=2,speed=3", "unknown argument 'speed'", "core, factor"},
      {"--fault=core=1,step=2,speed=3", "unknown argument 'speed'", "core, step, substep"},
      {"--faults=rate=0.1,speed=3", "unknown argument 'speed'; did you mean 'seed'?", "rate, seed"},
      {"--faults=rate=1", "rate: '1' is out of range", "a number from 0 to below 1"},
      {"--fault=core=1,step=0", "step: '0' is out of range", "a whole number from 1 to 9223372036"},
      {"--straggler=core=1,factor=2,factor=3", "'core=1,factor=2,factor=3' is malformed",
       "such as"},
  });
}

TEST(TrainArguments, RatesOfParametersAreFactors) {
  expect_refused({
      {"--lr-for=a=1,b", "'b' is not of the form PATTERN=FACTOR", "such as head.*=10,stem.*=0"},
      {"--lr-for=a=1,", "'' is not of the form PATTERN=FACTOR", "such as"},
      {"--lr-for=a=1,a=2", "'a' has two factors", "one for each pattern"},
      {"--lr-for=a=-1", "'-1' is out of range", "a number of at least 0"},
      {"--lr-for=a=inf", "'inf' is out of range", "a number of at least 0"},
  });
}

TEST(TrainArguments, AResumedRunStaysInItsFolderWithItsOptions) {
  const test::TempFolder folder;
  const std::string run = folder.path() / "run";
  folder.write("run/config.toml", config_text(parsed({}), run));
  const TrainArguments options =
      parsed("--epochs=9 --resume " + run + "/checkpoints/step-89.safetensors");
  EXPECT_EQ(options.resume, run);
  EXPECT_EQ(options.checkpoint, run + "/checkpoints/step-89.safetensors");
  EXPECT_EQ(options.run.epochs, 9);
  EXPECT_EQ(read_configuration(run + "/config.toml").epochs, 5);
  EXPECT_EQ(error_parsing("--resume " + run + " --out " + (folder.path() / "new").string()),
            "--out: a resumed run stays in its folder; accepted: --resume alone");
  EXPECT_EQ(error_parsing("--resume " + run + " --config c.toml"),
            "--config: --resume has a configuration of its own; accepted: one of them");
}

TEST(TrainArguments, RejectWhatIsWrong) {
  expect_refused({
      {"--cores 0", "'0' is out of range", "a whole number from 1 to 1048576"},
      {"--cores eight", "'eight' is not a number", "a whole number from 1 to 1048576"},
      {"--threads 0", "'0' is out of range", "a whole number from 1 to 4096"},
      {"--log-steps -1", "'-1' is out of range", "a whole number from 0 to 1000000000"},
      {"--weight-decay -1", "'-1' is out of range", "a number of at least 0"},
      {"--target-accuracy 100.5", "'100.5' is out of range", "a number above 0 and up to 100"},
      {"--label-smoothing 1", "'1' is out of range", "a number from 0 to below 1"},
      {"--lookahead-alpha 0", "'0' is out of range", "a number above 0 and up to 1"},
      {"--histograms-every 0", "'0' is out of range", "a whole number from 1 to 1000000000"},
      {"--ref-batch 1.5", "'1.5' is not a whole number", "a whole number from 1 to 1099511627776"},
      {"--seed -1", "'-1' is out of range", "a whole number from 0 to 18446744073709551615"},
      {"--lr inf", "'inf' is out of range", "a number greater than 0, up to 1e+300"},
      {"--target-accuracy 98,last", "'98,last' is not a number", "a number above 0 and up to 100"},
      {"--target-accuracy ,best", "'' is empty", "a number above 0 and up to 100"},
      {"--rule linaer", "unknown rule 'linaer'; did you mean 'linear'?", "constant, linear, root"},
      {"--schedule cosine", "cosine needs a 'total'", "cosine:total=90"},
      {"--schedule warmup:length=1 --schedule-unit whole-epochs",
       "the schedule warmup:length=1 has a rate of 0 for the whole first epoch", "the unit epochs"},
      {"--schedule plateau:mode=min --watch test-accuracy", "plateau: mode: test-accuracy", "max"},
      {"--rule lbsgd:warmup=lars,epochs=3", "lbsgd: epochs: does nothing", "with warmup=linear"},
      {"--hours 3", "there is no modelled time", "with --clock virtual"},
      {"--on-idle pause", "there is no modelled time", "with --clock virtual"},
      {"--money 3 --clock virtual", "nothing costs anything", "with --price"},
      {"--cluster substep=0 --clock virtual", "substep: '0' is out of range", "a number greater"},
      {"--cluster substep --clock virtual", "'substep' is malformed", "NAME=VALUE,NAME=VALUE"},
      {"--fault core=1,step=2 --clock virtual", "in modelled time", "an availability"},
      {"--faults rate=0.5 --clock virtual", "in modelled time", "an availability"},
      {"--init msra:fan=up", "msra: fan: unknown value 'up'; did you mean 'in'?", "in, out"},
      {"--precision fp61", "unknown precision 'fp61'; did you mean 'fp16'?", "full, bf16, fp16"},
      {"--reduce foo", "unknown reducer 'foo'", "auto, tree, chunked-tree, sharded, sequential"},
      {"--watch ema-test-loss --patience 3", "ema-test-loss: no weights are averaged", "with ema"},
      {"--clip-value 1 --clip-norm 1", "gradients are clipped by their norm", "one of them"},
      {"--clip-value 1 --optimizer adam:second-moment=minibatch",
       "the squares of minibatches' gradients are known as a sum", "clipping by norm, or second-"},
      {"--transform noise:deviation=1 --optimizer adamw:second-moment=minibatch",
       "the squares of minibatches' gradients are known as a sum", "clipping by norm, or second-"},
      {"--data digit", "unknown data set 'digit'; did you mean 'digits'?", "digits, mnist:DIR"},
      {"--data mnist:", "unknown data set 'mnist:'; did you mean 'mnist:DIR'?", "digits"},
      {"--data mnist:/no/where", "no such folder as '/no/where'", "the folder that holds the IDX"},
      {"--nesterov --momentum=0", "there is no momentum", "a momentum above 0"},
      {"--nesterov --optimizer=adam", "adam does not have it", "with optimizer sgd"},
      {"--out /", "'/' exists already", "a folder that does not exist yet"},
  });
  // Messages that do not begin with one option.
  const std::vector<std::pair<Words, std::string>> others{
      {"--coers 4", "unknown option '--coers'; did you mean '--cores'? see rubato train --help"},
      {"--coers=4", "unknown option '--coers'; did you mean '--cores'?"},
      {"-cores 4", "unknown option '-cores'; did you mean '--cores'?"},
      {"--zzzzzzzzzz", "unknown option '--zzzzzzzzzz'; see rubato train --help"},
      {"-7", "unknown option '-7'; see rubato train --help"},
      {"mnist", "unexpected argument 'mnist'; see rubato train --help"},
      {"--quiet -", "unexpected argument '-'; see rubato train --help"},
      {"--cores", "--cores needs a value; accepted: --cores N"},
      {"--cores=", "--cores needs a value; accepted: --cores N"},
      {"--trace --cores 4", "--trace needs a value; accepted: --trace FILE"},
      {"--rule=linear-momentum --optimizer=adam", "--rule: linear-momentum sums gradients, which"},
      {"--precision=bf16:scale=2", "--precision: bf16 takes no arguments, but has 'scale'"},
      {"--reduce two-level:hosts=2", "reducer two-level:hosts=2 does not give the same bits"},
      {"--optimizer=sgd:form=mxnet --momentum=0", "sgd:form=mxnet: there is no momentum"},
      {"--data /", "'/' is a folder; did you mean 'mnist:/', 'cifar10:/' or 'images:/'?"},
      {{"--out", ""}, "--out: '' is empty; accepted: a folder that does not exist"},
      {"--config /no/where", "cannot read the configuration /no/where: No such file"}};
  for (const auto& [arguments, message] : others) {
    EXPECT_THAT(error_parsing(arguments), HasSubstr(message));
  }
}

}  // namespace
}  // namespace rubato::app
