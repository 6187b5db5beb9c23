// The models that need no libtorch, by name.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "data/archive_files.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/run/workload/run_data.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

Trainer trainer_of(const RunConfiguration& configuration) {
  const auto workload = dense_workload(configuration);
  return make_trainer(*workload, configuration, std::make_unique<TraceSource>(Trace::constant(64)),
                      train_options(configuration));
}

std::vector<std::string> shapes_of(const Trainer& trainer) {
  std::vector<std::string> shapes;
  for (const NamedArray& array : trainer.parameters()) {
    std::string text = array.name;
    for (const std::int64_t extent : array.shape) text += " " + std::to_string(extent);
    shapes.push_back(text);
  }
  return shapes;
}

TEST(DenseWorkload, HasTheModelsOfItsNames) {
  EXPECT_THAT(shapes_of(trainer_of({.model = "softmax"})),
              ElementsAre("linear.weight 10 784", "linear.bias 10"));
  EXPECT_THAT(shapes_of(trainer_of({.model = "mlp"})),
              ElementsAre("linear1.weight 128 784", "linear1.bias 128", "linear2.weight 64 128",
                          "linear2.bias 64", "linear3.weight 10 64", "linear3.bias 10"));
  EXPECT_THAT(shapes_of(trainer_of({.model = "mlp:hidden=7,activation=tanh"})),
              ElementsAre("linear1.weight 7 784", "linear1.bias 7", "linear2.weight 10 7",
                          "linear2.bias 10"));
  EXPECT_THAT(shapes_of(trainer_of({.model = "quadratic:dim=6"})), ElementsAre("parameters 6"));
}

TEST(DenseWorkload, SaysWhatItTrains) {
  const auto digits = dense_workload({.model = "softmax"});
  EXPECT_EQ(digits->description(),
            "softmax on digits: 12000 training and 2000 test images of 1 x 28 x 28 in 10 classes");
  EXPECT_EQ(digits->samples(), 12'000);
  EXPECT_EQ(digits->engine().engine, "eigen");
  EXPECT_EQ(digits->warning(), "");
  const auto quadratic = dense_workload({.model = "quadratic:dim=3"});
  EXPECT_EQ(quadratic->description(), "quadratic:dim=3: 3 parameters, 10000 samples");
  EXPECT_EQ(error_of([] { return dense_workload({.model = "toy-net"}); }),
            "Eigen does not compute the model toy-net; accepted: softmax, mlp, quadratic");
}

// The activation reaches the network.
TEST(DenseWorkload, ComputesAsItsArgumentsSay) {
  RunConfiguration configuration{.model = "mlp:hidden=16", .epochs = 1};
  const auto loss = [&] {
    Trainer trainer = trainer_of(configuration);
    return trainer.fit().final_test.value().loss;
  };
  const double relu = loss();
  configuration.model = "mlp:hidden=16,activation=tanh";
  EXPECT_NE(loss(), relu);
  EXPECT_LT(relu, 2) << "it learns";
}

TEST(Workload, RefusesPatternsThatNameNothing) {
  EXPECT_THAT(error_of([] {
                return trainer_of({.model = "softmax", .weight_decay = 0.1, .no_decay = "conv*"});
              }),
              StartsWith("--no-decay: "));
  EXPECT_THAT(
      error_of([] {
        return trainer_of({.model = "softmax", .rate_factors = {{"linear.*", 2}, {"conv*", 0}}});
      }),
      StartsWith("--lr-for: no parameter matches 'conv*'"));
  EXPECT_EQ(error_of([] {
              return trainer_of({.model = "quadratic", .rate_factors = {{"vectors", 2}}});
            }),
            "no error");
}

// What a simulation knows of a model without it.
TEST(DenseWorkload, HasGradientsOfTheSizeThatTheTableOfModelsSays) {
  for (const char* model :
       {"softmax", "mlp", "mlp:hidden=32/16", "quadratic", "quadratic:dim=77"}) {
    const Parsed<ModelChoice> choice = model;
    EXPECT_EQ(dense_workload({.model = choice})->gradient_bytes(),
              4 * choice->parameters(choice->options, {}))
        << model;
  }
}

// Other data than those of a run, as its model takes them.
class RecordedData : public testing::Test {
 protected:
  // What a run on `data` keeps of them.
  void record(const std::string& data) const {
    const RunConfiguration run{.data = data, .model = "transformer"};
    write_file(folder_.path() / kDataRecordFile, data_record(run, load_data(run)));
  }
  [[nodiscard]] std::string error(const std::string& data, bool labels) const {
    return error_of([&] {
      return load_recorded_data(folder_.path(), {.data = data, .model = "transformer"}, labels);
    });
  }
  // As many targets as inputs.
  [[nodiscard]] std::string tensors(const std::vector<std::int64_t>& shape,
                                    const std::vector<std::int64_t>& inputs) const {
    return "tensors:" +
           folder_
               .write("x.npz", test::zip_of({{"x.npy", test::npy_of("<i8", shape, inputs)},
                                             {"y.npy", test::npy_of("<i8", shape, inputs)}}))
               .string();
  }

  const test::TempFolder folder_;
};

TEST_F(RecordedData, HaveNoTokenThatTheModelDoesNotKnow) {
  record(tensors({2, 2}, {0, 1, 2, 4}));
  EXPECT_EQ(error(tensors({1, 2}, {4, 0}), false), "no error");
  EXPECT_THAT(error(tensors({1, 2}, {5, 0}), false), HasSubstr("accepted: 0 to 4"));
}

TEST_F(RecordedData, AreOfTheShapeOfThoseThatWereTrainedOn) {
  record(tensors({2, 2}, {0, 1, 2, 4}));
  EXPECT_THAT(error(tensors({1, 3}, {4, 0, 1}), false),
              HasSubstr("of shape [3]; accepted: those that the model was trained on, of shape "
                        "[2]"));
}

// What is predicted needs no labels; those of these ten digits would be of no use.
TEST_F(RecordedData, HaveKnownClassesWhereLabelsAreAskedFor) {
  record("digits");
  std::string json = read_file(folder_.path() / kDataRecordFile);
  const std::string ten = R"("classes": 10)";
  write_file(folder_.path() / kDataRecordFile,
             json.replace(json.find(ten), ten.size(), R"("classes": 5)"));
  EXPECT_EQ(error("digits", false), "no error");
  EXPECT_NE(error("digits", true), "no error");
}

}  // namespace
}  // namespace rubato
