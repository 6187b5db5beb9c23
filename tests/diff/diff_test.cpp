// Differences planted into one of two runs, each of which is found and named.

#include "runs/diff/diff.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/file.hpp"
#include "run/runs.hpp"
#include "runs/config/run_option.hpp"
#include "runs/diff/explanation.hpp"
#include "runs/diff/stepped_training.hpp"
#include "runs/lab/contestants.hpp"
#include "runs/run/fork.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::outcome_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// 2 epochs of 11 steps of 32 minibatches.
RunConfiguration of_two_epochs() {
  return {.model = "softmax",
          .trace = "1024",
          .cores = 3,
          .epochs = 2,
          .threads = 1,
          .checkpoint_every = "5steps",
          .keep = 10};
}

class DiffTest : public testing::Test {
 protected:
  [[nodiscard]] fs::path folder(const std::string& name) const { return temp_.path() / name; }

  void train(const std::string& name, const RunConfiguration& run) const {
    static_cast<void>(outcome_of(run, RunLocation::create(folder(name))));
  }
  void fork(const std::string& name, RunConfiguration run, const std::string& of,
            std::int64_t step) const {
    run.from = fmt::format("{}@{}", folder(of).string(), step);
    static_cast<void>(outcome_of(run, location_of_fork(folder(name), run, parts_)));
  }
  // The difference of the runs "a" and "b"; their names are read with the extensions of `around`.
  [[nodiscard]] RunsDifference difference(const RunConfiguration& around = {}) const {
    DiffRequest request{.distance = 0, .threads = 1};
    for (const std::size_t side : {0U, 1U}) {
      const std::string name(1, side == 0 ? 'a' : 'b');
      request.sides.at(side) = {.name = name,
                                .run = folder(name),
                                .configuration = configuration_of_run(folder(name), around)};
    }
    return find_difference(request, parts_);
  }
  // The difference of two configurations without folders.
  [[nodiscard]] RunsDifference difference(const RunConfiguration& a, const RunConfiguration& b,
                                          DiffRequest request = {.steps = 5, .distance = 0}) const {
    request.sides = {DiffSide{.name = "good", .configuration = a},
                     DiffSide{.name = "bad", .configuration = b}};
    request.threads = 1;
    return find_difference(request, parts_);
  }
  // Flips a bit of an element in a checkpoint of a run, and returns its file.
  fs::path flip(const std::string& name, std::int64_t step, const std::string& array,
                std::size_t element, unsigned bit) const {
    fs::path file = folder(name) / "checkpoints" / fmt::format("step-{}.safetensors", step);
    const State found = read_state(file);
    State changed;
    for (auto [entry, values] : found.arrays()) {
      if (entry == "rubato.sha256") continue;
      if (entry == array) {
        char& byte = values.bytes[element * sizeof(float) + bit / 8];
        byte = static_cast<char>(byte ^ (1 << (bit % 8)));
      }
      changed.put_array(entry, values);
    }
    for (const auto& [entry, text] : found.texts()) {
      if (!entry.starts_with("rubato.")) changed.put_text(entry, text);
    }
    write_state(file, changed);
    return file;
  }
  // Continues a run from a checkpoint with such a bit.
  void damage(const std::string& name, const RunConfiguration& run, std::int64_t step,
              const std::string& array, std::size_t element, unsigned bit) const {
    const fs::path file = flip(name, step, array, element, bit);
    static_cast<void>(outcome_of(run, RunLocation::resume(folder(name), run, file)));
  }
  // The file of a trace of 1024 samples a step, of which step 16 has another number.
  [[nodiscard]] std::string rows(const std::string& name, int sixteenth) const {
    std::string text = "step,batchsize\n";
    for (int step = 0; step < 30; ++step) {
      text += fmt::format("{},{}\n", step, step == 15 ? sixteenth : 1024);
    }
    write_file(folder(name), text);
    return folder(name).string();
  }

  const test::TempFolder temp_;
  const ReplayParts parts_{.load = dense_workload, .tell = [](const std::string&) {}};
};

TEST_F(DiffTest, OfEqualRunsIsNone) {
  train("a", of_two_epochs());
  RunConfiguration other = of_two_epochs();
  other.cores = 7;
  other.reduce = "sharded";
  other.checkpoint_every = "never";
  train("b", other);
  const RunsDifference found = difference();
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.equal_steps, 22);
  EXPECT_THAT(found.options, IsEmpty());
}

TEST_F(DiffTest, OfARunAndItsBeginningIsTheLength) {
  train("a", of_two_epochs());
  RunConfiguration longer = of_two_epochs();
  longer.epochs = 3;
  train("b", longer);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::length);
  EXPECT_EQ(found.first->step, 23);
  EXPECT_EQ(found.equal_steps, 22);
  EXPECT_THAT(found.first->options, ElementsAre("epochs"));
}

TEST_F(DiffTest, NamesTheSeedOfAnEpoch) {
  train("a", of_two_epochs());
  RunConfiguration other = of_two_epochs();
  other.seed = 7;
  fork("b", other, "a", 11);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.equal_steps, 11);
  EXPECT_EQ(found.first->stage, DiffStage::samples);
  EXPECT_EQ(found.first->step, 12);
  EXPECT_EQ(found.first->minibatch, 1);
  EXPECT_THAT(found.first->what, HasSubstr("other samples"));
  EXPECT_THAT(found.first->options, ElementsAre("seed"));
  // It shuffles with seed + epoch.
  EXPECT_THAT(found.first->samples, ElementsAre(random_permutation(12000, 43).front(),
                                                random_permutation(12000, 8).front()));
}

TEST_F(DiffTest, NamesTheSamplesOfAMinibatch) {
  RunConfiguration run = of_two_epochs();
  train("a", run);
  constexpr std::size_t kBegin = (13 - 11 - 1) * std::size_t{1024} + 4 * 32;
  run.extensions.samplers.add("swapped", [](Spec& /*spec*/) {
    return Sampler{.name = "swapped", .order = [](const EpochDraw& draw) {
                     const auto epoch = draw.epoch.value();
                     auto order = random_permutation(draw.samples,
                                                     draw.seed + static_cast<std::uint64_t>(epoch));
                     if (epoch == 1) std::swap(order[kBegin + 6], order[kBegin + 30]);
                     return order;
                   }};
  });
  run.sampler = {"swapped", run.extensions};
  train("b", run);
  const RunsDifference found = difference(run);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::samples);
  EXPECT_EQ(found.first->step, 13);
  EXPECT_EQ(found.first->minibatch, 5);
  EXPECT_EQ(found.first->position, 7);
  const auto order = random_permutation(12000, 43);
  EXPECT_THAT(found.first->samples, ElementsAre(order[kBegin + 6], order[kBegin + 30]));
  EXPECT_THAT(found.first->what, HasSubstr("the same samples in another order"));
  EXPECT_THAT(found.first->options, ElementsAre("sampler"));
}

TEST_F(DiffTest, NamesASumInTheOrderOfArrival) {
  RunConfiguration run = of_two_epochs();
  train("a", run);
  run.extensions.reducers.add("mutex", [](Spec& /*spec*/) {
    return OwnReducer{.name = "mutex", .of_float = [](const ReducerSize& size, Workers& workers) {
                        return lab::make_baseline("mutex", size, workers);
                      }};
  });
  run.reduce = {"mutex", run.extensions};
  run.exact = false;
  train("b", run);
  const RunsDifference found = difference(run);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::sum);
  EXPECT_EQ(found.first->step, 1);
  ASSERT_TRUE(found.first->element);
  EXPECT_GT(found.first->element->ulps, 0);
  EXPECT_GT(found.first->element->elements, 10);
  EXPECT_THAT(found.first->options, UnorderedElementsAre("reduce", "exact"));
  EXPECT_THAT(found.first->what, HasSubstr("in this repetition"));
}

TEST_F(DiffTest, NamesTheRateOfOneStep) {
  train("a", of_two_epochs());
  RunConfiguration other = of_two_epochs();
  other.learning_rate = 0.02;
  fork("faster", other, "a", 8);
  fork("b", of_two_epochs(), "faster", 9);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.equal_steps, 8);
  EXPECT_EQ(found.first->stage, DiffStage::rule);
  EXPECT_EQ(found.first->step, 9);
  ASSERT_TRUE(found.first->numbers);
  EXPECT_THAT(*found.first->numbers, ElementsAre(0.08, 0.16));
  EXPECT_THAT(found.first->options, ElementsAre("lr"));
}

TEST_F(DiffTest, NamesAnotherRowOfTheTrace) {
  RunConfiguration run = of_two_epochs();
  run.trace = rows("a.csv", 1024);
  train("a", run);
  run.trace = rows("b.csv", 512);
  train("b", run);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::trace);
  EXPECT_EQ(found.first->step, 16);
  EXPECT_THAT(*found.first->numbers, ElementsAre(1024, 512));
  EXPECT_THAT(found.first->options, ElementsAre("trace"));
  ASSERT_EQ(found.options.size(), 1);
  EXPECT_THAT(found.options.front().texts,
              ElementsAre(HasSubstr("/a/trace.csv"), HasSubstr("/b/trace.csv")));
}

TEST_F(DiffTest, NamesClipping) {
  train("a", of_two_epochs());
  RunConfiguration clipped = of_two_epochs();
  clipped.clip_norm = 0.5;
  train("b", clipped);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::clipping);
  EXPECT_EQ(found.first->step, 1);
  EXPECT_THAT(found.first->options, ElementsAre("clip-norm"));
  ASSERT_TRUE(found.first->element);
  EXPECT_EQ(found.first->element->array, "linear.bias");
}

TEST_F(DiffTest, NamesTheElementOfADamagedCheckpoint) {
  RunConfiguration run = of_two_epochs();
  run.digest = "every=1";
  train("a", run);
  train("b", run);
  damage("b", run, 10, "parameter.linear.weight", 2 * 784 + 5, 0);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.equal_steps, 10);
  EXPECT_EQ(found.first->stage, DiffStage::state);
  EXPECT_EQ(found.first->step, 10);
  ASSERT_TRUE(found.first->element);
  EXPECT_EQ(found.first->element->array, "linear.weight");
  EXPECT_THAT(found.first->element->index, ElementsAre(2, 5));
  EXPECT_EQ(found.first->element->ulps, 1);
  EXPECT_EQ(found.first->element->elements, 1);
}

// Only every tenth step has a digest, so the state is compared when its step is repeated.
TEST_F(DiffTest, NamesTheDamagedEntryOfAnOptimizer) {
  train("a", of_two_epochs());
  train("b", of_two_epochs());
  damage("b", of_two_epochs(), 15, "optimizer.velocity", 300, 20);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::state);
  EXPECT_EQ(found.first->step, 15);
  EXPECT_EQ(found.equal_steps, 14);
  ASSERT_TRUE(found.first->element);
  EXPECT_EQ(found.first->element->array, "optimizer.velocity of linear.weight");
  EXPECT_THAT(found.first->element->index, ElementsAre(0, 300));
  EXPECT_EQ(found.first->element->ulps, 1U << 20U);
}

// The steps before the first different digest have to be repeated from a file that has changed.
TEST_F(DiffTest, TellsOfADigestThatTheRunItselfDoesNotHaveAgain) {
  RunConfiguration run = of_two_epochs();
  run.trace = rows("a.csv", 1024);
  train("a", run);
  run.trace = rows("b.csv", 512);
  train("b", run);
  flip("a", 5, "parameter.linear.weight", 300, 20);
  fs::remove(folder("a") / "checkpoints" / "step-10.safetensors");
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.equal_steps, 10);
  EXPECT_EQ(found.first->stage, DiffStage::unexplained);
  EXPECT_EQ(found.first->step, 20);
  EXPECT_THAT(found.first->what,
              AllOf(HasSubstr("cannot be found"), HasSubstr("a: step 6 has the loss")));
}

// The rate is set by an observer, of whom the run's options know nothing.
TEST_F(DiffTest, TellsWhatTheRecordsTellOfStepsThatCannotBeRepeated) {
  class Faster final : public Observer {
   public:
    void between_steps(Training& training) override {
      if (training.result().steps == 12) training.set_learning_rate(0.02);
    }
  };
  RunConfiguration run = of_two_epochs();
  run.checkpoint_every = "never";
  train("a", run);
  rubato::Run other(run, dense_workload(run), RunLocation::create(folder("b")));
  other.trainer().add_observer<Faster>();
  static_cast<void>(other.execute());
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.equal_steps, 10);
  EXPECT_EQ(found.first->stage, DiffStage::unexplained);
  EXPECT_EQ(found.first->step, 20);
  EXPECT_THAT(found.first->what, HasSubstr("the learning rate 0.08 and 0.16 in step 13"));
}

TEST_F(DiffTest, NamesTheGradientOfAMinibatch) {
  // Its gradient has noise, from the seed.
  RunConfiguration noisy = of_two_epochs();
  noisy.model = "quadratic:dim=5,samples=512";
  noisy.trace = "64";
  noisy.sampler = "in-order";
  train("a", noisy);
  noisy.seed = 1;
  fork("b", noisy, "a", 6);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::gradient);
  EXPECT_EQ(found.first->step, 7);
  EXPECT_EQ(found.first->minibatch, 1);
  ASSERT_TRUE(found.first->numbers);
  EXPECT_NE((*found.first->numbers)[0], (*found.first->numbers)[1]);
  ASSERT_TRUE(found.first->element);
  EXPECT_THAT(found.first->options, ElementsAre("seed"));
}

TEST_F(DiffTest, OfForksBeginsWhereTheyDo) {
  train("a", of_two_epochs());
  RunConfiguration fork = of_two_epochs();
  fork.from = fmt::format("{}@4", folder("a").string());
  RunConfiguration faster = fork;
  faster.learning_rate = 0.02;
  const RunsDifference found = difference(fork, faster);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.equal_steps, 4);
  EXPECT_EQ(found.first->stage, DiffStage::rule);
  EXPECT_EQ(found.first->step, 5);
}

TEST_F(DiffTest, NamesTheUpdate) {
  RunConfiguration adam = of_two_epochs();
  adam.optimizer = "adam";
  RunConfiguration decayed = adam;
  decayed.optimizer = "adam:beta2=0.99";
  const RunsDifference found = difference(adam, decayed);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::update);
  EXPECT_EQ(found.first->step, 1);
  EXPECT_THAT(found.first->options, ElementsAre("optimizer"));
}

TEST_F(DiffTest, NamesOtherInitialWeights) {
  RunConfiguration other = of_two_epochs();
  other.seed = 1;
  const RunsDifference found = difference(of_two_epochs(), other);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::start);
  EXPECT_EQ(found.first->step, 0);
  EXPECT_EQ(found.first->element->elements, 7850);
  EXPECT_THAT(found.first->options, ElementsAre("seed"));
}

TEST_F(DiffTest, OfOtherModelsIsNotCompared) {
  RunConfiguration other = of_two_epochs();
  other.model = "mlp:hidden=4";
  const RunsDifference found = difference(of_two_epochs(), other);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::start);
  EXPECT_THAT(found.first->what, HasSubstr("is only in one of them"));
  EXPECT_THAT(found.first->options, ElementsAre("model"));
}

TEST_F(DiffTest, OfConfigurationsThatMakeNoDifferenceIsNone) {
  RunConfiguration other = of_two_epochs();
  other.cores = 1;
  other.patience = 3;
  const RunsDifference found = difference(of_two_epochs(), other);
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.equal_steps, 5);
  ASSERT_EQ(found.options.size(), 1);
  EXPECT_EQ(found.options.front().name, "patience");
}

TEST_F(DiffTest, MeasuresHowTheDistanceGrows) {
  RunConfiguration other = of_two_epochs();
  other.learning_rate = 0.011;
  const RunsDifference found =
      difference(of_two_epochs(), other, {.steps = 15, .distance = 12, .seeds = true});
  ASSERT_EQ(found.distances.size(), 12);
  EXPECT_EQ(found.distances.front().steps, 1);
  EXPECT_EQ(found.distances.back().steps, 12);
  const auto parameters_of = [](const RunConfiguration& run) {
    class Keeper final : public Observer {
     public:
      void on_step(Training& training, const StepRecord& /*step*/) override {
        kept.emplace_back(training.parameters());
      }
      std::vector<ArrayCopies> kept;
    };
    rubato::Run trained(run, dense_workload(run));
    const auto keeper = trained.trainer().add_observer<Keeper>();
    static_cast<void>(trained.execute());
    return std::move(keeper->kept);
  };
  const auto of_a = parameters_of(of_two_epochs());
  const auto of_b = parameters_of(other);
  for (const DistancePoint& point : found.distances) {
    const auto step = static_cast<std::size_t>(point.steps - 1);
    EXPECT_EQ(point.between, distance_of(of_a[step].arrays(), of_b[step].arrays()));
    ASSERT_TRUE(point.seeds);
    // Another order leads further than a rate that is a tenth higher.
    EXPECT_GT(*point.seeds, point.between) << point.steps;
  }
  EXPECT_TRUE(found.doubling);
}

// A step of one minibatch has its gradient, and its loss, also if they have noise.
class SteppedTrainings : public testing::TestWithParam<const char*> {};

TEST_P(SteppedTrainings, ComputeMinibatchesAsTheirStepsDo) {
  RunConfiguration run = of_two_epochs();
  run.model = GetParam();
  run.trace = "32";
  const auto workload = dense_workload(run);
  SteppedTraining taken(run, workload, nullptr);
  SteppedTraining next(run, workload, nullptr);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(taken.advance());
    int computed = 0;
    next.compute(taken.step(), 0, 1, [&](const MinibatchResult& result) {
      ++computed;
      EXPECT_EQ(result.loss, taken.step().loss);
      EXPECT_FALSE(first_difference(views_of(result.gradient), views_of(taken.gradients())));
    });
    EXPECT_EQ(computed, 1);
    ASSERT_TRUE(next.advance());
    EXPECT_EQ(next.step().digest, taken.step().digest);
  }
}

INSTANTIATE_TEST_SUITE_P(OfModels, SteppedTrainings,
                         testing::Values("softmax", "quadratic:dim=5,samples=512"));

class DiffOfFiles : public DiffTest {
 protected:
  // "a" and its copy "b".
  void train_copies() const {
    train("a", of_two_epochs());
    fs::remove_all(folder("b"));
    fs::copy(folder("a"), folder("b"), fs::copy_options::recursive);
  }
  // The difference after a text in the copy's metrics has been replaced, from step `step` on.
  [[nodiscard]] RunsDifference with(int step, const std::string& was, const std::string& is) const {
    const fs::path file = folder("b") / "metrics.jsonl";
    const std::string good = read_file(folder("a") / "metrics.jsonl");
    std::string text = good;
    text.replace(text.find(was, text.find(fmt::format("\"step\":{},", step - 1))), was.size(), is);
    write_file(file, text);
    return difference();
  }
};

TEST_F(DiffOfFiles, FindsANumberOfMetricsThatHasChanged) {
  train_copies();
  EXPECT_FALSE(difference().first);
  for (const std::string column : {"loss", "lr", "batch"}) {
    const RunsDifference found =
        with(16, fmt::format("\"{}\":", column), fmt::format("\"{}\":1", column));
    ASSERT_TRUE(found.first) << column;
    EXPECT_EQ(found.first->stage, DiffStage::files);
    EXPECT_EQ(found.first->step, 16);
    EXPECT_THAT(found.first->what, AllOf(HasSubstr("b/metrics.jsonl is not the file that the run"),
                                         HasSubstr("the first recorded difference is")));
  }
  // Nothing but the checksum tells of the time of a step.
  EXPECT_TRUE(with(16, "\"wall\":", "\"wall\":1").first);
  // Without a summary there is no checksum.
  fs::remove(folder("b") / "summary.json");
  EXPECT_TRUE(with(16, "\"loss\":", "\"loss\":1").first);
}

TEST_F(DiffOfFiles, FindsMetricsThatAreCut) {
  train_copies();
  const std::string good = read_file(folder("a") / "metrics.jsonl");
  write_file(folder("b") / "metrics.jsonl", good.substr(0, good.find("\"step\":15,") + 20));
  const RunsDifference cut = difference();
  ASSERT_TRUE(cut.first);
  EXPECT_EQ(cut.first->stage, DiffStage::files);
  EXPECT_EQ(cut.equal_steps, 15);
  EXPECT_THAT(cut.first->what, HasSubstr("; it has 15 of 22 steps"));
  // One that trains has an end like this.
  fs::remove(folder("b") / "summary.json");
  const RunsDifference training = difference();
  ASSERT_TRUE(training.first);
  EXPECT_EQ(training.first->stage, DiffStage::length);
  EXPECT_THAT(training.first->what, HasSubstr("22 and 15 steps; b has not ended"));
}

TEST_F(DiffOfFiles, FindsOtherWeights) {
  train_copies();
  const fs::path file = folder("b") / "weights.safetensors";
  State changed;
  const State found = read_state(file);
  for (auto [name, array] : found.arrays()) {
    if (name.starts_with("linear.weight")) array.bytes.front() ^= 1;
    if (name != "rubato.sha256") changed.put_array(name, array);
  }
  for (const auto& [name, text] : found.texts()) {
    if (!name.starts_with("rubato.")) changed.put_text(name, text);
  }
  write_state(file, changed);
  const RunsDifference other = difference();
  ASSERT_TRUE(other.first);
  EXPECT_EQ(other.first->stage, DiffStage::files);
  ASSERT_TRUE(other.first->element);
  EXPECT_EQ(other.first->element->ulps, 1);
  // One whose checksum is wrong, too.
  std::string bytes = read_file(folder("a") / "weights.safetensors");
  bytes[bytes.size() / 2] ^= 1;
  write_file(file, bytes);
  EXPECT_THAT(difference().first.value().what, HasSubstr("weights.safetensors"));
}

TEST_F(DiffOfFiles, FindsAChangedCheckpoint) {
  train_copies();
  flip("b", 10, "parameter.linear.weight", 300, 20);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->step, 10);
  EXPECT_THAT(found.first->what, HasSubstr("b/checkpoints/step-10.safetensors"));
}

// What only one of them remembers does not hide what differs later.
TEST_F(DiffTest, LooksBehindAverages) {
  RunConfiguration averaged = of_two_epochs();
  averaged.ema = 5000;
  train("a", averaged);
  train("b", of_two_epochs());
  const RunsDifference none = difference();
  ASSERT_TRUE(none.first);
  EXPECT_EQ(none.first->stage, DiffStage::start);
  EXPECT_EQ(none.equal_steps, 22);
  EXPECT_THAT(none.first->what, AllOf(HasSubstr("ema."), HasSubstr("is only in one of them")));
  EXPECT_THAT(none.first->options, ElementsAre("ema"));

  fs::remove_all(folder("b"));
  train("run", of_two_epochs());
  RunConfiguration faster = of_two_epochs();
  faster.learning_rate = 0.02;
  fork("b", faster, "run", 13);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::rule);
  EXPECT_EQ(found.first->step, 14);
  EXPECT_EQ(found.equal_steps, 13);
  EXPECT_THAT(found.first->what, HasSubstr("(besides, ema."));
}

TEST_F(DiffTest, LooksBehindLookahead) {
  RunConfiguration ahead = of_two_epochs();
  ahead.lookahead = 5;
  train("a", ahead);
  train("b", of_two_epochs());
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::update);
  EXPECT_EQ(found.first->step, 5);
  EXPECT_THAT(found.first->options, ElementsAre("lookahead"));
}

TEST_F(DiffTest, NamesSamplesThatAreSwappedInTheData) {
  const auto train_on = [&](const std::string& name, int swapped) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 512; ++i) {
      const int row = i == 0 ? swapped : i == swapped ? 0 : i;
      text += fmt::format("{}.5,{}.5,{}\n", row % 31, row % 47, row % 2);
    }
    write_file(folder(name + ".csv"), text);
    RunConfiguration run = of_two_epochs();
    run.trace = "64";
    run.data = "csv:" + folder(name + ".csv").string();
    train(name, run);
  };
  train_on("a", 0);
  train_on("b", 7);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::gradient);
  EXPECT_THAT(found.first->what,
              HasSubstr("has samples of the same numbers, and the data are not the same"));
  EXPECT_THAT(found.first->options, ElementsAre("data"));
}

TEST(DoublingSteps, AreThoseOfAnExponential) {
  const std::vector<std::int64_t> steps{1, 2, 4, 8, 16, 32};
  std::vector<double> values;
  for (const std::int64_t step : steps)
    values.push_back(0.001 * std::exp2(static_cast<double>(step) / 4));
  EXPECT_NEAR(doubling_steps(steps, values).value(), 4, 1e-9);
  // It stops to grow.
  EXPECT_NEAR(doubling_steps(steps, std::vector{1.0, 2.0, 8.0, 128.0, 128.0, 128.0}).value(), 1,
              1e-9);
  EXPECT_FALSE(doubling_steps(steps, std::vector{4.0, 2.0, 1.0, 0.5, 0.25, 0.1}));
  EXPECT_FALSE(doubling_steps(steps, std::vector{0.0, 0.0, 0.0, 0.0, 0.0, 0.0}));
  EXPECT_FALSE(doubling_steps({}, {}));
}

template <class T>
std::uint64_t ulps_between(T a, T b) {
  NamedArray of_a{.name = "x", .type = element_type_of<T>(), .shape = {1}, .data = &a};
  NamedArray of_b = of_a;
  of_b.data = &b;
  const auto found = first_difference(views_of({&of_a, 1}), views_of({&of_b, 1}));
  return found ? found->ulps.value() : 0;
}

TEST(UnitsInTheLastPlace, AreCountedAcrossZero) {
  EXPECT_EQ(ulps_between(1.0F, std::nextafter(1.0F, 2.0F)), 1);
  EXPECT_EQ(ulps_between(1.0, std::nextafter(1.0, 0.0)), 1);
  EXPECT_EQ(ulps_between(-1.0F, std::nextafter(-1.0F, 0.0F)), 1);
  EXPECT_EQ(ulps_between(1.0F, 2.0F), 1U << 23U);
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(ulps_between(-least, least), 2);
  EXPECT_EQ(ulps_between(-0.0F, 0.0F), 0);
  EXPECT_EQ(ulps_between(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()),
            2 * std::bit_cast<std::uint64_t>(std::numeric_limits<double>::max()));
}

// The difference of two arrays of one element with these bits.
DifferentElement difference_of_bits(ElementType type, std::uint16_t a, std::uint16_t b) {
  const std::int64_t shape = 1;
  const ArrayView of_a{
      .name = "x", .type = type, .shape = {&shape, 1}, .bytes = std::as_bytes(std::span(&a, 1))};
  ArrayView of_b = of_a;
  of_b.bytes = std::as_bytes(std::span(&b, 1));
  return first_difference({&of_a, 1}, {&of_b, 1}).value();
}

TEST(UnitsInTheLastPlace, AreCountedInHalfPrecision) {
  EXPECT_EQ(to_text(difference_of_bits(ElementType::f16, 0x3C00, 0x3BFF)),
            "x[0]: 1 and 0.999511719, 1 unit in the last place; no other element differs");
  EXPECT_EQ(to_text(difference_of_bits(ElementType::bf16, 0xBF80, 0xC000)),
            "x[0]: -1 and -2, 128 units in the last place; no other element differs");
  EXPECT_EQ(difference_of_bits(ElementType::f16, 0x8001, 0x0001).ulps, 2);
  EXPECT_EQ(difference_of_bits(ElementType::f16, 0x7E00, 0x3C00).ulps, std::nullopt) << "NaN";
  EXPECT_EQ(to_text(difference_of_bits(ElementType::i16, 0xFFFF, 0x0001)),
            "x[0]: -1 and 1; no other element differs");
}

TEST(ArraysThatCannotBeCompared, SayWhetherTheirTypesOrShapesDiffer) {
  const float number = 1;
  const std::vector<std::int64_t> shape{1};
  const std::vector<std::int64_t> other_shape{1, 1};
  const ArrayView array{.name = "x",
                        .type = ElementType::f32,
                        .shape = shape,
                        .bytes = std::as_bytes(std::span(&number, 1))};
  ArrayView other = array;
  other.type = ElementType::i32;
  EXPECT_EQ(to_text(first_difference({&array, 1}, {&other, 1}).value()),
            "x has the types F32 and I32");
  other = array;
  other.shape = other_shape;
  EXPECT_EQ(to_text(first_difference({&array, 1}, {&other, 1}).value()),
            "x has the shapes [1] and [1,1]");
}

// An option that can change bits is a possible reason at some stage.
TEST(StagesOfADifference, KnowAllOptions) {
  for (const RunOption& option : run_options()) {
    if (option.affects != Affects::bits || option.name == "from") continue;
    EXPECT_FALSE(option.stages.empty()) << option.name;
  }
}

}  // namespace
}  // namespace rubato
