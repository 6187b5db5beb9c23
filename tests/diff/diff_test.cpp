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
#include "run/runs_in_folders.hpp"
#include "runs/config/run_option.hpp"
#include "runs/diff/explanation.hpp"
#include "runs/diff/stepped_training.hpp"
#include "runs/lab/contestants.hpp"
#include "runs/run/fork.hpp"
#include "support/changed_state.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::outcome_of;

// 2 epochs of 11 steps of 32 minibatches, with other options.
RunConfiguration of_two_epochs(const std::string& options = {}) {
  return test::with_options({.model = "softmax",
                             .trace = "1024",
                             .cores = 3,
                             .epochs = 2,
                             .threads = 1,
                             .checkpoint_every = "5steps",
                             .keep = 10},
                            options);
}

class DiffTest : public test::RunsInFolders {
 protected:
  // The difference of the runs "a" and "b"; their names are read with the extensions of `around`.
  [[nodiscard]] RunsDifference difference(const RunConfiguration& around = {}) const {
    DiffRequest request{.distance = 0, .threads = 1};
    for (const std::size_t side : {0U, 1U}) {
      const std::string name(1, side == 0 ? 'a' : 'b');
      request.sides.at(side) = {.name = name,
                                .run = folder(name),
                                .configuration = configuration_of_run(folder(name), around)};
    }
    return find_difference(request, replay_);
  }
  // The difference of two configurations without folders.
  [[nodiscard]] RunsDifference difference(const RunConfiguration& a, const RunConfiguration& b,
                                          DiffRequest request = {.steps = 5, .distance = 0}) const {
    request.sides = {DiffSide{.name = "good", .configuration = a},
                     DiffSide{.name = "bad", .configuration = b}};
    request.threads = 1;
    return find_difference(request, replay_);
  }
  // Flips a bit of an element in a checkpoint of a run, and returns its file.
  fs::path flip(const std::string& name, std::int64_t step, const std::string& array,
                std::size_t element, unsigned bit) const {
    fs::path file = folder(name) / "checkpoints" / fmt::format("step-{}.safetensors", step);
    write_state(file, test::with_changes(read_state(file), [&](const auto& entry, auto& of) {
                  if (entry != array) return true;
                  char& byte = of.bytes[element * sizeof(float) + bit / 8];
                  byte = static_cast<char>(byte ^ (1 << (bit % 8)));
                  return true;
                }));
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
};

// What is expected of a difference: the stage in which it is found, and what else is given.
struct Wanted {
  DiffStage stage;
  std::optional<std::int64_t> step{};
  std::optional<std::int64_t> equal_steps{};
  // Those that may be the reason.
  std::vector<std::string> options{};
};

// Returns all that is told of the first difference.
FirstDifference first_of(const RunsDifference& found, const Wanted& wanted) {
  EXPECT_TRUE(found.first);
  FirstDifference first = found.first.value_or(FirstDifference());
  EXPECT_EQ(first.stage, wanted.stage);
  EXPECT_EQ(first.step, wanted.step.value_or(first.step));
  EXPECT_EQ(found.equal_steps, wanted.equal_steps.value_or(found.equal_steps));
  if (!wanted.options.empty()) {
    EXPECT_THAT(first.options, testing::UnorderedElementsAreArray(wanted.options));
  }
  return first;
}

TEST_F(DiffTest, OfEqualRunsIsNone) {
  train("a", of_two_epochs());
  train("b", of_two_epochs("cores=7 reduce=sharded checkpoint-every=never"));
  const RunsDifference found = difference();
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.equal_steps, 22);
  EXPECT_THAT(found.options, IsEmpty());
  EXPECT_EQ(found.compared.shared, 0);
  EXPECT_EQ(found.compared.digests, 2);
  EXPECT_EQ(found.compared.repeated, 0);
  EXPECT_TRUE(found.compared.weights);
}

TEST_F(DiffTest, OfARunAndItsBeginningIsTheLength) {
  train("a", of_two_epochs());
  train("b", of_two_epochs("epochs=3"));
  const RunsDifference found = difference();
  first_of(found,
           {.stage = DiffStage::length, .step = 23, .equal_steps = 22, .options = {"epochs"}});
  EXPECT_EQ(found.compared.digests, 2);
  EXPECT_EQ(found.compared.repeated, 2);
  EXPECT_FALSE(found.compared.weights);
}

TEST_F(DiffTest, NamesTheSeedOfAnEpoch) {
  train("a", of_two_epochs());
  fork("b", of_two_epochs("seed=7"), "a", 11);
  const auto first =
      first_of(difference(),
               {.stage = DiffStage::samples, .step = 12, .equal_steps = 11, .options = {"seed"}});
  EXPECT_EQ(first.minibatch, 1);
  EXPECT_THAT(first.what, HasSubstr("other samples"));
  // It shuffles with seed + epoch.
  EXPECT_THAT(first.samples, ElementsAre(random_permutation(12000, 43).front(),
                                         random_permutation(12000, 8).front()));
}

// Its summary tells of the process that took the last steps.
TEST_F(DiffTest, NamesTheKernelsOfTheStepsThatDiffer) {
  train("a", of_two_epochs());
  train("b", of_two_epochs("momentum=0.4"));
  const fs::path file = folder("b") / "checkpoints" / "step-5.safetensors";
  write_state(file, test::with_changes(
                        read_state(file), [](const auto&, auto&) { return true; },
                        [](const auto& name, auto& text) {
                          if (name == "observer/kernels/in_use") text = "Eigen none";
                          return true;
                        }));
  const RunsDifference found = difference();
  ASSERT_EQ(found.facts.size(), 1);
  EXPECT_EQ(found.facts.front().name, "kernels.eigen");
  EXPECT_EQ(found.facts.front().texts[1], "none");
  fork("b2", of_two_epochs("momentum=0.4"), "b", 12);
  fs::remove_all(folder("a"));
  fs::rename(folder("b2"), folder("a"));
  EXPECT_EQ(difference().compared.shared, 12);
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
  const auto first =
      first_of(difference(run), {.stage = DiffStage::samples, .step = 13, .options = {"sampler"}});
  EXPECT_EQ(first.minibatch, 5);
  EXPECT_EQ(first.position, 7);
  const auto order = random_permutation(12000, 43);
  EXPECT_THAT(first.samples, ElementsAre(order[kBegin + 6], order[kBegin + 30]));
  EXPECT_THAT(first.what, HasSubstr("the same samples in another order"));
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
  const auto first = first_of(difference(run),
                              {.stage = DiffStage::sum, .step = 1, .options = {"reduce", "exact"}});
  EXPECT_GT(first.element.value().ulps, 0);
  EXPECT_GT(first.element->elements, 10);
  EXPECT_THAT(first.what, HasSubstr("in this repetition"));
}

TEST_F(DiffTest, NamesTheRateOfOneStep) {
  train("a", of_two_epochs());
  fork("faster", of_two_epochs("lr=0.02"), "a", 8);
  fork("b", of_two_epochs(), "faster", 9);
  const auto first = first_of(
      difference(), {.stage = DiffStage::rule, .step = 9, .equal_steps = 8, .options = {"lr"}});
  EXPECT_THAT(first.numbers.value(), ElementsAre(0.08, 0.16));
}

TEST_F(DiffTest, NamesAnotherRowOfTheTrace) {
  train("a", of_two_epochs("trace=" + rows("a.csv", 1024)));
  train("b", of_two_epochs("trace=" + rows("b.csv", 512)));
  const RunsDifference found = difference();
  const auto first = first_of(found, {.stage = DiffStage::trace, .step = 16, .options = {"trace"}});
  EXPECT_THAT(first.numbers.value(), ElementsAre(1024, 512));
  ASSERT_EQ(found.options.size(), 1);
  EXPECT_THAT(found.options.front().texts,
              ElementsAre(HasSubstr("/a/trace.csv"), HasSubstr("/b/trace.csv")));
}

TEST_F(DiffTest, NamesClipping) {
  train("a", of_two_epochs());
  train("b", of_two_epochs("clip-norm=0.5"));
  const auto first =
      first_of(difference(), {.stage = DiffStage::clipping, .step = 1, .options = {"clip-norm"}});
  EXPECT_EQ(first.element.value().array, "linear.bias");
}

TEST_F(DiffTest, NamesTheElementOfADamagedCheckpoint) {
  const RunConfiguration run = of_two_epochs("digest=every=1");
  train("a", run);
  train("b", run);
  damage("b", run, 10, "parameter.linear.weight", 2 * 784 + 5, 0);
  const auto first =
      first_of(difference(), {.stage = DiffStage::state, .step = 10, .equal_steps = 10});
  EXPECT_EQ(first.element.value().array, "linear.weight");
  EXPECT_THAT(first.element->index, ElementsAre(2, 5));
  EXPECT_EQ(first.element->ulps, 1);
  EXPECT_EQ(first.element->elements, 1);
}

// Only every tenth step has a digest, so the state is compared when its step is repeated.
TEST_F(DiffTest, NamesTheDamagedEntryOfAnOptimizer) {
  train("a", of_two_epochs());
  train("b", of_two_epochs());
  damage("b", of_two_epochs(), 15, "optimizer.velocity", 300, 20);
  const auto first =
      first_of(difference(), {.stage = DiffStage::state, .step = 15, .equal_steps = 14});
  EXPECT_EQ(first.element.value().array, "optimizer.velocity of linear.weight");
  EXPECT_THAT(first.element->index, ElementsAre(0, 300));
  EXPECT_EQ(first.element->ulps, 1U << 20U);
}

// The steps before the first different digest have to be repeated from a file that has changed.
TEST_F(DiffTest, TellsOfADigestThatTheRunItselfDoesNotHaveAgain) {
  train("a", of_two_epochs("trace=" + rows("a.csv", 1024)));
  train("b", of_two_epochs("trace=" + rows("b.csv", 512)));
  flip("a", 5, "parameter.linear.weight", 300, 20);
  fs::remove(folder("a") / "checkpoints" / "step-10.safetensors");
  EXPECT_THAT(
      first_of(difference(), {.stage = DiffStage::unexplained, .step = 20, .equal_steps = 10}).what,
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
  const RunConfiguration run = of_two_epochs("checkpoint-every=never");
  train("a", run);
  rubato::Run other(run, dense_workload(run), RunLocation::create(folder("b")));
  other.trainer().add_observer<Faster>();
  static_cast<void>(other.execute());
  EXPECT_THAT(
      first_of(difference(), {.stage = DiffStage::unexplained, .step = 20, .equal_steps = 10}).what,
      HasSubstr("the learning rate 0.08 and 0.16 in step 13"));
}

// Each side draws by its own weights, although nothing else of the data and the model differs.
TEST_F(DiffTest, NamesTheWeightsOfSamples) {
  std::string table = "x,w,v,y\n";
  for (int i = 0; i < 256; ++i) table += fmt::format("{}.5,{},{},{}\n", i, i % 3, i % 5, i % 2);
  write_file(folder("table.csv"), table);
  const auto with = [&](const std::string& sampler) {
    return of_two_epochs(fmt::format("data=csv:{},ignore=w/v,label=y trace=64 sampler={}",
                                     folder("table.csv").string(), sampler));
  };
  const std::string by_w = "weighted:column=w";
  for (const std::string other : {"weighted:column=v", "weighted:balanced", "shuffle"}) {
    first_of(difference(with(by_w), with(other)),
             {.stage = DiffStage::samples, .step = 1, .options = {"sampler"}});
    first_of(difference(with(other), with(by_w)),
             {.stage = DiffStage::samples, .step = 1, .options = {"sampler"}});
  }
  EXPECT_FALSE(difference(with(by_w), with(by_w)).first);
}

TEST_F(DiffTest, NamesTheGradientOfAMinibatch) {
  // Its gradient has noise, from the seed.
  const std::string noisy = "model=quadratic:dim=5,samples=512 trace=64 sampler=in-order ";
  train("a", of_two_epochs(noisy));
  fork("b", of_two_epochs(noisy + "seed=1"), "a", 6);
  const auto first =
      first_of(difference(), {.stage = DiffStage::gradient, .step = 7, .options = {"seed"}});
  EXPECT_EQ(first.minibatch, 1);
  EXPECT_NE(first.numbers.value()[0], first.numbers.value()[1]);
  EXPECT_TRUE(first.element);
}

TEST_F(DiffTest, OfForksBeginsWhereTheyDo) {
  train("a", of_two_epochs());
  const std::string fork = "from=" + point("a", 4);
  first_of(difference(of_two_epochs(fork), of_two_epochs(fork + " lr=0.02")),
           {.stage = DiffStage::rule, .step = 5, .equal_steps = 4});
}

TEST_F(DiffTest, NamesTheUpdate) {
  first_of(difference(of_two_epochs("optimizer=adam"), of_two_epochs("optimizer=adam:beta2=0.99")),
           {.stage = DiffStage::update, .step = 1, .options = {"optimizer"}});
}

TEST_F(DiffTest, NamesOtherInitialWeights) {
  const auto first = first_of(difference(of_two_epochs(), of_two_epochs("seed=1")),
                              {.stage = DiffStage::start, .step = 0, .options = {"seed"}});
  EXPECT_EQ(first.element.value().elements, 7850);
}

TEST_F(DiffTest, OfOtherModelsIsNotCompared) {
  const auto first = first_of(difference(of_two_epochs(), of_two_epochs("model=mlp:hidden=4")),
                              {.stage = DiffStage::start, .options = {"model"}});
  EXPECT_THAT(first.what, HasSubstr("is only in one of them"));
}

TEST_F(DiffTest, OfConfigurationsThatMakeNoDifferenceIsNone) {
  const RunsDifference found = difference(of_two_epochs(), of_two_epochs("cores=1 patience=3"));
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.equal_steps, 5);
  ASSERT_EQ(found.options.size(), 1);
  EXPECT_EQ(found.options.front().name, "patience");
}

TEST_F(DiffTest, MeasuresHowTheDistanceGrows) {
  const RunConfiguration other = of_two_epochs("lr=0.011");
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
  const RunConfiguration run = of_two_epochs(std::string("trace=32 model=") + GetParam());
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
    SCOPED_TRACE(column);
    const RunsDifference found =
        with(16, fmt::format("\"{}\":", column), fmt::format("\"{}\":1", column));
    EXPECT_THAT(first_of(found, {.stage = DiffStage::files, .step = 16}).what,
                AllOf(HasSubstr("b/metrics.jsonl is not the file that the run"),
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
  EXPECT_THAT(first_of(difference(), {.stage = DiffStage::files, .equal_steps = 15}).what,
              HasSubstr("; it has 15 of 22 steps"));
  // One that trains has an end like this.
  fs::remove(folder("b") / "summary.json");
  EXPECT_THAT(first_of(difference(), {.stage = DiffStage::length}).what,
              HasSubstr("22 and 15 steps; b has not ended"));
}

TEST_F(DiffOfFiles, FindsOtherWeights) {
  train_copies();
  const fs::path file = folder("b") / "weights.safetensors";
  test::flip_bits(file, "linear.weight");
  EXPECT_EQ(first_of(difference(), {.stage = DiffStage::files}).element.value().ulps, 1);
  // One whose checksum is wrong, too.
  std::string bytes = read_file(folder("a") / "weights.safetensors");
  bytes[bytes.size() / 2] ^= 1;
  write_file(file, bytes);
  EXPECT_THAT(difference().first.value().what, HasSubstr("weights.safetensors"));
}

TEST_F(DiffOfFiles, FindsAChangedCheckpoint) {
  train_copies();
  flip("b", 10, "parameter.linear.weight", 300, 20);
  const FirstDifference first = difference().first.value();
  EXPECT_EQ(first.step, 10);
  EXPECT_THAT(first.what, HasSubstr("b/checkpoints/step-10.safetensors"));
}

// What only one of them remembers does not hide what differs later.
TEST_F(DiffTest, LooksBehindAverages) {
  train("a", of_two_epochs("ema=5000"));
  train("b", of_two_epochs());
  EXPECT_THAT(
      first_of(difference(), {.stage = DiffStage::start, .equal_steps = 22, .options = {"ema"}})
          .what,
      AllOf(HasSubstr("ema."), HasSubstr("is only in one of them")));
  fs::remove_all(folder("b"));
  train("run", of_two_epochs());
  fork("b", of_two_epochs("lr=0.02"), "run", 13);
  EXPECT_THAT(
      first_of(difference(), {.stage = DiffStage::rule, .step = 14, .equal_steps = 13}).what,
      HasSubstr("(besides, ema."));
}

TEST_F(DiffTest, LooksBehindLookahead) {
  train("a", of_two_epochs("lookahead=5"));
  train("b", of_two_epochs());
  first_of(difference(), {.stage = DiffStage::update, .step = 5, .options = {"lookahead"}});
}

TEST_F(DiffTest, NamesSamplesThatAreSwappedInTheData) {
  const auto train_on = [&](const std::string& name, int swapped) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 512; ++i) {
      const int row = i == 0 ? swapped : i == swapped ? 0 : i;
      text += fmt::format("{}.5,{}.5,{}\n", row % 31, row % 47, row % 2);
    }
    write_file(folder(name + ".csv"), text);
    train(name, of_two_epochs("trace=64 data=csv:" + folder(name + ".csv").string()));
  };
  train_on("a", 0);
  train_on("b", 7);
  EXPECT_THAT(first_of(difference(), {.stage = DiffStage::gradient, .options = {"data"}}).what,
              HasSubstr("has samples of the same numbers, and the data are not the same"));
}

// What would be taken apart is not the step of either run.
TEST_F(DiffTest, IsNotThatOfStepsOnOtherData) {
  const auto write_rows = [&](int shift) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 512; ++i) {
      text += fmt::format("{}.5,{}.5,{}\n", (i + shift) % 31, i % 47, i % 2);
    }
    write_file(folder("d.csv"), text);
  };
  RunConfiguration run = of_two_epochs();
  run.trace = "64";
  run.data = "csv:" + folder("d.csv").string();
  run.checkpoint_every = "never";
  write_rows(0);
  train("a", run);
  run.learning_rate = 0.02;
  train("b", run);
  EXPECT_EQ(difference().first.value().stage, DiffStage::rule);
  write_rows(7);
  const RunsDifference found = difference();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->stage, DiffStage::unexplained);
  EXPECT_THAT(found.first->what,
              AllOf(HasSubstr("cannot be found"), HasSubstr("a: step 1 has the loss")));
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
