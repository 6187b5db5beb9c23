// Parts of a program's own, by name in a configuration: what is done with configurations reaches
// them, too.

#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include <rubato/loop/images.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "run/runs.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

OwnData::Samples points(std::int64_t count) {
  OwnData::Samples samples;
  for (std::int64_t i = 0; i < count; ++i) {
    samples.inputs.push_back(static_cast<float>(i % 4));
    samples.inputs.push_back(static_cast<float>(i % 3));
    samples.labels.push_back(i % 4 / 2);
  }
  return samples;
}

RunConfiguration with_own() {
  RunConfiguration configuration;
  configuration.extensions.rules.add(
      "log2", [](const RuleInput& step) { return 1 + std::log2(step.scale()); });
  configuration.extensions.data.add("points", [](Spec& spec) {
    const std::int64_t count = spec.whole("count", 256, 1, 100'000);
    return OwnDataSource{[count] {
      return OwnData{.shape = {2}, .classes = 2, .train = points(count), .test = points(8)};
    }};
  });
  configuration.data = {"points:count=512", configuration.extensions};
  configuration.model = "softmax";
  configuration.trace = "256";
  configuration.rule = {"log2", configuration.extensions};
  configuration.epochs = 4;
  configuration.threads = 2;
  return configuration;
}

RunSummary trained(const RunConfiguration& configuration, RunLocation location = {}) {
  return test::outcome_of(configuration, std::move(location)).summary.value();
}

TEST(Extensions, ReachARun) {
  const RunConfiguration configuration = with_own();
  require_valid(configuration);
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  const RunSummary summary = trained(configuration, RunLocation::create(folder));
  EXPECT_EQ(summary.result.steps, 8);
  EXPECT_THAT(read_file(folder / "config.toml"), HasSubstr("rule = \"log2\"\n"));
  EXPECT_THAT(read_file(folder / "metrics.jsonl"), HasSubstr("\"gain\":2.0"));
  // The folder's configuration is read by whoever has the names.
  EXPECT_EQ(read_configuration(folder / "config.toml", {}, configuration), configuration);
  EXPECT_THAT(error_of([&] { return read_configuration(folder / "config.toml"); }),
              HasSubstr("unknown"));
}

TEST(Extensions, GoOnToTheSameBits) {
  RunConfiguration configuration = with_own();
  const std::string whole = trained(configuration).weights_sha256;
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  configuration.epochs = 2;
  EXPECT_NE(trained(configuration, RunLocation::create(folder)).weights_sha256, whole);
  configuration.epochs = 4;
  EXPECT_EQ(trained(configuration, RunLocation::resume(folder, configuration)).weights_sha256,
            whole);
  // Who lacks the rule cannot go on.
  RunConfiguration without = configuration;
  without.extensions = {};
  without.rule = "linear";
  without.data = "digits";
  EXPECT_THAT(error_of([&] { return RunLocation::resume(folder, without); }),
              HasSubstr("unknown data set 'points:count=512'"));
}

// A part is made when an option gets its text; checks ask that part, and each trainer has its own.
TEST(Extensions, ReadTheirTextOnce) {
  RunConfiguration configuration;
  Extensions& own = configuration.extensions;
  int rules = 0;
  own.rules.add("mine", [&rules](Spec&) {
    ++rules;
    return std::make_unique<FunctionRule>("mine", [](const RuleInput&) { return 1.0; });
  });
  int schedules = 0;
  own.schedules.add("mine", [&schedules](Spec&) {
    ++schedules;
    return ScheduleChoice("constant").make({});
  });
  int samplers = 0;
  own.samplers.add("mine", [&samplers](Spec&) {
    ++samplers;
    return in_order();
  });
  const auto made = [&] { return std::array{rules, schedules, samplers}; };
  configuration.rule = {"mine", own};
  configuration.schedule = {"warmup:length=1+mine", own};
  configuration.sampler = {"mine", own};
  EXPECT_THAT(made(), ElementsAre(1, 1, 1));
  const RunConfiguration copy = configuration;
  EXPECT_EQ(why_idle(run_option("schedule-unit"), copy), "");
  const TrainOptions options = train_options(copy);
  EXPECT_THAT(made(), ElementsAre(1, 1, 1));
  require_valid(copy);
  EXPECT_THAT(made(), ElementsAre(1, 3, 1))
      << "a schedule is made for the metric that is watched, and asked if it moves the momentum";
  EXPECT_NE(options.rule.make(), options.rule.make());
  EXPECT_THAT(made(), ElementsAre(3, 3, 1));
}

TEST(Extensions, HaveNamesOfTheirOwn) {
  Extensions own;
  const auto none = [](Spec&) { return Sampler(); };
  own.samplers.add("mine", none);
  EXPECT_EQ(error_of([&] { own.samplers.add("mine", none); }), "there is a sampler 'mine' already");
  EXPECT_EQ(error_of([&] { own.samplers.add("shuffle", none); }),
            "there is a sampler 'shuffle' already");
  EXPECT_EQ(
      error_of([&] { own.samplers.add("a:b", none); }),
      "'a:b' is not a valid name of a sampler; accepted: one without any of ':', ',', '+', '=' and "
      "blanks");
  EXPECT_EQ(error_of([&] { own.samplers.add("empty", {}); }),
            "nothing makes the sampler 'empty'; accepted: any maker but an empty one");
  EXPECT_EQ(error_of([&] { own.data.add("csv", {}); }),
            "nothing makes the data set 'csv'; accepted: any maker but an empty one");
  EXPECT_EQ(error_of([&] { own.data.add("csv", [](Spec&) { return OwnDataSource(); }); }),
            "there is a data set 'csv' already");
  EXPECT_NE(own, Extensions());
  EXPECT_EQ(family("sampler", families(own)).strategies.back().name, "mine");
}

TEST(Extensions, DataAreChecked) {
  const auto said = [](const OwnData& data) {
    RunConfiguration configuration;
    configuration.extensions.data.add(
        "mine", [&](Spec&) { return OwnDataSource{[&data] { return data; }}; });
    configuration.data = {"mine", configuration.extensions};
    configuration.model = "softmax";
    return error_of([&] { return dense_workload(configuration); });
  };
  OwnData data{.shape = {2}, .classes = 2, .train = points(4)};
  EXPECT_EQ(said(data), "no error");
  data.train.inputs.pop_back();
  EXPECT_EQ(said(data),
            "--data mine: 7 numbers are not samples of shape [2]; accepted: at least one whole "
            "sample");
  data.train = points(4);
  data.train.labels.pop_back();
  EXPECT_EQ(said(data), "--data mine: 3 labels for 4 samples; accepted: one for each");
  data.train = points(4);
  data.train.labels[1] = 2;
  EXPECT_EQ(said(data), "--data mine: a sample is of class 2; accepted: 0 to 1");
  data.train = points(4);
  data.train.inputs[1] = NAN;
  EXPECT_THAT(said(data), HasSubstr("--data mine: the inputs"));
  data.train = points(4);
  data.train.inputs.clear();
  EXPECT_THAT(said(data), HasSubstr("0 numbers are not samples"));
}

// What a configuration chooses is what the trainer is given.
TEST(Extensions, ReachTheTrainer) {
  RunConfiguration configuration;
  Extensions& own = configuration.extensions;
  own.transforms.add("half", [](Spec&) {
    return function_transform("half", [](const auto& gradient, Workers&) {
      for (auto& value : gradient.values) value /= 2;
    });
  });
  own.metrics.add("answer", [](Spec&) {
    return OwnMetric{.name = "answer", .value = [](Training&, const EpochRecord&) {
                       return std::optional<double>(42);
                     }};
  });
  configuration.sampler = "in-order";
  configuration.transform = {"noise:deviation=0.5+half", own};
  configuration.metric = {"answer+accuracy", own};
  const TrainOptions options = train_options(configuration);
  EXPECT_EQ(options.sampler.name, "in order");
  ASSERT_EQ(options.gradient_transforms.size(), 2);
  EXPECT_EQ(options.gradient_transforms[0].name, "noise 0.5");
  EXPECT_EQ(options.gradient_transforms[1].name, "half");
  ASSERT_EQ(options.metrics.size(), 1);
  EXPECT_EQ(options.metrics[0].name, "answer");
  EXPECT_TRUE(test_metrics_of(configuration).accuracy);
}

}  // namespace
}  // namespace rubato
