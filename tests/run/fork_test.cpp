// Forks: runs that begin with the state of another after any of its steps.

#include "runs/run/fork.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "base/core/portable_math.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "run/runs.hpp"
#include "run/runs_in_folders.hpp"
#include "support/changed_state.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::outcome_of;

// 3 epochs of 8 steps, with the checkpoints of steps 5, 10, 15, 20 and 24, and other options.
RunConfiguration forked(const std::string& options = {}) {
  return test::with_options({.model = "quadratic:dim=5,samples=512",
                             .trace = "64",
                             .cores = 3,
                             .learning_rate = 0.05,
                             .epochs = 3,
                             .threads = 2,
                             .checkpoint_every = "5steps",
                             .keep = 10},
                            options);
}

// What a run has written about its training, without how long it took.
std::vector<nlohmann::json> metrics_in(const fs::path& folder) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(read_file(folder / "metrics.jsonl"));
  for (std::string text; std::getline(in, text);) {
    nlohmann::json line = nlohmann::json::parse(text);
    for (const char* key : {"seconds", "train_seconds", "test_seconds"}) line.erase(key);
    lines.push_back(std::move(line));
  }
  return lines;
}

class ForkTest : public test::RunsInFolders {
 protected:
  // Both return the SHA-256 of the weights.
  std::string train(const std::string& name, const RunConfiguration& run) const {
    return RunsInFolders::train(name, run).summary.value().weights_sha256;
  }
  std::string fork(const std::string& name, const RunConfiguration& run, const std::string& of,
                   std::int64_t step) const {
    return RunsInFolders::fork(name, run, of, step).summary.value().weights_sha256;
  }
  // How the fork of the run "run" is refused.
  [[nodiscard]] std::string refused(RunConfiguration run, std::int64_t step) const {
    run.from = point("run", step);
    return error_of([&] { return location_of_fork(folder("fork"), run, replay_); });
  }
};

// Other batch sizes every few steps.
const std::string kJumps = "model=quadratic:dim=5,samples=2048 trace=elastic ";

struct Case {
  std::string name;
  std::string options;
  friend std::ostream& operator<<(std::ostream& out, const Case& of) { return out << of.name; }
};

class UnchangedForks : public ForkTest, public testing::WithParamInterface<Case> {};

TEST_P(UnchangedForks, AreTheRunItself) {
  const RunConfiguration run = forked("digest=every=1 " + GetParam().options);
  const std::string weights = train("run", run);
  const auto metrics = metrics_in(folder("run"));
  const RunHistory history = RunHistory::of(folder("run"), run);
  for (const RunCheckpoint& one : history.checkpoints()) {
    history.require_state_of(one, read_state(one.file));
  }
  const auto steps =
      std::ranges::count(metrics, "step", [](const auto& line) { return line["kind"]; });
  ASSERT_GT(steps, 13);
  for (const std::int64_t step : {0, 1, 5, 7, 8, 10, 13}) {
    const std::string name = fmt::format("fork-{}", step);
    EXPECT_EQ(fork(name, run, "run", step), weights) << step;
    EXPECT_EQ(metrics_in(folder(name)), metrics) << step;
    EXPECT_FALSE(fs::exists(folder(name + ".replay")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfRuns, UnchangedForks,
    testing::Values(
        Case{"plain", "momentum=0.9"}, Case{"adascale", "rule=adascale clip-norm=1 log-noise=true"},
        Case{"root_adam", kJumps + "optimizer=adamw rule=root-adam on-batch-change=rescale"},
        Case{"memories_in_samples",
             kJumps + "momentum=0.9 weight-decay=0.1 lookahead=2 on-batch-change=reset "
                      "memory=momentum=samples,lookahead=samples decay-rule=timescale"},
        Case{"adascale_in_a_metric",
             kJumps + "optimizer=adamw rule=adascale:metric=optimizer log-noise=true"},
        Case{"adamw", "optimizer=adamw lookahead=3 schedule=cosine:total=3"},
        Case{"one_cycle", "optimizer=adamw schedule=one-cycle:total=3"},
        Case{"minibatches", "optimizer=adamw:second-moment=minibatch clip-norm=1"},
        Case{"ema", "ema=500 lookahead=2"}, Case{"rates", "lr-for=param*=0.3 momentum=0.9"},
        Case{"muon", "model=softmax optimizer=muon samples=1200"},
        Case{"plateau", "schedule=plateau:patience=1 watch=train-loss patience=2 keep-best=true"},
        Case{"carry", "remainder=carry trace=96 batch=noise-scale:max=128"},
        Case{"ramp", "rule=root batch=ramp:from=32,to=96,samples=300"},
        Case{"clock",
             "clock=virtual trace=spot:most=8,seed=3 on-trace-end=cycle "
             "cluster=substep=20,restart=60 availability=weak:max-batch=64"},
        Case{"tensorboard", "tensorboard=true"},
        Case{"without_checkpoints", "checkpoint-every=never"}),
    [](const auto& one) { return one.param.name; });

// Calls a function after a step.
class After final : public Observer {
 public:
  After(std::int64_t step, std::function<void(Training&)> act)
      : step_(step), act_(std::move(act)) {}
  void between_steps(Training& training) override {
    if (training.result().steps == step_) act_(training);
  }

 private:
  std::int64_t step_;
  std::function<void(Training&)> act_;
};

TEST_F(ForkTest, HasAnotherRateFromThatStepOn) {
  train("run", forked());
  const RunConfiguration changed = forked("lr=0.02");
  for (const std::int64_t step : {3, 8, 10}) {
    rubato::Run unbroken(forked(), dense_workload(forked()),
                         RunLocation::create(folder(fmt::format("unbroken-{}", step))));
    unbroken.trainer().add_observer<After>(
        step, [](Training& training) { training.set_learning_rate(0.02); });
    const std::string weights = unbroken.execute().summary.value().weights_sha256;
    EXPECT_EQ(fork(fmt::format("fork-{}", step), changed, "run", step), weights);
    EXPECT_EQ(metrics_in(folder(fmt::format("fork-{}", step))),
              metrics_in(folder(fmt::format("unbroken-{}", step))));
  }
}

// Twice the rate of all parameters is twice the rate.
TEST_F(ForkTest, HasOtherRatesOfParametersFromThatStepOn) {
  const std::string weights = train("run", forked("momentum=0.9"));
  const std::string twice = fork("twice", forked("momentum=0.9 lr=0.1"), "run", 7);
  EXPECT_NE(twice, weights);
  EXPECT_EQ(fork("fork", forked("momentum=0.9 lr-for=p*=2"), "run", 7), twice);
  EXPECT_EQ(fork("unchanged", forked("momentum=0.9 lr-for=p*=1"), "run", 7), weights);
  // The fork of a fork has them no more.
  EXPECT_EQ(fork("back", forked("momentum=0.9"), "fork", 7), weights);
}

TEST_F(ForkTest, HasAnotherRuleFromThatStepOn) {
  constexpr std::int64_t kStep = 7;
  RunConfiguration run = forked("ref-batch=16 rule=constant");
  train("run", run);
  std::int64_t steps = 0;
  RunConfiguration switched = run;
  switched.extensions.rules.add("switched", [&steps](const RuleInput& step) {
    return steps++ < kStep ? 1.0 : std::sqrt(step.scale());
  });
  switched.rule = {"switched", switched.extensions};
  const std::string weights = train("switched", switched);
  run.rule = "root";
  EXPECT_EQ(fork("fork", run, "run", kStep), weights);
  EXPECT_THAT(read_file(folder("fork") / "config.toml"),
              AllOf(StartsWith(fmt::format("# A fork: {} after step 7", folder("run").string())),
                    HasSubstr(", with another rule\n"), HasSubstr("rule = \"root\"")));
}

// A rule that is another one from a step on, which begins with it, and whose answers of that other
// one are changed by a function of the batch sizes of this step and the one before.
class SwitchedRule final : public Rule {
 public:
  using Change = std::function<void(Rates&, const RuleInput&, std::int64_t before)>;

  SwitchedRule(std::unique_ptr<Rule> first, std::unique_ptr<Rule> then, std::int64_t steps,
               Change change)
      : first_(std::move(first)),
        then_(std::move(then)),
        left_(steps),
        change_(std::move(change)) {}
  [[nodiscard]] std::string_view name() const override { return "switched"; }
  [[nodiscard]] RuleNeeds needs() const override { return then_->needs(); }
  [[nodiscard]] Rates rates(const RuleInput& input) override {
    const bool is_first = left_-- > 0;
    Rates rates = (is_first ? first_ : then_)->rates(input);
    if (!is_first && change_) change_(rates, input, batch_size_);
    batch_size_ = input.batch_size;
    return rates;
  }

 private:
  std::unique_ptr<Rule> first_;
  std::unique_ptr<Rule> then_;
  std::int64_t left_;
  Change change_;
  std::int64_t batch_size_ = 0;
};

struct JumpCase {
  std::string name;
  // Of the run, and what the fork has besides.
  std::string options;
  std::string change;
  // The same changes as a rule makes them.
  SwitchedRule::Change of_rule{};

  friend std::ostream& operator<<(std::ostream& out, const JumpCase& of) { return out << of.name; }
};

class ForksAtAJump : public ForkTest, public testing::WithParamInterface<JumpCase> {};

// The first step of the fork is the first of another batch size: a fork has to know the last batch
// of the run, which had no use for it.
TEST_P(ForksAtAJump, AreARunWhoseRuleSwitchesThere) {
  constexpr std::int64_t kStep = 7;
  std::string text = "step,batchsize\n";
  for (const int batch : {64, 64, 32, 64, 64, 64, 64, 256, 256, 32, 128, 64}) {
    text += fmt::format("{},{}\n", std::ranges::count(text, '\n') - 1, batch);
  }
  write_file(folder("jumps.csv"), text);
  const RunConfiguration run = forked("epochs=2 on-trace-end=cycle ref-batch=64 rule=root trace=" +
                                      folder("jumps.csv").string() + " " + GetParam().options);
  const std::string weights_of_run = train("run", run);
  const RunConfiguration changed = test::with_options(run, GetParam().change);

  RunConfiguration switched = run;
  switched.extensions.rules.add("switched", RuleRegistry::Maker([&](Spec& /*arguments*/) {
                                  return std::make_unique<SwitchedRule>(run.rule->make(),
                                                                        changed.rule->make(), kStep,
                                                                        GetParam().of_rule);
                                }));
  switched.rule = {"switched", switched.extensions};
  const std::string weights = train("switched", switched);
  EXPECT_EQ(fork("fork", changed, "run", kStep), weights);
  EXPECT_NE(weights, weights_of_run);
}

const char* const kAdamW = "optimizer=adamw:beta2=0.9 weight-decay=0.1";
const char* const kMomentum = "momentum=0.9 weight-decay=0.1";

bool has_changed(const RuleInput& input, std::int64_t before) {
  return input.batch_size != before;
}
double ratio_of_rates(const RuleInput& input, std::int64_t before) {
  const auto factor = [&](std::int64_t batch) {
    return input.base_learning_rate *
           std::sqrt(static_cast<double>(batch) / static_cast<double>(input.reference_batch_size)) /
           input.base_learning_rate;
  };
  return factor(before) / factor(input.batch_size);
}

INSTANTIATE_TEST_SUITE_P(
    OfRuns, ForksAtAJump,
    testing::Values(JumpCase{"root_adam", kAdamW, "rule=root-adam"},
                    JumpCase{"adascale_in_a_metric", kAdamW, "rule=adascale:metric=optimizer"},
                    JumpCase{"memory_of_beta2", kAdamW, "memory=beta2=samples",
                             [](Rates& rates, const RuleInput& input, std::int64_t) {
                               rates.optimizer.beta2 =
                                   exact::pow(*input.optimizer.beta2, input.scale());
                             }},
                    JumpCase{"memory_of_momentum", kMomentum, "memory=momentum=samples",
                             [](Rates& rates, const RuleInput& input, std::int64_t) {
                               const double momentum = *input.optimizer.momentum;
                               rates.optimizer.momentum = exact::pow(momentum, input.scale());
                               rates.update_rate *=
                                   (1 - *rates.optimizer.momentum) / (1 - momentum);
                             }},
                    JumpCase{"timescale", kAdamW, "decay-rule=timescale",
                             [](Rates& rates, const RuleInput& input, std::int64_t) {
                               rates.weight_decay_factor =
                                   input.scale() * (input.base_learning_rate / rates.learning_rate);
                             }},
                    JumpCase{"rescale_momentum", kMomentum, "on-batch-change=rescale",
                             [](Rates& rates, const RuleInput& input, std::int64_t before) {
                               if (has_changed(input, before)) {
                                 rates.optimizer.mean_factor = ratio_of_rates(input, before);
                               }
                             }},
                    JumpCase{"rescale_moments", kAdamW, "on-batch-change=rescale",
                             [](Rates& rates, const RuleInput& input, std::int64_t before) {
                               if (!has_changed(input, before)) return;
                               rates.optimizer.mean_factor = ratio_of_rates(input, before);
                               rates.optimizer.variance_factor =
                                   static_cast<double>(before) /
                                   static_cast<double>(input.batch_size);
                             }},
                    JumpCase{"reset_moments", kAdamW, "on-batch-change=reset",
                             [](Rates& rates, const RuleInput& input, std::int64_t before) {
                               if (!has_changed(input, before)) return;
                               rates.optimizer.mean_factor = 0;
                               rates.optimizer.forget_squares = true;
                             }}),
    [](const auto& one) { return one.param.name; });

TEST_F(ForkTest, TakesTheRowsOfAnotherTraceThatFollow) {
  const auto rows = [&](const char* name, int first, int then) {
    std::string text = "step,batchsize\n";
    for (int step = 0; step < 99; ++step) {
      text += fmt::format("{},{}\n", step, step < 9 ? first : then);
    }
    write_file(folder(name), text);
    return folder(name).string();
  };
  RunConfiguration run = forked();
  run.trace = rows("same.csv", 64, 64);
  train("run", run);
  run.trace = rows("unbroken.csv", 64, 32);
  const std::string weights = train("unbroken", run);
  EXPECT_EQ(fork("fork", run, "run", 9), weights);
  // The rows before that step play no part in it.
  run.trace = rows("other.csv", 128, 32);
  EXPECT_EQ(fork("other", run, "run", 9), weights);
}

// Takes steps with one optimizer, and then with another one, which may go on with its state.
class Switched final : public FlatOptimizer<float> {
 public:
  Switched(std::unique_ptr<FlatOptimizer<float>> first, std::unique_ptr<FlatOptimizer<float>> then,
           int steps, bool goes_on = false)
      : first_(std::move(first)), then_(std::move(then)), left_(steps), goes_on_(goes_on) {}
  void step(const Update<float>& update, Workers& workers) override {
    if (left_ == 0 && goes_on_) load_state(*then_, state_of(*first_));
    (left_-- > 0 ? first_ : then_)->step(update, workers);
  }
  void visit_state(StateVisitor& /*state*/) override {}
  bool needs_minibatch_squares() const override { return then_->needs_minibatch_squares(); }

 private:
  std::unique_ptr<FlatOptimizer<float>> first_;
  std::unique_ptr<FlatOptimizer<float>> then_;
  int left_;
  bool goes_on_;
};

TEST_F(ForkTest, BeginsAnotherOptimizerAnew) {
  static constexpr int kStep = 6;
  RunConfiguration run = forked("checkpoint-every=never momentum=0.9");
  train("run", run);
  RunConfiguration switched = run;
  switched.momentum.reset();
  const OwnOptimizer own{.of_float = [](const OptimizerParts& parts) {
    const OptimizerOptions sgd{.momentum = 0.9};
    const OptimizerOptions adam{.method = AdamOptions()};
    return std::make_unique<Switched>(make_optimizer<float>(sgd, parts.layout, parts.groups),
                                      make_optimizer<float>(adam, parts.layout, parts.groups),
                                      kStep);
  }};
  switched.extensions.optimizers.add("switched",
                                     [own](Spec& /*spec*/) { return OwnOptimizer(own); });
  switched.optimizer = {"switched", switched.extensions};
  const std::string weights = train("switched", switched);
  run.optimizer = "adam";
  run.momentum.reset();
  EXPECT_EQ(fork("fork", run, "run", kStep), weights);
}

// The mean squares go on as they are, and get those of minibatches from that step on.
TEST_F(ForkTest, GoesOnWithAnotherSecondMoment) {
  static constexpr int kStep = 6;
  RunConfiguration run = forked("optimizer=adam");
  train("run", run);
  RunConfiguration switched = run;
  const OwnOptimizer own{.of_float = [](const OptimizerParts& parts) {
    const OptimizerOptions adam{.method = AdamOptions()};
    const OptimizerOptions of_minibatches{
        .method = AdamOptions{.second_moment = SecondMoment::minibatch}};
    return std::make_unique<Switched>(
        make_optimizer<float>(adam, parts.layout, parts.groups),
        make_optimizer<float>(of_minibatches, parts.layout, parts.groups), kStep,
        /*goes_on=*/true);
  }};
  switched.extensions.optimizers.add("switched",
                                     [own](Spec& /*spec*/) { return OwnOptimizer(own); });
  switched.optimizer = {"switched", switched.extensions};
  const std::string weights = train("switched", switched);
  run.optimizer = "adam:second-moment=minibatch";
  EXPECT_EQ(fork("fork", run, "run", kStep), weights);
  EXPECT_NE(train("of minibatches", run), weights);
}

TEST_F(ForkTest, MayBeForkedAndMovedAndResumed) {
  const std::string weights = train("run", forked());
  const RunConfiguration run = forked("checkpoint-every=never");
  EXPECT_EQ(fork("child", run, "run", 7), weights);
  // The only checkpoint is that of step 7; step 3 is one of the run itself.
  EXPECT_EQ(fork("later", run, "child", 12), weights);
  EXPECT_EQ(fork("earlier", run, "child", 3), weights);

  // A fork has all that it needs.
  fs::remove_all(folder("run"));
  fs::rename(folder("child"), folder("moved"));
  fs::remove(folder("moved") / "summary.json");
  const RunConfiguration again = read_configuration(folder("moved") / "config.toml");
  EXPECT_EQ(
      outcome_of(again, RunLocation::resume(folder("moved"), again)).summary.value().weights_sha256,
      weights);
}

TEST_F(ForkTest, WritesNothingWithoutAFolder) {
  const std::string weights = train("run", forked());
  const RunConfiguration run = forked("from=" + point("run", 13));
  EXPECT_EQ(outcome_of(run, location_of_fork({}, run, replay_)).summary.value().weights_sha256,
            weights);
  EXPECT_EQ(std::distance(fs::directory_iterator(temp_.path()), fs::directory_iterator()), 1);
}

TEST_F(ForkTest, SaysWhatCannotFollow) {
  train("run", forked());
  EXPECT_THAT(
      refused(forked("model=quadratic:dim=6,samples=512"), 5),
      AllOf(HasSubstr("--model was quadratic:dim=5"), HasSubstr("accepted: those of the run")));
  EXPECT_THAT(refused(forked("minibatch=16"), 5), HasSubstr("--minibatch was 32, is 16"));
  EXPECT_THAT(refused(forked(), 25), HasSubstr("has 24 steps; accepted: 0 to 24"));
  EXPECT_FALSE(fs::exists(folder("fork")));
  fs::remove(folder("run") / "config.toml");
  EXPECT_THAT(refused(forked(), 5), HasSubstr("no run in"));
}

// The weights of the checkpoint are others, and so is its checksum.
TEST_F(ForkTest, FindsAStateThatIsNotThatOfItsRun) {
  const RunConfiguration every_step = forked("digest=every=1");
  train("run", every_step);
  const fs::path file = folder("run") / "checkpoints" / "step-10.safetensors";
  test::flip_bits(file, "parameter.");
  EXPECT_EQ(refused(every_step, 9), "no error");
  for (const std::int64_t step : {10, 12}) {
    EXPECT_THAT(refused(every_step, step),
                HasSubstr("step-10.safetensors: the state has the digest"));
  }
  fs::remove(file);
  EXPECT_EQ(refused(every_step, 12), "no error");
}

TEST_F(ForkTest, SaysThatItsOriginIsGone) {
  train("run", forked());
  fork("child", forked(), "run", 12);
  fs::rename(folder("run"), folder("moved"));
  RunConfiguration run = forked();
  const auto refused = [&](std::int64_t step) {
    run.from = point("child", step);
    return error_of([&] { return location_of_fork({}, run, replay_); });
  };
  EXPECT_THAT(refused(11), AllOf(HasSubstr("run, the origin of "), HasSubstr("child, is gone"),
                                 HasSubstr("steps from 12 on can be forked")));
  EXPECT_EQ(refused(12), "no error");
  EXPECT_EQ(refused(14), "no error");
}

TEST_F(ForkTest, FindsAnotherRunInThePlaceOfItsOrigin) {
  train("run", forked());
  fork("child", forked(), "run", 12);
  fs::rename(folder("run"), folder("moved"));
  RunConfiguration other = forked();
  other.learning_rate = 0.04;
  train("run", other);
  RunConfiguration run = forked();
  const auto refused = [&](std::int64_t step) {
    run.from = point("child", step);
    return error_of([&] { return location_of_fork({}, run, replay_); });
  };
  // No step has a digest before the tenth, nor is one repeated for the fifth.
  EXPECT_THAT(refused(5), HasSubstr("run is another run than the origin of "));
  EXPECT_THAT(refused(3), HasSubstr("step 1 has the learning rate 0.0"));
  EXPECT_EQ(refused(13), "no error");
}

TEST_F(ForkTest, LeavesNoFolderIfItsStateIsRefused) {
  EXPECT_NE(error_of([&] {
              outcome_of(forked(), RunLocation::fork(folder("fork"), {.state = {}, .records = {}}));
            }),
            "no error");
  EXPECT_FALSE(fs::exists(folder("fork")));
}

// The pattern is text of the user's, which may have blanks.
TEST_F(ForkTest, BeginsAnewWhatIsRememberedOfOtherElements) {
  RunConfiguration run = forked("model=mlp:hidden=16 samples=2000");
  run.optimizer = "muon:adamw=linear[1 a]*";
  train("run", run);
  run.optimizer = "muon:adamw=linear[1 2]*";
  EXPECT_NE(fork("other", run, "run", 20), "");
  run.optimizer = "muon:adamw=linear[1 a]*,beta1=0.8";
  run.from = point("run", 20);
  // What it remembers of the same elements stays.
  const State before = state_after(RunHistory::of(folder("run"), run), 20, {}, replay_).state;
  rubato::Run goes_on(run, dense_workload(run), location_of_fork({}, run, replay_));
  const State after = goes_on.trainer().state();
  for (const auto& [name, array] : before.arrays()) {
    if (!name.starts_with("optimizer.")) continue;
    EXPECT_EQ(after.array(name).bytes, array.bytes) << name;
  }
}

// Runs that were killed before their first checkpoint leave such folders.
TEST_F(ForkTest, ReplacesTheFolderOfItsOwnThatWasNotMade) {
  train("run", forked());
  RunRequest request{.run = forked(), .out = folder("fork"), .continues = true};
  const auto unmade = [&](std::int64_t step) {
    fs::remove_all(folder("fork"));
    fork("fork", forked(), "run", step);
    for (const char* name : {"checkpoints", "summary.json", "weights.safetensors"}) {
      fs::remove_all(folder("fork") / name);
    }
    request.run.from = point("run", 7);
    return error_of([&] { return location_to_train(request, replay_); });
  };
  EXPECT_EQ(unmade(7), "no error");
  EXPECT_FALSE(fs::exists(folder("fork")));
  EXPECT_THAT(unmade(8), HasSubstr("exists"));
  EXPECT_TRUE(fs::exists(folder("fork") / "config.toml"));
}

// Its last step was not taken.
TEST_F(ForkTest, CountsNoStepInWhichARunDiverged) {
  const RunConfiguration run = forked("lr=1e30");
  rubato::Run diverging(run, dense_workload(run), RunLocation::create(folder("run")));
  ASSERT_EQ(diverging.execute().end, RunEnd::diverged);
  const RecordedSteps steps = recorded_steps(folder("run"));
  const auto lines = metrics_in(folder("run"));
  EXPECT_EQ(steps.count, diverging.trainer().result().steps);
  EXPECT_EQ(steps.count + 1,
            std::ranges::count(lines, "step", [](const auto& line) { return line["kind"]; }));
  EXPECT_EQ(std::ssize(steps.numbers), steps.count);
}

}  // namespace
}  // namespace rubato
