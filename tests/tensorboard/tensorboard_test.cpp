// The observer: what it writes of a training, and that a training that goes on contradicts nothing.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/tensorboard.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/full_record.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"
#include "support/temp_folder.hpp"
#include "tensorboard/event_reader.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::Curves;
using test::curves_of;
using test::read_folder;
using test::ReadEvent;
using testing::Key;

using Points = Curves::mapped_type;

// 2 epochs of 5 steps: 12, 12, 6, 12, 6 of 48 samples.
constexpr std::int64_t kSteps = 10;
TrainOptions small_options() {
  return {.epochs = 2,
          .minibatch_size = 2,
          .learning_rate = 0.05,
          .reference_batch_size = 6,
          .log_noise = true,
          .cores = 2,
          .threads = 1};
}
Trainer small_trainer(TrainOptions options = small_options()) {
  return Trainer(test::tiny_objective(), test::trace_of({12, 12, 6, 12, 6}), std::move(options));
}

// What TensorBoard shows: a point is replaced by what is written of its step later, and a restart
// makes void what was written of its step and later ones.
std::map<std::string, std::map<std::int64_t, float>> shown(const std::vector<ReadEvent>& events) {
  std::map<std::string, std::map<std::int64_t, float>> curves;
  for (const ReadEvent& event : events) {
    for (auto& [tag, points] : curves) {
      if (event.restart) points.erase(points.lower_bound(event.step), points.end());
    }
    for (const auto& [tag, value] : event.scalars) curves[tag][event.step] = value;
  }
  // Those of time are others each time.
  std::erase_if(curves,
                [](const auto& curve) { return curve.first.find("seconds") != curve.first.npos; });
  return curves;
}

class TensorBoards : public testing::Test {
 protected:
  [[nodiscard]] fs::path folder() const { return temp_.path() / "logs" / "run"; }
  [[nodiscard]] std::vector<ReadEvent> events() const { return read_folder(folder()); }

  // Trains to the end in one go.
  [[nodiscard]] auto expected() const {
    const test::TempFolder other;
    Trainer trainer = small_trainer();
    const auto board = trainer.add_observer<TensorBoard>(other.path());
    trainer.fit();
    board->sync();
    return shown(read_folder(other.path()));
  }

 private:
  test::TempFolder temp_;
};

TEST_F(TensorBoards, HaveEveryRecordOfATraining) {
  Trainer trainer = small_trainer();
  const auto board = trainer.add_observer<TensorBoard>(folder());
  const auto recorder = test::recorded(trainer);
  board->sync();

  const Curves curves = curves_of(events());
  Points losses;
  for (const StepRecord& step : recorder->steps) {
    losses.emplace_back(step.plan.index.value(), static_cast<float>(step.loss));
  }
  ASSERT_EQ(losses.size(), kSteps);
  EXPECT_EQ(curves.at("train/loss"), losses);
  const auto test_loss = [&](std::size_t epoch) {
    return static_cast<float>(recorder->epochs[epoch].test->loss);
  };
  EXPECT_EQ(curves.at("test/loss"), (Points{{4, test_loss(0)}, {9, test_loss(1)}}));
  // What there is not has no curve.
  for (const char* tag :
       {"train/loss_scale", "step/skipped", "step/faults", "test/accuracy", "test/mse"}) {
    EXPECT_THAT(curves, Not(Contains(Key(tag))));
  }
  for (const auto& [tag, points] : curves) EXPECT_FALSE(tag.starts_with("clock/")) << tag;
}

TEST_F(TensorBoards, CountFaultsUntilAStep) {
  Trainer trainer = small_trainer();
  const auto board = std::make_shared<TensorBoard>(folder());
  trainer.add_observer<test::Recorder>([&](Training& training, const StepRecord& step) {
    if (step.plan.index.value() == 3) {
      board->on_fault(training, step.plan, std::vector<FaultRecord>(2), 1);
    }
    board->on_step(training, step);
  });
  trainer.fit();
  board->sync();
  EXPECT_EQ(curves_of(events())["step/faults"], (Points{{3, 2}}));
}

// Of every column that has a tag, in a record that has a value for each.
TEST_F(TensorBoards, HaveTheValuesOfTheColumnsThatHaveACurve) {
  Trainer trainer = small_trainer();
  const auto board = std::make_shared<TensorBoard>(folder());
  const StepRecord full_step = test::full_step();
  const EpochRecord full_epoch = test::full_record(epoch_schema());
  trainer.add_observer<test::Recorder>([&](Training& training, const StepRecord& step) {
    if (step.plan.index.value() != 0) return;
    board->on_step(training, full_step);
    board->on_epoch(training, full_epoch);
  });
  trainer.fit();
  board->sync();
  std::map<std::string, float> expected;
  const auto expect = [&](const auto& schema, const auto& record) {
    for (const auto& column : schema.columns) {
      const std::string& tag = column.info().tag;
      if (tag.empty()) continue;
      std::visit(
          [&](const auto& value) {
            using Value = std::remove_cvref_t<decltype(value)>;
            if constexpr (std::is_arithmetic_v<Value>) {
              expected[tag] = static_cast<float>(value);
            } else if constexpr (std::is_same_v<Value, std::vector<NamedNumber>>) {
              for (const NamedNumber& of : value) {
                expected[with_name(tag, of.name)] = static_cast<float>(of.value);
              }
            }
          },
          column.read(record));
    }
  };
  expect(step_schema(), full_step);
  expect(epoch_schema(), full_epoch);
  std::map<std::string, float> curves;
  for (const auto& [tag, points] : curves_of(events())) curves[tag] = points.front().second;
  EXPECT_EQ(curves, expected);
}

TEST_F(TensorBoards, HaveHistogramsOfWhatMatches) {
  Trainer trainer = small_trainer();
  const auto board = trainer.add_observer<TensorBoard>(
      folder(), TensorBoardOptions{.histograms = "w*", .histograms_every = 4});
  std::vector<double> weights;
  trainer.add_observer<test::Recorder>([&](Training& training, const StepRecord& step) {
    if (step.plan.index.value() != 3) return;
    const auto values = training.parameters().front().values<double>();
    weights.assign(values.begin(), values.end());
  });
  ASSERT_EQ(trainer.parameters().front().name, "weight");
  trainer.fit();
  board->sync();
  std::map<std::string, std::vector<std::int64_t>> steps;
  for (const ReadEvent& event : events()) {
    for (const auto& [tag, histogram] : event.histograms) {
      steps[tag].push_back(event.step);
      EXPECT_EQ(histogram.num, 3) << tag;
      if (tag == "weights/weight" && event.step == 4) {
        EXPECT_EQ(histogram.min, *std::min_element(weights.begin(), weights.end()))
            << "those before the update";
        EXPECT_EQ(histogram.max, *std::max_element(weights.begin(), weights.end()));
      }
    }
  }
  const std::vector<std::int64_t> expected{0, 4, 8};
  EXPECT_EQ(steps, (std::map<std::string, std::vector<std::int64_t>>{
                       {"gradients/weight", expected}, {"weights/weight", expected}}));
}

TEST_F(TensorBoards, AreRefusedWhatTheyCannotDo) {
  Trainer trainer = small_trainer();
  EXPECT_THAT(error_of([&] {
                trainer.add_observer<TensorBoard>(folder(),
                                                  TensorBoardOptions{.histograms = "conv*"});
              }),
              HasSubstr("no parameter matches 'conv*'"));
  EXPECT_EQ(error_of([&] { const TensorBoard board(folder(), {.histograms_every = 0}); }),
            "histograms every 0 steps: at least 1 is needed");
  EXPECT_THAT(error_of([&] { const TensorBoard board("/proc/nothing"); }),
              HasSubstr("/proc/nothing: cannot write: "));
}

// Gone on with from every state, also where events were written after it that the state does not
// know: what is shown is what one training in one go shows, with nothing written twice.
TEST_F(TensorBoards, GoOnFromEveryState) {
  const auto whole = expected();
  for (std::int64_t at = 1; at <= kSteps; ++at) {
    State state;
    {
      Trainer trainer = small_trainer();
      trainer.add_observer<TensorBoard>(folder());
      class Saver final : public Observer {
       public:
        Saver(State& state, std::int64_t at) : state_(state), at_(at) {}
        void between_steps(Training& training) override {
          if (training.result().steps == at_) state_ = training.state();
        }

       private:
        State& state_;
        std::int64_t at_;
      };
      trainer.add_observer<Saver>(state, at);
      trainer.fit();
    }
    // Twice: the second time there is a later file, too.
    for (int i = 0; i < 2; ++i) {
      Trainer trainer = small_trainer();
      const auto board =
          trainer.add_observer<TensorBoard>(folder(), TensorBoardOptions(), /*keep=*/true);
      trainer.load_state(state);
      trainer.fit();
      board->sync();
      ASSERT_EQ(test::event_files(folder()).size(), 2U) << at;
      EXPECT_EQ(shown(events()), whole) << at;
      const Curves curves = curves_of(events());
      EXPECT_EQ(curves.at("train/loss").size(), kSteps) << "none is there twice, from " << at;
      EXPECT_EQ(curves.at("test/loss").size(), 2U) << at;
    }
  }
}

// One reader has read the later events before they were removed.
TEST_F(TensorBoards, TellAReaderWhereTheyGoOn) {
  State state;
  {
    Trainer trainer = small_trainer();
    trainer.add_observer<TensorBoard>(folder());
    test::train_until(trainer, 4);
    state = trainer.state();
  }
  Trainer trainer = small_trainer();
  const auto board =
      trainer.add_observer<TensorBoard>(folder(), TensorBoardOptions(), /*keep=*/true);
  trainer.load_state(state);
  EXPECT_EQ(test::event_files(folder()).size(), 1U) << "loading changes no file";
  board->sync();
  const auto files = test::event_files(folder());
  ASSERT_EQ(files.size(), 2U);
  const std::vector<ReadEvent> second = test::read_events(files[1]);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_TRUE(second[1].restart);
  EXPECT_EQ(second[1].step, 4);
}

TEST_F(TensorBoards, BeginInTheMiddleWhereThereWereNoneBefore) {
  Trainer first = small_trainer();
  test::train_until(first, 4);
  Trainer second = small_trainer();
  const auto board = second.add_observer<TensorBoard>(
      folder(), TensorBoardOptions{.hyperparameters = {{"lr", 0.5}}}, /*keep=*/true);
  second.load_state(first.state());
  second.fit();
  board->sync();
  const auto losses = curves_of(events()).at("train/loss");
  ASSERT_EQ(losses.size(), kSteps - 4U);
  EXPECT_EQ(losses.front().first, 4);
  const std::vector<ReadEvent> all = events();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const auto& event) { return event.hparams.has_value(); }),
            1);
}

TEST_F(TensorBoards, AreMissedWhereAStateKnowsThem) {
  Trainer first = small_trainer();
  const auto board = first.add_observer<TensorBoard>(folder());
  first.fit();
  board->sync();
  const State state = first.state();
  const fs::path file = test::event_files(folder()).front();
  const auto load = [&] {
    Trainer second = small_trainer();
    second.add_observer<TensorBoard>(folder(), TensorBoardOptions(), /*keep=*/true);
    second.load_state(state);
  };
  const std::uintmax_t size = fs::file_size(file);
  fs::resize_file(file, size - 1);
  EXPECT_THAT(error_of(load), AllOf(HasSubstr(file.string() + ": has " + std::to_string(size - 1) +
                                              " bytes, and had " + std::to_string(size)),
                                    HasSubstr("--tensorboard=false")));
  fs::remove(file);
  EXPECT_THAT(error_of(load),
              AllOf(HasSubstr(file.string() + ": is missing"), HasSubstr("--tensorboard=false")));
}

TEST_F(TensorBoards, BeginAnewWhereNothingIsKept) {
  const auto train = [&] {
    Trainer trainer = small_trainer();
    const auto board = trainer.add_observer<TensorBoard>(
        folder(), TensorBoardOptions{.hyperparameters = {{"rule", std::string("linear")}}});
    trainer.fit();
    board->end(true);
  };
  train();
  const fs::path foreign = folder() / "events.out.tfevents.1.another";
  std::ofstream(foreign) << "";
  train();
  EXPECT_TRUE(fs::exists(foreign)) << "is not rubato's";
  EXPECT_EQ(test::event_files(folder()).size(), 2U);
  const std::vector<ReadEvent> all = events();
  EXPECT_EQ(curves_of(all).at("train/loss").size(), kSteps);
  ASSERT_TRUE(all[1].hparams && all.back().hparams);
  EXPECT_EQ(std::get<std::string>(all[1].hparams->values.at("rule")), "linear");
  EXPECT_EQ(all.back().hparams->end_status, 1);
}

TEST_F(TensorBoards, ChangeNoBit) {
  Trainer plain = small_trainer();
  plain.fit();
  Trainer watched = small_trainer();
  watched.add_observer<TensorBoard>(folder(),
                                    TensorBoardOptions{.histograms = "*", .histograms_every = 1});
  watched.fit();
  EXPECT_EQ(test::difference_of(plain, watched), std::nullopt);
}

}  // namespace
}  // namespace rubato
