// Remainder::carry: where the data are no multiple of the minibatch, the last minibatch of a
// training has what is left of them, and counts for so many samples.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/testing.hpp>

#include "support/matchers.hpp"
#include "support/recorded.hpp"
#include "train/around.hpp"

namespace rubato {
namespace {

// Of ten samples 0, 1, 4, 9, ...: half the squared distance to them in one dimension, and its
// square in another.
std::unique_ptr<ObjectiveOf<double>> distances() {
  return function_objective<double>(
      {.initial = {1, -2},
       .samples = 10,
       .value_and_gradient = [](std::span<const double> at, std::span<const std::int64_t> samples,
                                std::span<double> gradient) {
         double loss = 0;
         const auto count = static_cast<double>(samples.size());
         for (const std::int64_t sample : samples) {
           const auto place = static_cast<double>(sample * sample) / 10;
           for (std::size_t i = 0; i < at.size(); ++i) {
             loss += (at[i] - place) * (at[i] - place) / 2 / count;
             gradient[i] += (at[i] - place) / count;
           }
         }
         return loss;
       }});
}

struct Trained {
  std::vector<StepRecord> steps;
  std::vector<double> parameters;
};

// All ten samples in one step of minibatches of that size.
Trained trained_at_once(std::int64_t minibatch, const std::function<void(TrainOptions&)>& change) {
  TrainOptions options{.epochs = 1,
                       .minibatch_size = minibatch,
                       .remainder = Remainder::carry,
                       .reference_batch_size = 4,
                       .rule = "linear",
                       .cores = 2,
                       .threads = 2};
  change(options);
  Trainer trainer(distances(), test::trace_of({12}), options);
  const auto recorder = test::recorded(trainer);
  const auto values = trainer.parameters().front().values<double>();
  return {.steps = recorder->steps, .parameters = {values.begin(), values.end()}};
}

// In minibatches of 4, 4 and 2 samples they are the same step as in five of 2.
TEST(LastMinibatch, CountsForTheSamplesThatItHas) {
  const std::vector<std::function<void(TrainOptions&)>> changes{
      [](TrainOptions&) {},
      [](TrainOptions& options) { options.clip_norm = 0.01; },
      [](TrainOptions& options) { options.clip_value = 0.001; },
      [](TrainOptions& options) { options.optimizer.method = AdamOptions{}; },
      [](TrainOptions& options) { options.optimizer.method = LarsOptions{.trust = 0.1}; },
      [](TrainOptions& options) {
        options.gradient_transforms = {function_transform("none", [](const auto&, Workers&) {})};
      }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    const Trained short_one = trained_at_once(4, changes[i]);
    const Trained whole = trained_at_once(2, changes[i]);
    ASSERT_EQ(short_one.steps.size(), 1U);
    const StepRecord& step = short_one.steps.front();
    EXPECT_EQ(step.plan.batch_size, 10);
    EXPECT_EQ(step.plan.minibatches, 3);
    EXPECT_EQ(step.scale, 2.5);
    EXPECT_EQ(step.learning_rate, whole.steps.front().learning_rate);
    EXPECT_NEAR(step.loss, whole.steps.front().loss, 1e-12);
    EXPECT_THAT(short_one.parameters, Pointwise(DoubleNear(1e-12), whole.parameters));
  }
}

// A rule that applies the sum of the minibatches' gradients, at the rate of one of them.
TEST(LastMinibatch, IsItsPartOfASum) {
  const auto change = [](TrainOptions& options) {
    options.rule = "linear-momentum";
    options.optimizer.weight_decay = 0.1;
  };
  EXPECT_THAT(trained_at_once(4, change).parameters,
              Pointwise(DoubleNear(1e-12), trained_at_once(2, change).parameters));
}

// What an observer sees is the mean. Of the noise it says nothing: its own is another one.
TEST(LastMinibatch, IsPartOfTheMean) {
  class Gradients final : public Observer {
   public:
    bool wants_gradients(const StepPlan&) const override { return true; }
    void on_gradients(Training&, const StepPlan&, std::span<const NamedArray> gradients) override {
      const auto values = gradients.front().values<double>();
      seen.assign(values.begin(), values.end());
    }
    std::vector<double> seen;
  };
  TrainOptions options{.epochs = 1,
                       .minibatch_size = 4,
                       .remainder = Remainder::carry,
                       .reference_batch_size = 128,
                       .rule = "adascale",
                       .log_noise = true,
                       .log_minibatches = true};
  Trainer trainer(distances(), test::trace_of({12}), options);
  const auto gradients = trainer.add_observer<Gradients>();
  const auto recorder = test::recorded(trainer);
  // The mean of 0, 1, 4, ..., 81 is 28.5.
  EXPECT_THAT(gradients->seen,
              ElementsAre(DoubleNear(1 - 2.85, 1e-12), DoubleNear(-2 - 2.85, 1e-12)));
  const StepRecord& step = recorder->steps.front();
  ASSERT_TRUE(step.gradient_norm);
  EXPECT_NEAR(*step.gradient_norm, std::hypot(1 - 2.85, -2 - 2.85), 1e-12);
  EXPECT_EQ(step.noise_scale, std::nullopt);
  EXPECT_EQ(step.measured_gain, std::nullopt);
  EXPECT_EQ(step.gain, 10 / 128.0);
  // Of the minibatches themselves.
  double loss = 0;
  for (const MinibatchRecord& minibatch : step.minibatches) {
    loss += minibatch.loss * (minibatch.minibatch.value() == 2 ? 2 : 4) / 10;
  }
  EXPECT_NEAR(loss, step.loss, 1e-12);
}

// A model that cannot do with so few samples is found before anything is trained.
TEST(LastMinibatch, IsTriedOut) {
  class Trying final : public test::Around {
   public:
    explicit Trying(std::shared_ptr<std::vector<std::int64_t>> tried)
        : Around(distances()), tried_(std::move(tried)) {}
    void try_out(std::int64_t minibatch_size) override { tried_->push_back(minibatch_size); }

   private:
    std::shared_ptr<std::vector<std::int64_t>> tried_;
  };
  const auto tried = [](Remainder remainder, std::int64_t epochs) {
    auto sizes = std::make_shared<std::vector<std::int64_t>>();
    TrainOptions options{.epochs = epochs, .minibatch_size = 4, .remainder = remainder};
    Trainer trainer(std::make_unique<Trying>(sizes), test::trace_of({8}), options);
    trainer.fit();
    return *sizes;
  };
  EXPECT_THAT(tried(Remainder::carry, 1), ElementsAre(4, 2));
  EXPECT_THAT(tried(Remainder::carry, 2), ElementsAre(4));
  EXPECT_THAT(tried(Remainder::drop, 1), ElementsAre(4));
}

// A source hears what its steps had, not what it has asked for.
TEST(LastMinibatch, IsWhatItsSourceHearsOf) {
  class Listening final : public StepSource {
   public:
    explicit Listening(std::shared_ptr<std::vector<std::int64_t>> heard)
        : heard_(std::move(heard)) {}
    std::optional<TraceStep> next(const SourceProgress&) const override {
      return TraceStep{.batch_size = 8};
    }
    void taken(const TraceStep& step, const SourceProgress&) override {
      heard_->push_back(step.batch_size);
    }
    std::int64_t max_batch() const override { return 8; }

   private:
    std::shared_ptr<std::vector<std::int64_t>> heard_;
  };
  auto heard = std::make_shared<std::vector<std::int64_t>>();
  TrainOptions options{.epochs = 1, .minibatch_size = 4, .remainder = Remainder::carry};
  Trainer(distances(), std::make_unique<Listening>(heard), options).fit();
  EXPECT_THAT(*heard, ElementsAre(8, 2));
}

}  // namespace
}  // namespace rubato
