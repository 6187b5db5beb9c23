// Runs that draw their samples by weights in the data.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "data/archive_files.hpp"
#include "run/runs.hpp"
#include "run/runs_in_folders.hpp"
#include "runs/run/workload/run_data.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr std::int64_t kSamples = 256;

class WeightedSampler : public test::RunsInFolders {
 protected:
  WeightedSampler() { write_table(weights_); }

  // Three of four samples are of class a.
  void write_table(const std::vector<double>& weights) const {
    std::string table = "x,w,z,y\n";
    for (std::size_t i = 0; i < weights.size(); ++i) {
      table += fmt::format("{},{},{},{}\n", 0.01 * static_cast<double>(i), weights[i],
                           static_cast<double>(i % 7) + 0.5, i % 4 == 0 ? 'b' : 'a');
    }
    temp_.write("table.csv", table);
  }
  static std::vector<double> some_weights(double first) {
    std::vector<double> weights(kSamples);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 5);
    weights[0] = first;
    return weights;
  }
  [[nodiscard]] RunConfiguration run(const std::string& sampler,
                                     const std::string& arguments = ",ignore=w") const {
    return {.data = fmt::format("csv:{}{}", (temp_.path() / "table.csv").string(), arguments),
            .sampler = sampler,
            .model = "softmax",
            .trace = "64",
            .cores = 3,
            .epochs = 3,
            .threads = 2,
            .checkpoint_every = "2steps",
            .keep = 10};
  }
  static std::vector<std::int64_t> drawn_by(const Sampler& sampler, std::int64_t samples) {
    return sampler.order({.epoch = EpochIndex{2}, .seed = 7, .samples = samples});
  }
  static std::vector<std::int64_t> drawn(const RunConfiguration& run) {
    const auto workload = dense_workload(run);
    return drawn_by(workload->sampler(), workload->samples());
  }
  static std::string error(const RunConfiguration& run) {
    return error_of([&] { return dense_workload(run); });
  }
  static std::string sha256_of(const RunOutcome& outcome) {
    return outcome.summary.value().weights_sha256;
  }

  const std::vector<double> weights_ = some_weights(2);
};

TEST_F(WeightedSampler, DrawsByAColumnOfATable) {
  EXPECT_EQ(drawn(run("weighted:column=w")), drawn_by(weighted(weights_), kSamples));
  EXPECT_FALSE(dense_workload(run("shuffle"))->sampler());
}

TEST_F(WeightedSampler, DrawsByAnArrayOfAFileOfTensors) {
  const auto file = temp_.write(
      "data.npz",
      test::zip_of({{"x.npy", test::npy_of<float>("<f4", {4, 1}, {1, 2, 3, 4})},
                    {"y.npy", test::npy_of<std::int64_t>("<i8", {4}, {0, 1, 1, 0})},
                    {"w.npy", test::npy_of<std::int64_t>("<i8", {4, 1}, {0, 3, 0, 1})},
                    {"two.npy", test::npy_of<float>("<f4", {4, 2}, std::vector<float>(8, 1))},
                    {"few.npy", test::npy_of<float>("<f4", {3}, {1, 1, 1})},
                    {"less.npy", test::npy_of<float>("<f4", {4}, {1, 1, -1, 1})},
                    {"none.npy", test::npy_of<float>("<f4", {4}, {0, 0, 0, 0})}}));
  const auto of = [&](const std::string& array) {
    RunConfiguration configuration = run("weighted:column=" + array);
    configuration.data = "tensors:" + file.string();
    return configuration;
  };
  EXPECT_EQ(drawn(of("w")), drawn_by(weighted({0, 3, 0, 1}), 4));
  EXPECT_THAT(error(of("two")), HasSubstr("'two' has 2 weights for each sample; accepted: one"));
  EXPECT_THAT(error(of("few")), HasSubstr("3 weights for 4 training samples"));
  EXPECT_EQ(error(of("less")),
            "--sampler weighted:column=less: sample 2 has the weight -1; accepted: finite numbers "
            "of at least 0");
  EXPECT_THAT(error(of("none")), HasSubstr("have no sum to draw by"));
  EXPECT_THAT(error(of("v")), HasSubstr(", and not 'v'; accepted: the name of an array"));
}

TEST_F(WeightedSampler, BalancesClasses) {
  std::vector<double> weights(kSamples, 1.0 / 192);
  for (std::size_t i = 0; i < weights.size(); i += 4) weights[i] = 1.0 / 64;
  EXPECT_EQ(drawn(run("weighted:balanced")), drawn_by(weighted(weights), kSamples));
  std::int64_t rare = 0;
  for (const std::int64_t sample : drawn(run("weighted:balanced"))) rare += sample % 4 == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(rare), 128, 5 * 8) << "five standard errors";
}

TEST_F(WeightedSampler, LeavesOutWhatIsHeldOut) {
  RunConfiguration configuration = run("weighted:column=w");
  configuration.validation = HeldOut{.share = 0.25, .seed = 1};
  const DataSets data = load_data(configuration);
  std::vector<double> left;
  for (const std::int64_t row : *data.train.chosen) {
    left.push_back(weights_[static_cast<std::size_t>(row)]);
  }
  EXPECT_EQ(drawn(configuration), drawn_by(weighted(left), 192));
}

TEST_F(WeightedSampler, HasTheSameBitsForCoresThreadsResumesAndForks) {
  const RunConfiguration whole = run("weighted:column=w");
  const std::string expected = sha256_of(train("whole", whole));
  EXPECT_NE(sha256_of(train("shuffled", run("shuffle"))), expected);
  RunConfiguration other = whole;
  other.cores = 7;
  other.threads = 1;
  EXPECT_EQ(sha256_of(train("other", other)), expected);
  EXPECT_EQ(sha256_of(fork("fork", whole, "whole", 6)), expected);
  {
    rubato::Run paused(whole, dense_workload(whole), RunLocation::create(folder("paused")));
    paused.trainer().add_observer<test::PauseAfter>(6);
    ASSERT_EQ(paused.execute().end, RunEnd::paused);
    paused.write_checkpoint();
  }
  const auto resumed = [&] {
    return test::outcome_of(whole, RunLocation::resume(folder("paused"), whole));
  };
  write_table(some_weights(3));
  EXPECT_THAT(error_of(resumed), HasSubstr("sampler was weighted by "));
  write_table(weights_);
  EXPECT_EQ(sha256_of(resumed()), expected);
}

TEST_F(WeightedSampler, RefusesWhatIsNoColumnOfWeights) {
  EXPECT_THAT(error(run("weighted:column=v")),
              AllOf(HasSubstr("unknown column 'v'"), HasSubstr("accepted: x, w, z, y")));
  EXPECT_THAT(error(run("weighted:column=w", "")),
              EndsWith("the weights in column 'w' are a feature or the label, too; accepted: with "
                       "ignore=w"));
  write_table({1, 2, -0.5, 1});
  EXPECT_THAT(error(run("weighted:column=w")),
              AllOf(HasSubstr("table.csv:4: "),
                    HasSubstr("column 'w' has the weight '-0.5'; accepted: a number of at least "
                              "0 in every row")));
  write_table({0, 0, 0, 0});
  EXPECT_THAT(error(run("weighted:column=w")),
              StartsWith("--sampler weighted:column=w: the weights of the samples have no sum"));
  RunConfiguration digits = run("weighted:column=w");
  digits.data = "digits";
  EXPECT_THAT(error(digits),
              StartsWith("--sampler weighted:column=w: the data have no columns; accepted: "));
}

TEST_F(WeightedSampler, RefusesToBalanceWhatHasNoClasses) {
  RunConfiguration configuration = run("weighted:balanced", ",ignore=w,label=z");
  configuration.model = "mlp";
  EXPECT_EQ(error(configuration),
            "--sampler weighted:balanced: the samples have no classes, one each; accepted: data of "
            "classes");
  configuration.model = "quadratic:dim=3";
  EXPECT_EQ(error_of([&] { return test::outcome_of(configuration); }),
            "--sampler weighted:balanced: there are no data with weights or classes; accepted: "
            "shuffle or in-order");
}

// A run of a program that has weights of its own can be read by others, and trained by it alone.
TEST_F(WeightedSampler, OfAProgramIsKnownToItAlone) {
  EXPECT_THAT(error_of([&] { return test::outcome_of(run("own")); }),
              StartsWith("--sampler own: the weights are in the program that trained with them"));
  Extensions own;
  own.samplers.add(std::string(kOwn), [&](Spec&) {
    return weighted_in_data(std::string(kOwn),
                            {.rows = std::make_shared<const std::vector<double>>(weights_)});
  });
  RunConfiguration configuration = run("shuffle");
  configuration.sampler = {std::string(kOwn), own};
  EXPECT_EQ(drawn(configuration), drawn_by(weighted(weights_), kSamples));
  EXPECT_EQ(sha256_of(train("own", configuration)),
            sha256_of(train("column", run("weighted:column=w"))));
}

}  // namespace
}  // namespace rubato
