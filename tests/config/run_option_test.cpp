#include "runs/config/run_option.hpp"

#include <set>

#include <gmock/gmock.h>

#include "config/other_value.hpp"
#include "runs/config/values/model_choice.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::with_other_value;

TEST(RunOptions, AreDescribed) {
  std::set<std::string> names;
  for (const RunOption& option : run_options()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(option.name).second) << "there are two of the name";
    EXPECT_NE(option.help, "");
    EXPECT_NE(option.group, "");
    EXPECT_EQ(option.value.empty(), option.kind == OptionKind::flag);
    EXPECT_TRUE(option.kind == OptionKind::text || !option.accepted.empty() ||
                option.kind == OptionKind::text_or_number);
    EXPECT_EQ(&run_option(option.name), &option);
  }
  EXPECT_GT(names.size(), 45U);
}

TEST(RunOptions, SetThemselvesAndNothingElse) {
  const RunConfiguration defaults;
  for (const RunOption& option : run_options()) {
    SCOPED_TRACE(option.name);
    RunConfiguration changed = with_other_value(option);
    EXPECT_NE(changed, defaults);
    for (const RunOption& other : run_options()) {
      EXPECT_EQ(other.text(changed) == other.text(defaults), &other != &option) << other.name;
    }
    option.reset(changed);
    EXPECT_EQ(changed, defaults);
  }
}

TEST(RunOptions, AreReadExactly) {
  RunConfiguration configuration;
  run_option("momentum").set(configuration, "0.30000000000000004");
  EXPECT_EQ(configuration.momentum, 0.30000000000000004);
  EXPECT_EQ(run_option("momentum").text(configuration), "0.30000000000000004");
  run_option("seed").set(configuration, "18446744073709551615");
  EXPECT_EQ(configuration.seed, 18446744073709551615U);
  run_option("target-accuracy").set(configuration, "99.5,best");
  EXPECT_EQ(configuration.target_accuracy, (AccuracyTarget{.percent = 99.5, .best = true}));
  EXPECT_EQ(run_option("target-accuracy").text(configuration), "99.5,best");
}

TEST(RunOptions, RejectWhatIsOutOfTheirRange) {
  RunConfiguration configuration;
  const auto error = [&](const char* name, const char* text) {
    return error_of([&] { run_option(name).set(configuration, text); });
  };
  EXPECT_EQ(error("epochs", "0"),
            "'0' is out of range; accepted: a whole number from 1 to 1000000");
  EXPECT_EQ(error("nesterov", "1"), "'1' is neither true nor false; accepted: true, false");
  EXPECT_EQ(error("lr", "0"), "'0' is out of range; accepted: a number greater than 0");
  EXPECT_THAT(
      error("watch", "loss"),
      StartsWith("unknown metric 'loss'; accepted: train-loss, test-loss, test-accuracy, "));
  EXPECT_EQ(error("model", "cnn"),
            "unknown model 'cnn'; accepted: mnist-cnn, mlp, softmax, toy-net, resnet20, "
            "transformer, quadratic, script:FILE");
  EXPECT_EQ(configuration, RunConfiguration());
  EXPECT_EQ(error("epoch", "3"), "unknown option 'epoch'; did you mean 'epochs'?");
}

// What a list of several values is separated by may be part of one.
TEST(RunOptions, WithCommasInTheirValuesSaySo) {
  for (const RunOption& option : run_options()) {
    if (option.value.find(',') == std::string::npos) continue;
    EXPECT_TRUE(option.has_commas) << option.name;
  }
}

TEST(RunOptions, HaveTheirPartInCommands) {
  const auto names = [](Commands commands) {
    std::vector<std::string> found;
    for (const RunOption* option : run_options(commands)) found.push_back(option->name);
    return found;
  };
  EXPECT_EQ(names(Commands::convert), (std::vector<std::string>{"availability", "minibatch"}));
  EXPECT_EQ(names(Commands::plan),
            (std::vector<std::string>{"trace", "availability", "on-trace-end", "cores", "minibatch",
                                      "remainder", "assignment"}));
  EXPECT_TRUE(names(Commands::none).empty());
  for (const RunOption& option : run_options()) {
    // Verification shows nothing but whether bits are the same.
    const bool is_shown = option.affects == Affects::output && !option.is_agreed;
    EXPECT_FALSE(is_shown && meet(option.commands, kOfSteps)) << option.name;
  }
}

TEST(RunOptions, SayWhereTheyDoNothing) {
  RunConfiguration run{.schedule = "plateau"};
  EXPECT_EQ(why_idle(run_option("schedule-unit"), run),
            "plateau counts nothing; accepted: with another --schedule");
  run.schedule = "plateau+cosine:total=2";
  EXPECT_EQ(why_idle(run_option("schedule-unit"), run), "");
  EXPECT_EQ(why_idle(run_option("no-decay"), run),
            "nothing decays, and no rate is layer-wise; accepted: with --weight-decay, lars, lbsgd "
            "or adascale");
  run.rule = "adascale:smoothing=0.5";
  EXPECT_EQ(why_idle(run_option("no-decay"), run), "");
  EXPECT_EQ(why_idle(run_option("epochs"), run), "");
}

TEST(RunConfiguration, ParsesTextWhenItGetsIt) {
  RunConfiguration configuration;
  configuration.model = "mlp:hidden=64";
  EXPECT_EQ(configuration.model.text(), "mlp:hidden=64");
  EXPECT_EQ(std::get<PerceptronOptions>(configuration.model->options).hidden,
            std::vector<std::int64_t>{64});
  EXPECT_EQ(configuration.model, std::string("mlp:hidden=64"));
  EXPECT_NE(configuration.model, "mlp");
  EXPECT_THAT(error_of([&] { configuration.model = "mpl"; }),
              StartsWith("unknown model 'mpl'; did you mean 'mlp'?"));
  EXPECT_EQ(configuration.model, "mlp:hidden=64");
  EXPECT_THAT(error_of([&] { configuration.cluster = "hosts=0"; }), StartsWith("hosts: "));
  EXPECT_TRUE(RunConfiguration().cluster.empty());
  EXPECT_EQ(RunConfiguration().checkpoint_every->value().count, 60);
}

TEST(RunConfiguration, IsCheckedByItsTable) {
  EXPECT_EQ(error_of([] { require_valid(RunConfiguration()); }), "no error");
  RunConfiguration configuration;
  configuration.epochs = 0;
  EXPECT_EQ(error_of([&] { require_valid(configuration); }),
            "--epochs: '0' is out of range; accepted: a whole number from 1 to 1000000");
  configuration = {};
  configuration.clip_norm = 1;
  configuration.clip_value = 1;
  EXPECT_EQ(error_of([&] { require_valid(configuration); }),
            "--clip-value: gradients are clipped by their norm already; accepted: one of them");
}

}  // namespace
}  // namespace rubato
