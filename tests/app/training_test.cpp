// What the programs that train make of their options, and what they say: without training.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/records.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "app/run_program.hpp"
#include "clients/app/train/terminal_run.hpp"
#include "clients/app/train/train_arguments.hpp"
#include "runs/run/run_request.hpp"
#include "runs/run/session.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {
namespace {

using test::Words;

TrainArguments parsed_options(const Words& arguments) {
  return parse_train_arguments(arguments.all());
}
TrainOptions options_of(const Words& arguments) {
  return train_options(parsed_options(arguments).run);
}

// Every option that the library has: its value by default, and one that was asked for.
TEST(TrainOptions, AreThoseOfTheCommandLine) {
  struct Case {
    std::string arguments;
    // Whether it is there.
    std::function<bool(const TrainOptions&)> is_there;
  };
  const std::vector<Case> cases{
      {"--epochs=7", [](const auto& o) { return o.epochs == 7; }},
      {"--iterations=12.5", [](const auto& o) { return o.budget.iterations == 12.5; }},
      {"--samples=512", [](const auto& o) { return o.budget.samples == 512; }},
      {"--clock=virtual --hours=0.5", [](const auto& o) { return o.budget.hours == 0.5; }},
      {"--clock=virtual --price=2 --money=0.5",
       [](const auto& o) { return o.budget.money == 0.5; }},
      {"--minibatch=16", [](const auto& o) { return o.minibatch_size == 16; }},
      {"--lr=0.125", [](const auto& o) { return o.learning_rate == 0.125; }},
      {"--ref-batch=64", [](const auto& o) { return o.reference_batch_size == 64; }},
      {"--rule=root:ramp=3", [](const auto& o) { return o.rule.text() == "root:ramp=3"; }},
      {"--schedule=cosine:total=5",
       [](const auto& o) { return o.schedule.text() == "cosine:total=5"; }},
      {"--schedule=cosine:total=5 --schedule-unit=samples",
       [](const auto& o) { return o.schedule_unit == ScheduleUnit::samples; }},
      {"--watch=test-accuracy --keep-best",
       [](const auto& o) { return o.watch == Metric::test_accuracy; }},
      {"--optimizer=rmsprop:alpha=0.5",
       [](const auto& o) {
         return o.optimizer == OptimizerOptions{.method = RmspropOptions{.alpha = 0.5}};
       }},
      {"--optimizer=lars:trust=0.5,form=pytorch --momentum=0.25",
       [](const auto& o) {
         return o.optimizer ==
                OptimizerOptions{
                    .method = LarsOptions{.momentum_form = MomentumForm::pytorch, .trust = 0.5},
                    .momentum = 0.25};
       }},
      {"--nesterov",
       [](const auto& o) { return method_options<SgdOptions>(o.optimizer.method).nesterov; }},
      {"--weight-decay=0.25", [](const auto& o) { return o.optimizer.weight_decay == 0.25; }},
      {"--lookahead=7", [](const auto& o) { return o.lookahead == LookaheadOptions{.k = 7}; }},
      {"--lookahead=5 --lookahead-alpha=0.75",
       [](const auto& o) { return o.lookahead == LookaheadOptions{.k = 5, .alpha = 0.75}; }},
      {"--lookahead=5 --lookahead-start=after",
       [](const auto& o) {
         return o.lookahead ==
                LookaheadOptions{.k = 5, .start = LookaheadStart::after_first_update};
       }},
      {"--lookahead=5 --lookahead-weights=fast",
       [](const auto& o) {
         return o.lookahead == LookaheadOptions{.k = 5, .weights = LookaheadWeights::fast};
       }},
      {"--lr-for=*.bias=2.5,a=b=1e-3,vectors=0",
       [](const auto& o) {
         return o.rate_factors ==
                std::vector<RateFactor>{{"*.bias", 2.5}, {"a=b", 0.001}, {"vectors", 0}};
       }},
      {"--ema=1000", [](const auto& o) { return o.ema_half_life == 1000; }},
      {"--clip-norm=2.5", [](const auto& o) { return o.clip_norm == 2.5; }},
      {"--clip-value=2.5", [](const auto& o) { return o.clip_value == 2.5; }},
      {"--seed=18446744073709551615",
       [](const auto& o) { return o.seed == 18446744073709551615U; }},
      {"--top-k=3", [](const auto& o) { return o.top_k == 3; }},
      {"--log-noise", [](const auto& o) { return o.log_noise; }},
      {"--digest=every=7", [](const auto& o) { return o.digest_every == 7; }},
      {"--digest=never", [](const auto& o) { return o.digest_every == 0; }},
      {"--log-minibatches", [](const auto& o) { return o.log_minibatches; }},
      {"--cores=11", [](const auto& o) { return o.cores == 11; }},
      {"--assignment=strided", [](const auto& o) { return o.assignment == Assignment::strided; }},
      {"--reduce=sharded", [](const auto& o) { return o.reduce == "sharded"; }},
      {"--exact=false", [](const auto& o) { return !o.exact; }},
      {"--fault=core=1,step=2,substep=3+core=4,step=5",
       [](const auto& o) {
         return o.faults == FaultOptions{.planned = {{CoreRank{1}, StepIndex{1}, 3},
                                                     {CoreRank{4}, StepIndex{4}, 0}}};
       }},
      {"--faults=rate=0.25,seed=6",
       [](const auto& o) { return o.faults == FaultOptions{.rate = 0.25, .seed = 6}; }},
      {"--straggler=core=2,factor=1.5",
       [](const auto& o) {
         return o.stragglers == std::vector<Straggler>{{CoreRank{2}, 1.5}};
       }},
      {"--threads=3", [](const auto& o) { return o.threads == 3; }}};
  // Not what the machine happens to have.
  const char* const usual = "--threads=2";
  for (const auto& [arguments, is_there] : cases) {
    SCOPED_TRACE(arguments);
    EXPECT_FALSE(is_there(options_of(usual))) << "the case shows nothing";
    EXPECT_TRUE(is_there(options_of(arguments)));
    // Through the configuration of the run, as well.
    const test::TempFolder folder;
    const std::string config = to_toml(parsed_options(arguments).run);
    EXPECT_TRUE(is_there(options_of({"--config", folder.write("config.toml", config)}))) << config;
  }
  const TrainOptions defaults = options_of(usual);
  EXPECT_FALSE(defaults.lookahead.has_value());
  EXPECT_EQ(defaults.digest_every, kDigestEvery);
  EXPECT_TRUE(defaults.groups.empty());
  EXPECT_EQ(defaults.optimizer, OptimizerOptions{.momentum = 0.5});
}

TEST(TrainOptions, MakeAGroupOfEachPattern) {
  const auto groups = options_of("--no-decay=conv*,vectors,*.bias --weight-decay=0.1").groups;
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].name, "conv*");
  EXPECT_EQ(groups[1].name, "vectors");
  EXPECT_EQ(groups[2].name, "*.bias");
  EXPECT_TRUE(groups[0].takes({.name = "conv1.weight", .shape = {2, 2}}));
  EXPECT_FALSE(groups[0].takes({.name = "fc.weight", .shape = {2, 2}}));
  EXPECT_TRUE(groups[1].takes({.name = "any", .shape = {2}}));
  EXPECT_TRUE(groups[2].takes({.name = "fc.bias", .shape = {2}}));
  for (const ParameterGroup& group : groups) EXPECT_EQ(group.options.weight_decay, 0);
}

TEST(RunMessages, OpenWithWhatWillBeTrained) {
  TrainArguments options = parsed_options(
      "--model=mlp --rule=root --lr=0.25 --ref-batch=64 --threads=3 --minibatch=16 --cores=5 "
      "--seed=9 --optimizer=adam");
  const auto workload = dense_workload({.model = "quadratic:dim=7,samples=90"});
  const auto opened = [&](const Trace& trace) { return opening(options.run, *workload, trace); };
  EXPECT_EQ(opened(Trace({{32, std::nullopt}}, TraceEnd::hold, "the trace")),
            "quadratic:dim=7,samples=90: 7 parameters, 90 samples, trace the trace\n"
            "rule root, lr 0.25 at batch 64, adam, minibatch 16, 5 cores on 3 threads, seed 9\n");
  EXPECT_THAT(opened(Trace({{32, 2}, {32, 7}}, TraceEnd::hold, "t")),
              HasSubstr(", 2 to 7 cores on 3 threads"));
  EXPECT_THAT(opened(Trace({{32, 2}, {32, std::nullopt}}, TraceEnd::hold, "t")),
              HasSubstr(", 2 to 5 cores on 3 threads"));
}

TEST(RunMessages, SayWhereARunGoesOn) {
  TrainResult result;
  result.steps = 17;
  result.epochs = 3;
  EXPECT_EQ(resumption(result, std::nullopt, std::nullopt),
            "there is no checkpoint yet: the run starts over\n");
  const std::string from = "continuing after step 17 (3 epochs are complete), from c/step-17\n";
  const std::optional<CheckpointFolder::Found> found{{.file = "c/step-17", .state = {}}};
  EXPECT_EQ(resumption(result, found, std::nullopt), from);
  EXPECT_EQ(resumption(result, found, "run/newer"),
            from +
                "the steps after step 17 are kept in run/newer, a run of its own that --resume can "
                "continue, too\n");
}

TEST(RunMessages, CloseWithWhatCameOut) {
  const test::TempFolder folder;
  const RunConfiguration configuration{.model = "quadratic:dim=2,samples=64", .trace = "32"};
  const rubato::Run run(configuration, dense_workload(configuration),
                        RunLocation::create(folder.path() / "run"));
  RunSummary summary;
  summary.result = {.epochs = 2,
                    .steps = 10,
                    .samples = 1000,
                    .train_seconds = 4,
                    .final_test = std::nullopt,
                    .best_test_accuracy = std::nullopt,
                    .stopped = {}};
  summary.wall_seconds = 75;
  const std::string end = "run folder " + run.location().path().string() + "\n";
  const auto trained = [&] { return closing(summary, run, /*verbose=*/false); };
  const std::string numbers = ": 10 steps, 1000 samples in 1:15 (250 samples/s)\n";
  EXPECT_EQ(trained(), "trained 2 epochs" + numbers + end);
  summary.result.part = EpochPart{.steps = 5, .samples = 160, .of_steps = 48};
  EXPECT_EQ(trained(), "trained 2 epochs and 5 of 48 steps of epoch 3" + numbers + end);
  summary.result.epochs = 0;
  EXPECT_EQ(trained(), "trained 5 of 48 steps of epoch 1" + numbers + end);
  summary.result.epochs = 1;
  summary.result.part.reset();
  summary.result.stopped = "enough";
  summary.result.final_test =
      Evaluation{.samples = 9, .loss = 1, .accuracy = 0.5, .top_k_accuracy = {}};
  summary.result.best_test_accuracy = 0.75;
  EXPECT_EQ(trained(), "stopped: enough\ntrained 1 epoch" + numbers +
                           "test accuracy 50.00 %, best 75.00 %\n" + end);
  summary.result.final_test->accuracy.reset();
  EXPECT_EQ(trained(), "stopped: enough\ntrained 1 epoch" + numbers + "test loss 1\n" + end);
}

TEST(RunMessages, SayByHowMuchATargetIsMissed) {
  const auto missed = [](const std::string& target, std::optional<double> last,
                         std::optional<double> best) {
    TrainResult result;
    if (last)
      result.final_test =
          Evaluation{.samples = 1, .loss = 0, .accuracy = last, .top_k_accuracy = {}};
    result.best_test_accuracy = best;
    return missed_target(parsed_options(target.empty() ? "" : "--target-accuracy=" + target).run,
                         result);
  };
  EXPECT_EQ(missed("", 0.1, 0.2), std::nullopt);
  EXPECT_EQ(missed("50", 0.5, 0.6), std::nullopt);
  EXPECT_EQ(missed("50", 0.49, 0.6), "test accuracy 49.00 % is below --target-accuracy 50 %");
  EXPECT_EQ(missed("50,best", 0.4, 0.5), std::nullopt);
  EXPECT_EQ(missed("50.5,best", 0.6, 0.5),
            "the best test accuracy 50.00 % is below --target-accuracy 50.5 %");
  EXPECT_EQ(missed("50", {}, {}), "test accuracy 0.00 % is below --target-accuracy 50 %");
  TrainResult without;
  without.final_test = Evaluation{.samples = 1, .loss = 0, .accuracy = {}, .top_k_accuracy = {}};
  EXPECT_EQ(missed_target(parsed_options("--target-accuracy=50").run, without),
            "--target-accuracy 50 %: the outputs do not tell the classes apart, and have no "
            "accuracy");
}

TEST(RunMessages, SayWhenAScheduleHasEnded) {
  const auto ended = [](const std::string& options, const TrainResult& result) {
    return ended_schedule(parsed_options(options).run, result, /*samples=*/100);
  };
  TrainResult two;
  two.epochs = 2;
  two.steps = 20;
  EXPECT_EQ(ended("--schedule=cosine:total=2", two), std::nullopt);
  EXPECT_EQ(ended("--schedule=cosine:total=1.96", two), std::nullopt) << "within the last step";
  EXPECT_EQ(
      ended("--schedule=cosine:total=1.5", two),
      "--schedule cosine:total=1.5: it came to its end after 1.5 of 2 epochs, with a factor of "
      "0");
  EXPECT_EQ(
      ended("--schedule=one-cycle:total=9,floor=0.01 --schedule-unit=steps", two),
      "--schedule one-cycle:total=9,floor=0.01: it came to its end after 9 of 20 steps, with a "
      "factor of 0.01");
  TrainResult more;
  more.epochs = 1;
  more.part = EpochPart{.samples = 50};
  more.steps = 15;
  EXPECT_THAT(ended("--schedule=warmup:length=1+polynomial:total=0.2,after=1", more).value(),
              HasSubstr("it came to its end after 1.2 of 1.5 epochs"));
  for (const char* endless :
       {"constant", "warmup:length=1", "cosine-restarts:first=1", "plateau"}) {
    EXPECT_EQ(ended(std::string("--schedule=") + endless, two), std::nullopt) << endless;
  }
}

TEST(RunMessages, SayWhatDoesNothing) {
  const Trace silent({{32, std::nullopt}}, TraceEnd::hold, "t");
  const Trace saying({{32, 4}, {32, 6}}, TraceEnd::hold, "t");
  const auto lines = [](const Words& arguments, const Trace& trace, bool redrawn) {
    return idle_arguments(parsed_options(arguments), trace, redrawn);
  };
  EXPECT_THAT(lines("--cores=4 --log-steps=3", silent, false), IsEmpty());
  EXPECT_THAT(lines({}, saying, true), IsEmpty()) << "nobody asked for it";
  const Trace large({{96, std::nullopt}, {32, std::nullopt}}, TraceEnd::hold, "t");
  EXPECT_THAT(lines("--cores=1000000 --minibatch=16", large, false),
              ElementsAre("of 1000000 cores at most 6 compute, one for each minibatch of a step; "
                          "the others only take time"));
  EXPECT_THAT(lines("--cores=100005 --minibatch=16", large, false), IsEmpty());
  EXPECT_THAT(
      lines("--cores=9 --log-steps=3 --straggler=core=5,factor=2+core=6,factor=2", saying, true),
      ElementsAre("--cores 9 does nothing: t says how many there are in every step",
                  "--straggler core=6 does nothing: the cores are 0 to 5",
                  "--log-steps 3 does nothing on a terminal, where a bar shows every step"));
}

// To whoever expects the rate to be the one that was given.
TEST(RunMessages, SayWhatTheRuleMakesOfTheRate) {
  const Trace constant({{64, 2}, {64, 3}}, TraceEnd::hold, "t");
  const Trace elastic({{64, 2}, {128, 2}}, TraceEnd::hold, "t");
  const auto said = [](const Words& arguments, const RunSteps& steps) {
    return scaled_rate(parsed_options(arguments), steps);
  };
  EXPECT_EQ(said("--lr=0.1", constant),
            "--lr 0.1 is for batch 128: rule linear takes steps of batch 64 with lr 0.05\n"
            "with --ref-batch 64 they are taken with lr 0.1");
  EXPECT_THAT(said("--lr=0.1 --rule=root", constant).value(), HasSubstr("with lr 0.0707107\n"));
  EXPECT_THAT(said("--lr=0.1 --rule=adascale", constant).value(),
              HasSubstr("rule adascale takes steps of batch 64 with a rate of its own\n"));
  EXPECT_EQ(said({}, constant), std::nullopt) << "nobody gave one";
  EXPECT_EQ(said("--lr=0.1 --ref-batch=128", constant), std::nullopt);
  EXPECT_EQ(said("--lr=0.1 --rule=constant", constant), std::nullopt);
  EXPECT_EQ(said("--lr=0.1", elastic), std::nullopt) << "that is what it is for";
  EXPECT_EQ(said("--lr=0.1", Trace::constant(128)), std::nullopt);
}

// Before the step, in it, without a substep in it, and after the end.
TEST(PlannedFaults, AreMissedWhereTheyDoNotHappen) {
  const std::vector<Fault> planned{{CoreRank{0}, StepIndex{0}, 0},
                                   {CoreRank{1}, StepIndex{2}, 0},
                                   {CoreRank{7}, StepIndex{2}, 0},
                                   {CoreRank{1}, StepIndex{3}, 0},
                                   {CoreRank{2}, StepIndex{9}, 4}};
  PlannedFaults faults(planned, StepIndex{1});
  test::NoTraining training;
  const auto pass = [&](std::int64_t index, std::vector<FaultRecord> died) {
    StepRecord step;
    step.plan.index = StepIndex{index};
    if (!died.empty()) faults.on_fault(training, step.plan, died, 3);
    faults.on_step(training, step);
  };
  pass(1, {});
  pass(2, {{.core = CoreRank{1}}, {.core = CoreRank{3}}});
  pass(3, {{.core = CoreRank{2}}});
  EXPECT_THAT(
      faults.missed(4),
      ElementsAre("--fault core=7,step=3 did not happen: the core had no substep in that step",
                  "--fault core=1,step=4 did not happen: the core had no substep in that step",
                  "--fault core=2,step=10 did not happen: training ended after 4 steps"));
  // The step at which training goes on counts.
  EXPECT_THAT(PlannedFaults(planned, StepIndex{9}).missed(4), SizeIs(1));
  EXPECT_THAT(PlannedFaults(planned, StepIndex{10}).missed(4), IsEmpty());
}

}  // namespace
}  // namespace rubato::app
