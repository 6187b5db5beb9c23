// Whether a run is allowed, stage by stage.

#include "runs/config/allowed.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <gmock/gmock.h>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/step_source.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

KnownData images() {
  return {.has_test = true, .classes = 10, .dimensions = 3};
}

std::string error_with(const RunConfiguration& run, const KnownData& data) {
  return error_of([&] { require_data(run, data); });
}

TEST(Allowed, NamesTheOptionAndWhatIsAccepted) {
  EXPECT_EQ(error_of([] { refuse("loss nll", "no", "yes"); }), "--loss nll: no; accepted: yes");
}

TEST(Allowed, AsksDataForWhatModelsAreMadeFor) {
  EXPECT_EQ(error_with({}, images()), "no error");
  KnownData data = images();
  data.dimensions = 4;
  EXPECT_THAT(error_with({}, data), StartsWith("--model mnist-cnn: samples of 4 dimensions; "));
  EXPECT_EQ(error_with({.model = "mlp"}, data), "no error");
  EXPECT_EQ(error_with({.model = "script:any.pt"}, data), "no error");
  data = images();
  data.has_one_target = false;
  data.targets = 3;
  EXPECT_THAT(error_with({}, data), StartsWith("--model mnist-cnn: it takes one class"));
  data.has_tokens = true;
  data.dimensions = 1;
  EXPECT_THAT(error_with({.model = "transformer"}, data),
              StartsWith("--model transformer: the tokens of digits are not sequences"));
  data.vocabulary = 5;
  EXPECT_EQ(error_with({.model = "transformer"}, data), "no error");
  EXPECT_THAT(error_with({.model = "softmax"}, data),
              StartsWith("--model softmax: it takes one class"));
}

TEST(Allowed, AsksDataForWhatOptionsNeed) {
  KnownData data = images();
  data.classes = 0;
  EXPECT_THAT(error_with({}, data), StartsWith("--model mnist-cnn: it tells classes apart"));
  EXPECT_EQ(error_with({.model = "mlp"}, data), "no error");
  EXPECT_EQ(error_with({.model = "mlp", .loss = "nll"}, data),
            "--loss nll: the targets of digits are real numbers, and integers would be classes; "
            "accepted: mse, "
            "bce or script:FILE");
  EXPECT_THAT(error_with({.model = "mlp", .label_smoothing = 0.1}, data),
              StartsWith("--label-smoothing: "));
  EXPECT_THAT(error_with({.model = "mlp", .top_k = 2}, data), StartsWith("--top-k: the targets"));
  data.probabilities = true;
  RunConfiguration soft{.loss = "cross-entropy", .label_smoothing = 0.1};
  soft.target_accuracy = AccuracyTarget{.percent = 90};
  EXPECT_EQ(error_with(soft, data), "no error");
  soft.metric = "accuracy+top-k:k=2";
  EXPECT_EQ(error_with(soft, data), "no error");
  soft.metric = "perplexity";
  EXPECT_EQ(error_with(soft, data),
            "--metric perplexity: the targets of digits are probabilities, and not the numbers of "
            "classes; accepted: accuracy and top-k, which take the largest as the class");
  soft.metric = "mse";
  EXPECT_THAT(error_with(soft, data), StartsWith("--metric mse: the targets of digits are prob"));
  EXPECT_EQ(error_with({.loss = "cross-entropy:ignore=3"}, data),
            "--loss cross-entropy:ignore=3: the targets of digits are probabilities, and not the "
            "numbers of classes; accepted: without ignore");
  data = images();
  data.has_test = false;
  EXPECT_THAT(error_with({.patience = 1}, data), StartsWith("--patience: there is no test set"));
  EXPECT_EQ(error_with({.watch = "train-loss", .patience = 1}, data), "no error");
  data.dimensions = 1;
  data.description = "of 2 features";
  EXPECT_THAT(error_with({.model = "mlp", .augment = "flip"}, data),
              StartsWith("--augment flip: the samples of digits, of 2 features, are not images"));
}

std::string error_of_steps(const RunConfiguration& run, const RunSteps& steps,
                           std::optional<std::int64_t> samples, bool* asked = nullptr) {
  return error_of([&] {
    require_steps(run, {.steps = steps, .samples = samples, .source = [&] {
                          if (asked != nullptr) *asked = true;
                          return std::unique_ptr<StepSource>();
                        }});
  });
}

TEST(Allowed, AsksATraceForAllEpochs) {
  const RunSteps steps = Trace({{64, {}}, {64, {}}}, TraceEnd::error, "two");
  EXPECT_EQ(error_of_steps({.epochs = 2}, steps, 64), "no error");
  EXPECT_NE(error_of_steps({.epochs = 3}, steps, 64), "no error");
  EXPECT_EQ(error_of_steps({.epochs = 3}, steps, {}), "no error") << "nobody knows the samples yet";
}

TEST(Allowed, AsksPoliciesForRoomAlone) {
  const RunSteps steps = Trace::constant(64);
  const RunConfiguration run{.batch = "noise-scale:max=128"};
  bool asked = false;
  EXPECT_EQ(error_of_steps(run, steps, 128, &asked), "no error");
  EXPECT_TRUE(asked) << "which may refuse the steps";
  EXPECT_THAT(error_of_steps(run, steps, 96),
              StartsWith("--batch noise-scale:max=128: a batch of 128 samples is larger than an "
                         "epoch (96); accepted: batches of at most 96"));
}

// As long as a training is, its start takes no longer than that of 100,000 steps.
TEST(Allowed, LooksForTheEndOfAnAvailabilityInTheFirstSteps) {
  const RunSteps steps = Zones(Availability({{0, 4}}, 3600, "cloud", TraceEnd::error));
  std::int64_t asked = 0;
  const auto error_with_steps_of = [&](double seconds, std::int64_t epochs) {
    asked = 0;
    return error_of([&] {
      require_steps({.epochs = epochs},
                    {.steps = steps, .samples = 64, .source = [&] {
                       return std::make_unique<ClockedSource>(
                           std::get<Zones>(steps),
                           [&asked](std::int64_t devices, const SourceProgress&) {
                             ++asked;
                             return TraceStep{.batch_size = 64, .cores = devices};
                           },
                           ClockOptions{.cluster = {.substep_seconds = seconds}, .max_batch = 64});
                     }});
    });
  };
  EXPECT_THAT(error_with_steps_of(1, 1'000'000), HasSubstr("the availability ends at 3600 s"));
  EXPECT_EQ(error_with_steps_of(1, 1000), "no error");
  EXPECT_EQ(error_with_steps_of(1e-6, 1'000'000), "no error");
  EXPECT_GE(asked, 100'000);
  EXPECT_LT(asked, 500'000);
}

}  // namespace
}  // namespace rubato
