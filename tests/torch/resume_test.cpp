#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "support.hpp"
#include "support/changed_state.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

TrainOptions small(TrainOptions options = {}) {
  options.minibatch_size = 8;
  options.reference_batch_size = 16;
  options.cores = 2;
  options.threads = 2;
  return options;
}

TorchTrainer softmax_trainer(const test::AllOptions& options) {
  TorchTrainer trainer(builtin_model("softmax", {}), nll_loss(), test::digits(100),
                       test::trace_of({16, 32}, TraceEnd::cycle), options, options.torch);
  trainer.set_test(test::digits(50, 2));
  return trainer;
}

TEST(Resume, OfAnotherConfigurationSaysWhatDiffers) {
  TorchTrainer trainer = softmax_trainer(small());
  const State state = trainer.state();
  const auto error = [&](const TrainOptions& options) {
    TorchTrainer other = softmax_trainer(options);
    return error_of([&] { other.load_state(state); });
  };
  EXPECT_EQ(error(small({.epochs = 7, .top_k = 3})), "no error");
  TrainOptions elsewhere = small();
  elsewhere.threads = 1;
  elsewhere.cores = 30;
  elsewhere.reduce = "sharded";
  elsewhere.assignment = Assignment::strided;
  EXPECT_EQ(error(elsewhere), "no error");
  EXPECT_THAT(error(small({.learning_rate = 0.5, .seed = 7})),
              AllOf(HasSubstr("learning_rate was 0.01, is 0.5"), HasSubstr("seed was 42, is 7"),
                    HasSubstr("may be changed: threads, cores")));
  const auto error_of_data = [&](const std::string& model, std::int64_t samples,
                                 const Trace& trace) {
    TorchTrainer other(builtin_model(model, {}), nll_loss(), test::digits(samples), trace, small());
    return error_of([&] { other.load_state(state); });
  };
  const auto trace = [](std::int64_t batch_size) {
    return test::trace_of({16, batch_size}, TraceEnd::cycle);
  };
  EXPECT_EQ(error_of_data("softmax", 100, trace(32)), "no error");
  EXPECT_THAT(error_of_data("mlp", 100, trace(32)), HasSubstr("parameters was"));
  EXPECT_THAT(error_of_data("softmax", 90, trace(32)),
              HasSubstr("training samples was 100, is 90"));
  // No step has used it.
  EXPECT_EQ(error_of_data("softmax", 100, trace(40)), "no error");
}

using Change = std::function<void(test::AllOptions&)>;

// What a state of options with the change `before` is refused for by a trainer with `now`.
std::string refusal(const Change& before, const Change& now) {
  const auto with = [](const Change& change) {
    test::AllOptions options = small();
    change(options);
    return softmax_trainer(options);
  };
  const State state = with(before).state();
  TorchTrainer other = with(now);
  return error_of([&] { other.load_state(state); });
}

TEST(Resume, IsBoundToEachOptionThatDecidesBits) {
  const std::vector<std::pair<std::string, Change>> changes{
      {"minibatch_size", [](auto& o) { o.minibatch_size = 16; }},
      {"learning_rate", [](auto& o) { o.learning_rate = 0.5; }},
      {"reference_batch_size", [](auto& o) { o.reference_batch_size = 32; }},
      {"rule", [](auto& o) { o.rule = "root"; }},
      {"schedule", [](auto& o) { o.schedule = "cosine:total=9"; }},
      {"schedule",
       [](auto& o) { o.own_schedule = [] { return ScheduleChoice("constant").make({}); }; }},
      {"schedule_unit", [](auto& o) { o.schedule_unit = ScheduleUnit::steps; }},
      {"watch", [](auto& o) { o.watch = Metric::train_loss; }},
      {"optimizer", [](auto& o) { o.optimizer.method = LarsOptions{}; }},
      {"optimizer", [](auto& o) { o.optimizer.momentum = 0.9; }},
      {"optimizer", [](auto& o) { o.optimizer.weight_decay = 0.1; }},
      {"optimizer", [](auto& o) { o.optimizer.method = SgdOptions{.nesterov = true}; }},
      {"optimizer",
       [](auto& o) { o.optimizer.method = SgdOptions{.momentum_form = MomentumForm::mxnet}; }},
      {"groups", [](auto& o) { o.groups = {no_decay_for_vectors()}; }},
      {"lookahead", [](auto& o) { o.lookahead.emplace(); }},
      {"rate_factors",
       [](auto& o) {
         o.rate_factors = {{"*.bias", 2}};
       }},
      {"clip_norm", [](auto& o) { o.clip_norm = 1; }},
      {"clip_value", [](auto& o) { o.clip_value = 1; }},
      {"precision", [](auto& o) { o.torch.precision = Precision::fp16; }},
      {"operators", [](auto& o) { o.torch.operators.batch_norm = false; }},
      {"iterations", [](auto& o) { o.budget.iterations = 1000; }},
      {"augment", [](auto& o) { o.torch.augment = random_shift(1); }},
      {"seed", [](auto& o) { o.seed = 7; }},
      {"log_noise", [](auto& o) { o.log_noise = true; }}};
  const Change none = [](auto&) {};
  EXPECT_EQ(refusal(none, none), "no error");
  for (const auto& [name, change] : changes) {
    EXPECT_THAT(refusal(none, change),
                HasSubstr("the state belongs to another configuration: " + name + " was "));
    EXPECT_EQ(refusal(change, change), "no error") << name;
  }
}

// Of an option that is several numbers, each counts.
TEST(Resume, IsBoundToEachPartOfAnOption) {
  const auto optimizer = [](const OptimizerOptions& options) -> Change {
    return [options](auto& o) { o.optimizer = options; };
  };
  for (const auto& [plain, changed] : std::vector<std::pair<OptimizerOptions, OptimizerOptions>>{
           {{.method = LarsOptions{}}, {.method = LarsOptions{.trust = 0.1}}},
           {{.method = AdamOptions{}}, {.method = AdamOptions{.beta1 = 0.8}}},
           {{.method = AdamOptions{}}, {.method = AdamOptions{.beta2 = 0.9}}},
           {{.method = AdamOptions{}}, {.method = AdamOptions{.amsgrad = true}}},
           {{.method = AdamOptions{}}, {.method = AdamOptions{.epsilon = 1e-6}}},
           {{.method = AdamOptions{}},
            {.method = AdamOptions{.second_moment = SecondMoment::minibatch}}},
           {{.method = RmspropOptions{}}, {.method = RmspropOptions{.alpha = 0.9}}},
           {{.method = RmspropOptions{}}, {.method = RmspropOptions{.centered = true}}},
           {{.method = AdagradOptions{}}, {.method = AdagradOptions{.lr_decay = 0.1}}},
           {{.method = AdagradOptions{}},
            {.method = AdagradOptions{.initial_accumulator = 0.1}}}}) {
    EXPECT_THAT(refusal(optimizer(plain), optimizer(changed)), HasSubstr("optimizer was "));
  }
  const auto lookahead = [](const LookaheadOptions& options) -> Change {
    return [options](auto& o) { o.lookahead = options; };
  };
  for (const LookaheadOptions& changed :
       {LookaheadOptions{.k = 3}, {.alpha = 0.8}, {.start = LookaheadStart::after_first_update}}) {
    EXPECT_THAT(refusal(lookahead({}), lookahead(changed)), HasSubstr("lookahead was "));
  }
  const auto group = [](const GroupOptions& options) -> Change {
    return [options](auto& o) {
      o.groups = {{.name = "all", .takes = [](const auto&) { return true; }, .options = options}};
    };
  };
  for (const GroupOptions& changed : {GroupOptions{.learning_rate_factor = 2},
                                      {.weight_decay = 0.1},
                                      {.momentum = 0.9},
                                      {.layer_wise = false}}) {
    EXPECT_THAT(refusal(group({}), group(changed)), HasSubstr("groups was "));
  }
  const auto fp16 = [](const LossScaleOptions& options) -> Change {
    return [options](auto& o) {
      o.torch.precision = Precision::fp16;
      o.torch.loss_scale = options;
    };
  };
  for (const LossScaleOptions& changed : {LossScaleOptions{.initial = 512},
                                          {.growth = 4},
                                          {.backoff = 0.25},
                                          {.interval = 7},
                                          {.smallest = 0.5}}) {
    EXPECT_THAT(refusal(fp16({}), fp16(changed)), HasSubstr("precision was "));
  }
}

// A trainer over the batch sizes of `rows`, of epochs of 12 minibatches.
TorchTrainer trainer_on_rows(const std::vector<std::int64_t>& rows, TraceEnd end,
                             std::int64_t epochs) {
  return TorchTrainer(builtin_model("softmax", {}), nll_loss(), test::digits(100),
                      test::trace_of(rows, end), small({.epochs = epochs}));
}

// Its state after `steps` steps.
State state_after(std::int64_t steps, const std::vector<std::int64_t>& rows, TraceEnd end) {
  TorchTrainer trainer = trainer_on_rows(rows, end, 9);
  test::train_until(trainer, steps);
  return trainer.state();
}

std::string error_loading(const State& state, const std::vector<std::int64_t>& rows, TraceEnd end) {
  TorchTrainer trainer = trainer_on_rows(rows, end, 9);
  return error_of([&] { trainer.load_state(state); });
}

TEST(Resume, IsBoundToTheRowsThatWereUsed) {
  const std::vector<std::int64_t> rows{16, 32, 40, 96, 8, 24};
  for (const std::int64_t steps : {1, 2, 3, 4, 5}) {
    const State state = state_after(steps, rows, TraceEnd::cycle);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::vector<std::int64_t> edited = rows;
      edited[row] += 8;
      if (edited[row] > 96) edited[row] = 88;
      const std::string error = error_loading(state, edited, TraceEnd::cycle);
      if (std::cmp_less(row, steps)) {
        EXPECT_THAT(error, HasSubstr("its batch sizes differ within the " + std::to_string(steps)))
            << row;
      } else {
        EXPECT_EQ(error, "no error") << "row " << row << " after " << steps << " steps";
      }
    }
    // A trace that goes on otherwise, and one that ends with what was used.
    std::vector<std::int64_t> cut(rows.begin(), rows.begin() + steps);
    EXPECT_EQ(error_loading(state, cut, TraceEnd::hold), "no error") << steps;
    cut.pop_back();
    if (!cut.empty()) {
      EXPECT_THAT(error_loading(state, cut, TraceEnd::stop),
                  HasSubstr("test trace, step " + std::to_string(steps) +
                            ": the trace is not that of the run"));
    }
  }
  EXPECT_THAT(
      error_loading(state_after(3, rows, TraceEnd::cycle), {16, 32, 8}, TraceEnd::hold),
      HasSubstr("differ within the 3 steps taken so far; accepted: the same up to here, and "
                "any rows after it"));
}

// As it would have trained on the longer or edited trace from the beginning.
TEST(Resume, GoesOnWithAnotherFuture) {
  const std::vector<std::int64_t> first{16, 32, 40, 96, 8};
  const std::vector<std::int64_t> second{16, 32, 40, 64, 8, 8, 24, 32};
  TorchTrainer whole = trainer_on_rows(second, TraceEnd::cycle, 4);
  whole.fit();
  for (const std::int64_t steps : {1, 2, 3}) {
    TorchTrainer trainer = trainer_on_rows(second, TraceEnd::cycle, 4);
    trainer.load_state(state_after(steps, first, TraceEnd::hold));
    trainer.fit();
    EXPECT_EQ(trainer.result().steps, whole.result().steps) << steps;
    EXPECT_TRUE(test::state_bytes(trainer) == test::state_bytes(whole)) << steps;
  }
}

// The part of an epoch was evaluated as it was; nothing can go on in it.
TEST(Resume, IsBoundToWhereEpochsEnded) {
  TorchTrainer short_of_rows = trainer_on_rows({96, 16, 32}, TraceEnd::stop, 9);
  short_of_rows.fit();
  ASSERT_EQ(short_of_rows.result().epochs, 1);
  const State state = short_of_rows.state();
  EXPECT_EQ(error_loading(state, {96, 16, 32}, TraceEnd::stop), "no error");
  EXPECT_EQ(error_loading(state, {96, 16, 32, 16}, TraceEnd::stop),
            "test trace, step 4: epoch 2 of the run ended before this step, and in this trace it "
            "continues; accepted: a trace in which it ends there, too");
  EXPECT_THAT(error_loading(state, {96, 16, 32}, TraceEnd::hold), HasSubstr("it continues"));
  // It was full because the next step did not fit, which no step has used.
  TorchTrainer full = trainer_on_rows({88, 16}, TraceEnd::hold, 1);
  full.fit();
  ASSERT_EQ(full.result().steps, 1);
  EXPECT_EQ(error_loading(full.state(), {88, 24, 8}, TraceEnd::hold), "no error");
  EXPECT_THAT(error_loading(full.state(), {88, 8}, TraceEnd::hold),
              HasSubstr("test trace, step 2: epoch 1 of the run ended before this step"));
}

// The trace has ended with an epoch: a longer one goes on.
TEST(Resume, GoesOnWhereTheTraceDoes) {
  const std::vector<std::int64_t> rows{96, 48, 48, 32, 64};
  TorchTrainer whole = trainer_on_rows(rows, TraceEnd::stop, 9);
  whole.fit();
  TorchTrainer first = trainer_on_rows({96, 48, 48}, TraceEnd::stop, 9);
  EXPECT_THAT(first.fit().stopped, HasSubstr("the trace ended after 3 steps"));
  TorchTrainer second = trainer_on_rows(rows, TraceEnd::stop, 9);
  second.load_state(first.state());
  EXPECT_EQ(second.fit().steps, 5);
  EXPECT_TRUE(test::state_bytes(second) == test::state_bytes(whole));
}

TEST(Resume, IsBoundToTheContentsOfTheData) {
  const TrainOptions options = small();
  const auto trainer_with = [&](TensorDataset train, TensorDataset test) {
    TorchTrainer trainer(builtin_model("softmax", {}), nll_loss(), std::move(train),
                         test::trace_of({16, 32}, TraceEnd::cycle), options);
    trainer.set_test(std::move(test));
    return trainer;
  };
  const auto good = [] { return test::digits(100); };
  const auto good_test = [] { return test::digits(50, 2); };
  const State state = trainer_with(good(), good_test()).state();
  const auto error = [&](TensorDataset train, TensorDataset test) {
    TorchTrainer other = trainer_with(std::move(train), std::move(test));
    return error_of([&] { other.load_state(state); });
  };
  EXPECT_EQ(error(good(), good_test()), "no error");
  const std::string refused =
      " data are not the data of the run; accepted: the same samples in the same order";
  EXPECT_EQ(error(good(), test::digits(50, 7)), "the test" + refused);
  // Other images, one pixel, one label, and the order.
  TensorDataset pixel = good();
  pixel.inputs.view(-1)[-1] += 1;
  TensorDataset label = good();
  label.targets[0] = 9 - label.targets[0];
  TensorDataset turned = good();
  turned.inputs = turned.inputs.flip(0);
  turned.targets = turned.targets.flip(0);
  for (const TensorDataset& other : {test::digits(100, 7), pixel, label, turned}) {
    EXPECT_EQ(error(other, good_test()), "the training" + refused);
  }
  // How they lie in memory does not matter.
  TensorDataset strided = good();
  strided.inputs = strided.inputs.transpose(2, 3).contiguous().transpose(2, 3);
  ASSERT_FALSE(strided.inputs.is_contiguous());
  EXPECT_EQ(error(strided, good_test()), "no error");
}

// Whoever has hashed the data already is believed, so that nobody hashes twice.
TEST(Resume, TakesAFingerprintThatIsThere) {
  TensorDataset data = test::digits(100);
  data.fingerprint = "mine";
  const auto trainer_with = [](const TensorDataset& train) {
    return TorchTrainer(builtin_model("softmax", {}), nll_loss(), train,
                        test::trace_of({16, 32}, TraceEnd::cycle), small());
  };
  const State state = trainer_with(data).state();
  EXPECT_EQ(state.text("data.train"), "mine");
  TensorDataset others = test::digits(100, 7);
  others.fingerprint = "theirs";
  TorchTrainer trainer = trainer_with(others);
  EXPECT_THAT(error_of([&] { trainer.load_state(state); }), HasSubstr("not the data of the run"));
}

// With the right checksum, but not what a trainer would write.
TEST(Resume, RefusesAStateThatIsNone) {
  TorchTrainer source =
      softmax_trainer(small({.rule = "adascale", .lookahead = LookaheadOptions{.k = 1}}));
  source.add_observer<test::Recorder>(
      [](Training& training, const StepRecord&) { training.pause(); });
  source.fit();
  const State good = source.state();
  const auto error = [&](const State& state) {
    TorchTrainer trainer =
        softmax_trainer(small({.rule = "adascale", .lookahead = LookaheadOptions{.k = 1}}));
    return error_of([&] {
      trainer.load_state(state);
      trainer.fit();
    });
  };
  EXPECT_EQ(error(good), "no error");
  // Without any one of its arrays.
  for (const auto& named : good.arrays()) {
    const State state = test::without_array(good, named.first);
    if (named.first.starts_with("epoch.") && named.first != "epoch.first_step") continue;
    // The states of older versions have none.
    if (named.first == "last_batch") continue;
    EXPECT_THAT(error(state), HasSubstr(named.first)) << named.first;
  }
  // With counts and numbers that are none.
  for (const auto& [name, array] : good.arrays()) {
    State state = test::without_array(good, name);
    if (name == "lookahead.slow") {
      state.put(name, std::vector<float>{1});
    } else if (array.type == ElementType::i64) {
      state.put(name, std::int64_t{-1});
    } else {
      state.put(name, std::numeric_limits<double>::quiet_NaN());
    }
    const bool plain = name == "iterations" || name == "train_seconds" ||
                       name == "epoch.loss_sum" || name == "epoch.train_seconds" ||
                       name == "lookahead.updates";
    if (plain) continue;
    EXPECT_NE(error(state), "no error") << name;
  }
}

}  // namespace
}  // namespace rubato
