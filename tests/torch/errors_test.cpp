// What goes wrong in the middle of a training says where; what cannot work is found before it
// begins.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/loop/objective.hpp>

#include "base/core/limits.hpp"
#include "small_run.hpp"
#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::Net;
using test::options_of;

// The parts of a training, each of which may be made to fail.
struct Parts {
  ModelFactory model = model_factory<Net>();
  Loss loss = cross_entropy_loss();
  TensorDataset train = dataset();
  TensorDataset test = dataset();
  test::AllOptions options = [] {
    TrainOptions alone = options_of();
    alone.threads = 1;
    return alone;
  }();

  explicit Parts(Precision precision = Precision::full) {
    options.torch.precision = precision;
    if (precision == Precision::full) return;
    model = model_factory<Net>(at::kFloat);
    train = test = dataset(at::kFloat);
  }
};

TorchTrainer trainer_of(const Parts& parts) {
  // Steps of 2 and 4 minibatches: two epochs of twelve.
  TorchTrainer trainer(parts.model, parts.loss, parts.train,
                       test::trace_of({8, 16}, TraceEnd::cycle), parts.options,
                       parts.options.torch);
  trainer.set_test(parts.test);
  return trainer;
}

// Calls `fail` at the call of that number, from 0.
std::function<void()> at_call(int number, std::function<void()> fail) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  return [=] {
    if (calls->fetch_add(1) == number) fail();
  };
}

// The first call is the trial's; three steps of 2, 4 and 2 minibatches follow.
constexpr int kThirdOfSecondStep = 1 + 2 + 2;

struct MyOwn : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TrainingError training_error_of(TorchTrainer& trainer) {
  try {
    trainer.fit();
  } catch (const TrainingError& error) {
    return error;
  }
  throw std::logic_error("no training error");
}

// Parts of which that phase calls `fail`.
Parts failing_in(Phase phase, const std::function<void()>& fail,
                 Precision precision = Precision::full) {
  Parts parts(precision);
  if (phase == Phase::data) {
    parts.options.torch.augment = [=](const at::Tensor& inputs) {
      fail();
      return inputs;
    };
  } else if (phase == Phase::forward) {
    parts.model = [=, make = parts.model] {
      Model model = make();
      model.forward = [=, forward = model.forward](const at::Tensor& input) {
        fail();
        return forward(input);
      };
      return model;
    };
  } else {
    parts.loss = [=, loss = parts.loss](const at::Tensor& output, const at::Tensor& target) {
      if (phase == Phase::loss) fail();
      if (phase == Phase::backward && output.requires_grad()) {
        output.register_hook([=](const at::Tensor&) { fail(); });
      }
      return loss(output, target);
    };
  }
  return parts;
}

TEST(TrainingErrors, SayWhereAndWhatWasDone) {
  // The trial of the test data is a forward and a loss of a minibatch and of all samples, too, and
  // that of the training data a loss of both halves.
  for (const Precision precision : {Precision::full, Precision::fp16}) {
    for (const auto& [phase, further] :
         {std::pair{Phase::data, 0}, {Phase::forward, 2}, {Phase::loss, 4}, {Phase::backward, 0}}) {
      const auto fail = at_call(kThirdOfSecondStep + further, [] { throw MyOwn("it is so"); });
      TorchTrainer trainer = trainer_of(failing_in(phase, fail, precision));
      const TrainingError error = training_error_of(trainer);
      EXPECT_EQ(error.what(), std::string(choice_name(kPhases, phase)) +
                                  " of minibatch 3 of 4 at epoch 1, step 2 of the run: it is so");
      EXPECT_EQ(error.phase(), phase);
      EXPECT_EQ(error.details(), "it is so");
      EXPECT_THROW(std::rethrow_if_nested(error), MyOwn);
      EXPECT_EQ(trainer.evaluate(Parts(precision).test).samples, 48) << "it can still be used";
    }
  }
  const auto fail = at_call(kThirdOfSecondStep + 4, [] { throw 42; });
  TorchTrainer trainer = trainer_of(failing_in(Phase::loss, fail));
  EXPECT_THAT(training_error_of(trainer).what(),
              HasSubstr("step 2 of the run: an exception that is not a std::exception"));
}

TEST(TrainingErrors, OfEvaluationsSayWhen) {
  Parts parts;
  const auto fail = at_call(4, [] { throw MyOwn("no"); });
  TorchTrainer trainer = trainer_of(parts);
  trainer.set_test(dataset(),
                   [=, loss = parts.loss](const at::Tensor& output, const at::Tensor& target) {
                     fail();
                     return loss(output, target);
                   });
  static_cast<void>(trainer.evaluate(dataset()));
  static_cast<void>(trainer.evaluate(dataset()));
  // Then the trial's, of a minibatch and of all samples.
  EXPECT_EQ(error_of([&] { trainer.fit(); }),
            "evaluation of samples 1 to 48 of the test data after epoch 1: no");
}

TEST(TrainingErrors, AreLibtorchsFirstLineWithoutItsStack) {
  const auto fail = at_call(kThirdOfSecondStep, [] {
    static_cast<void>(at::matmul(at::ones({4, 6}), at::ones({5, 3})));
  });
  TorchTrainer trainer = trainer_of(failing_in(Phase::data, fail));
  const TrainingError error = training_error_of(trainer);
  EXPECT_THAT(
      error.what(),
      AllOf(StartsWith("data of minibatch 3 of 4 at epoch 1, step 2 of the run: mat1 and mat2 "
                       "shapes cannot be multiplied (4x6 and 5x3)"),
            Not(HasSubstr("\n")), Not(HasSubstr("Exception raised from"))));
  EXPECT_THAT(error.details(), HasSubstr("Exception raised from"));
  EXPECT_THROW(std::rethrow_if_nested(error), c10::Error);
}

TEST(TrainingErrors, OfMemoryStayWhatTheyAre) {
  const auto train = [](const std::function<void()>& fail) {
    trainer_of(failing_in(Phase::data, at_call(kThirdOfSecondStep, fail))).fit();
  };
  EXPECT_THROW(train([] { throw std::bad_alloc(); }), std::bad_alloc);
  const auto allocate = [] { static_cast<void>(at::empty({std::int64_t{1} << 60})); };
  EXPECT_THROW(train(allocate), c10::Error);
  try {
    train(allocate);
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_FALSE(is_out_of_memory(MyOwn("no")));
}

// What a trainer says that cannot work; and that it has not begun.
std::string trial_of(const Parts& parts) {
  TorchTrainer trainer = trainer_of(parts);
  const std::string before = test::state_bytes(trainer);
  const auto recorder = trainer.add_observer<test::Recorder>();
  std::string message = error_of([&] { trainer.fit(); });
  EXPECT_TRUE(recorder->begun.empty());
  EXPECT_TRUE(test::state_bytes(trainer) == before);
  return message;
}

TEST(Trial, FindsWrongShapesAndTypes) {
  Parts shapes;
  shapes.train.inputs = at::randn({48, 7}, at::kDouble);
  EXPECT_THAT(
      trial_of(shapes),
      StartsWith("forward of a minibatch of the training data, tried before training (inputs "
                 "Double [4, 7], targets Long [4] from 0 to 2): mat1 and mat2 shapes"));
  Parts types;
  types.train.inputs = types.train.inputs.to(at::kFloat);
  EXPECT_THAT(trial_of(types),
              StartsWith("forward of a minibatch of the training data, tried before "
                         "training (inputs Float [4, 6], "));
  Parts targets;
  targets.train.targets = at::randn({48}, at::kDouble);
  EXPECT_THAT(
      trial_of(targets),
      StartsWith(
          "loss of a minibatch of the training data, tried before "
          "training (inputs Double [4, 6], targets Double [4], which are real numbers: classes are "
          "integers): "));
  Parts test;
  test.test.inputs = at::randn({48, 5}, at::kDouble);
  EXPECT_THAT(
      trial_of(test),
      StartsWith("evaluation of a minibatch of the test data, tried before training (inputs "
                 "Double [4, 5], "));
}

// Weights would depend on the size of a minibatch.
TEST(Trial, RefusesALossThatIsASum) {
  const auto said = [](std::int64_t reduction) {
    Parts parts;
    parts.loss = [reduction](const at::Tensor& output, const at::Tensor& target) {
      return at::cross_entropy_loss(output, target, {}, reduction);
    };
    return error_of([&] { trainer_of(parts).fit(); });
  };
  EXPECT_THAT(said(at::Reduction::Sum),
              AllOf(StartsWith("loss of a minibatch of the training data, tried"),
                    HasSubstr("the loss is the sum over a minibatch, as of reduction=\"sum\", so "
                              "that weights would depend on its size; accepted: the mean, or two "
                              "numbers, a sum and its weight")));
  EXPECT_EQ(said(at::Reduction::Mean), "no error");
}

// A forward() with view(32, 2) fails where fewer are left.
TEST(Trial, TakesEveryNumberOfSamplesThatATestTakes) {
  struct OfSomeSizes : Net {
    at::Tensor forward(const at::Tensor& x) {
      if (x.size(0) == 250 || x.size(0) == 5) throw Error(std::to_string(x.size(0)));
      return Net::forward(x);
    }
  };
  Parts parts;
  parts.model = model_factory<OfSomeSizes>();
  EXPECT_EQ(error_of([&] { trainer_of(parts).fit(); }), "no error");
  for (const std::int64_t size : {500, 205, 5}) {
    parts.test = {.inputs = at::randn({size, 6}, at::kDouble),
                  .targets = at::zeros({size}, at::kLong)};
    const std::string wrong = size == 500 ? "250" : "5";
    if (size == 205) {
      EXPECT_EQ(error_of([&] { trainer_of(parts).fit(); }), "no error");
      continue;
    }
    EXPECT_THAT(
        trial_of(parts),
        AllOf(StartsWith("evaluation of a minibatch of the test data, tried before training "
                         "(inputs Double [" +
                         wrong + ", 6]"),
              HasSubstr(": " + wrong)));
  }
}

TEST(Trial, FindsTheOneTargetThatIsOutOfRange) {
  for (const std::int64_t minibatch : {1, 4}) {
    for (const std::int64_t bad : {3, -1}) {
      const char* const why = bad < 0 ? "a target is -1, which is not a class" : "out of bounds";
      Parts parts;
      parts.options.minibatch_size = minibatch;
      parts.train.targets = parts.train.targets.clone();
      parts.train.targets[41] = bad;
      EXPECT_THAT(trial_of(parts),
                  AllOf(StartsWith("loss of a minibatch of the training data, tried"),
                        HasSubstr(bad < 0 ? " from -1 to 2)" : " from 0 to 3)"), HasSubstr(why)));
      Parts test;
      test.options.minibatch_size = minibatch;
      test.test.targets = parts.train.targets;
      EXPECT_THAT(trial_of(test),
                  AllOf(StartsWith("evaluation of a minibatch of the test data"), HasSubstr(why)));
    }
  }
}

// Numbers whose model gives one for each sample.
Parts of_numbers(const std::vector<std::int64_t>& targets, Loss loss) {
  Parts parts;
  const auto numbers = at::TensorOptions().dtype(at::kDouble);
  parts.train = {.inputs = at::randn({48, 6}, numbers), .targets = at::randn(targets, numbers)};
  parts.test = parts.train;
  parts.loss = std::move(loss);
  parts.model = [] {
    auto net = std::make_shared<torch::nn::LinearImpl>(6, 1);
    net->to(at::kDouble);
    return make_model(net);
  };
  return parts;
}

at::Tensor squares(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().mean();
}

// Each output would be compared with all targets, which trains to another model without a word.
TEST(Trial, FindsOutputsThatAreComparedWithTheTargetsOfOthers) {
  EXPECT_THAT(trial_of(of_numbers({48}, Loss(squares))),
              HasSubstr(": outputs of [4, 1] and targets of [4] are compared each with each by the "
                        "loss; accepted: targets of the outputs' shape"));
  EXPECT_THAT(trial_of(of_numbers({48}, mse_loss())),
              HasSubstr("mse compares outputs and targets one by one"));
  // The loss may see to the shapes, and take several targets for one output.
  for (const Loss& loss : {Loss([](const at::Tensor&output, const at::Tensor&target) {
                             return squares(output.squeeze(1), target);
                           }),
                           Loss([](const at::Tensor&output, const at::Tensor&target) {
                             return squares(output, target.unsqueeze(1));
                           })}) {
    EXPECT_EQ(error_of([&] { trainer_of(of_numbers({48}, loss)).fit(); }), "no error");
  }
  EXPECT_EQ(error_of([&] { trainer_of(of_numbers({48, 3}, Loss(squares))).fit(); }), "no error");
  EXPECT_EQ(error_of([&] { trainer_of(of_numbers({48, 1}, Loss(squares))).fit(); }), "no error");
}

// As torch.nn.functional does it.
TEST(Trial, FindsALossThatWarnsOfShapes) {
  const Loss warning([](const at::Tensor& output, const at::Tensor& target) {
    TORCH_WARN("Using a target size (", target.sizes(), ") that is different to the input size");
    return squares(output, target);
  });
  EXPECT_THAT(trial_of(of_numbers({48, 3}, warning)),
              HasSubstr(": outputs of [4, 1] and targets of [4, 3] are broadcast by the loss"));
}

// Counts its forwards where nobody sees it, and where all do.
struct Counted : torch::nn::Module {
  std::shared_ptr<Net> net = register_module("net", std::make_shared<Net>());
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(6));
  int calls = 0;

  Counted() { to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    return net->forward(norm(x) + at::rand_like(x));
  }
};

TEST(Trial, ChangesNothing) {
  std::vector<std::shared_ptr<Counted>> instances;
  Parts parts;
  parts.options.epochs = 1;
  parts.model = [&] {
    instances.push_back(std::make_shared<Counted>());
    return make_model(instances.back());
  };
  TorchTrainer trainer(parts.model, parts.loss, parts.train, Trace::constant(8), parts.options);
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor before = generator.get_state();
  trainer.fit();
  EXPECT_TRUE(at::equal(generator.get_state(), before));
  ASSERT_EQ(instances.size(), 2U);
  EXPECT_EQ(instances[0]->calls, 12);
  EXPECT_EQ(instances[1]->calls, 1);
  for (const NamedTensor& named : trainer.buffers()) {
    if (named.name != "norm.num_batches_tracked") continue;
    EXPECT_EQ(named.tensor.item<std::int64_t>(), 12);
  }
  // And is made once.
  trainer.fit();
  EXPECT_EQ(instances.size(), 2U);
}

TEST(ModelFactories, MakeANewInstanceAtEachCall) {
  Parts parts;
  parts.model = [model = make_model(std::make_shared<Net>())] { return model; };
  EXPECT_EQ(error_of([&] { trainer_of(parts).fit(); }), "no error") << "one thread needs but one";
  parts.options.threads = 2;
  EXPECT_EQ(error_of([&] { trainer_of(parts); }),
            "the model factory gave the same instance twice; accepted: a new one at each call");
}

}  // namespace
}  // namespace rubato
