// This file makes objectives of data sets and widths; dense_pass.cpp and kernels/ do the
// arithmetic. One class, DenseNetwork, is softmax regression, least squares and multi-layer
// perceptron: the data determine the loss, and the three makers differ only in what they refuse.
// The parameters of all layers lie in one flat array, and DenseModel has their offsets and the
// kernels for the instruction set of this process. begin_minibatches() packs the weights once for
// all passes of a step; evaluators see the panels through their reference to the model, and after
// end_minibatches() there are none, so tests pack what they need themselves.

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/eigen.hpp>

#include "base/core/throw_error.hpp"
#include "dense_parameters.hpp"
#include "dense_pass.hpp"

namespace rubato {

namespace {

template <class T>
class DenseEvaluator final : public Evaluator<T> {
 public:
  DenseEvaluator(const DenseModel<T>& model, const FlatParameters<T>& parameters,
                 const DenseDataset<T>& train)
      : pass_(model), parameters_(parameters), train_(train) {}

  double evaluate(const Minibatch& minibatch, const Leaf<T>& leaf,
                  EvaluatorProgress& progress) override {
    progress.enter(Phase::data);
    pass_.gather(train_, minibatch.samples);
    progress.enter(Phase::forward);
    pass_.forward();
    progress.enter(Phase::loss);
    const double loss = pass_.loss();
    progress.enter(Phase::backward);
    backward(leaf);
    return loss;
  }

  void evaluate_several(std::span<const Minibatch> minibatches, const Leaf<T>& leaf,
                        std::span<double> losses, EvaluatorProgress& progress) override {
    progress.enter(Phase::data);
    samples_.clear();
    for (const Minibatch& minibatch : minibatches) {
      samples_.insert(samples_.end(), minibatch.samples.begin(), minibatch.samples.end());
    }
    pass_.gather(train_, samples_, minibatches.size());
    progress.enter(Phase::forward);
    pass_.forward();
    progress.enter(Phase::loss);
    pass_.losses(losses);
    progress.enter(Phase::backward);
    backward(leaf);
  }

 private:
  void backward(const Leaf<T>& leaf) {
    pass_.backward(leaf.gradient.data());
    parameters_.clear_padding(leaf.gradient);
  }

  DensePass<T> pass_;
  const FlatParameters<T>& parameters_;
  const DenseDataset<T>& train_;
  // The samples of several minibatches in one pass.
  std::vector<std::int64_t> samples_;
};

// The widths from the inputs to the outputs.
template <class T>
std::vector<std::int64_t> widths_of(const DenseDataset<T>& train,
                                    const std::vector<std::int64_t>& hidden) {
  std::vector<std::int64_t> widths{train.features()};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(train.outputs());
  return widths;
}

std::vector<ParameterShape> shapes_of(const std::vector<std::int64_t>& widths) {
  std::vector<ParameterShape> shapes;
  for (std::size_t l = 1; l < widths.size(); ++l) {
    const std::string name = widths.size() == 2 ? "linear" : fmt::format("linear{}", l);
    shapes.push_back({name + ".weight", {widths[l], widths[l - 1]}});
    shapes.push_back({name + ".bias", {widths[l]}});
  }
  return shapes;
}

template <class T>
class DenseNetwork final : public ObjectiveOf<T> {
 public:
  DenseNetwork(DenseDataset<T> train, DenseNetworkOptions<T> options)
      : train_(std::move(train)),
        test_(std::move(options.test)),
        widths_(widths_of(train_, options.hidden)),
        parameters_(shapes_of(widths_)) {
    const InstructionSet set = dense_instruction_set();
    LinearInitialValues initial(options.seed, set);
    for (std::size_t l = 0; l + 1 < widths_.size(); ++l) {
      model_.layers.push_back({.inputs = widths_[l],
                               .outputs = widths_[l + 1],
                               .weights = parameters_.begin(2 * l),
                               .biases = parameters_.begin(2 * l + 1)});
      initial.draw(parameters_.arrays()[2 * l].template values<T>(),
                   parameters_.arrays()[2 * l + 1].template values<T>(), widths_[l]);
    }
    model_.activation = options.activation;
    model_.parameters = parameters_.values().data();
    model_.kernels = dense_kernels<T>(set);
  }

  std::int64_t samples() const override { return train_.samples(); }
  const std::vector<TrainedArray>& trained() const override { return parameters_.trained(); }
  const std::vector<NamedArray>& parameters() const override { return parameters_.arrays(); }
  std::span<T> flat_parameters() override { return parameters_.values(); }

  std::vector<BoundValue> bound_values() const override {
    std::vector<BoundValue> values{
        {"loss", train_.is_classified() ? "cross entropy" : "squared error"}};
    if (widths_.size() > 2) {
      values.push_back({"activation", std::string(choice_name(kActivations, model_.activation))});
    }
    return values;
  }
  std::string fingerprint() const override { return train_.fingerprint(); }
  std::string test_fingerprint() const override { return test_ ? test_->fingerprint() : ""; }

  bool has_test() const override { return test_.has_value(); }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    static_cast<void>(when);
    return evaluate(model_, *test_, workers, options);
  }

  std::unique_ptr<Evaluator<T>> make_evaluator() override {
    return std::make_unique<DenseEvaluator<T>>(model_, parameters_, train_);
  }

  bool overwrites_gradients() const override { return true; }
  std::int64_t minibatches_at_once(std::int64_t minibatch_size) const override {
    return DensePass<T>::minibatches_at_once(minibatch_size);
  }

  void begin_minibatches(Workers& workers) override {
    panels_.pack(model_, workers);
    model_.panels = panels_.panels();
  }
  void end_minibatches() noexcept override { model_.panels = {}; }
  std::size_t step_bytes() const override { return WeightPanels<T>::bytes(model_); }

  // A sample is counted with the outputs of all layers.
  std::size_t sample_bytes() const override {
    std::size_t values = 0;
    for (const std::int64_t width : widths_) values += static_cast<std::size_t>(width);
    return values * sizeof(T);
  }

 private:
  DenseDataset<T> train_;
  std::optional<DenseDataset<T>> test_;
  std::vector<std::int64_t> widths_;
  FlatParameters<T> parameters_;
  DenseModel<T> model_;
  WeightPanels<T> panels_;
};

template <class T>
std::string words_for(const DenseDataset<T>& dataset) {
  return fmt::format("{} features and {} {}", dataset.features(), dataset.outputs(),
                     dataset.is_classified() ? "classes" : "real targets");
}

template <class T>
std::unique_ptr<ObjectiveOf<T>> make_network(DenseDataset<T> train,
                                             DenseNetworkOptions<T> options) {
  if (options.test) {
    const DenseDataset<T>& test = *options.test;
    if (test.features() != train.features() || test.outputs() != train.outputs() ||
        test.is_classified() != train.is_classified()) {
      throw_error("test data: {}; accepted: {}, as in the training data", words_for(test),
                  words_for(train));
    }
  }
  return std::make_unique<DenseNetwork<T>>(std::move(train), std::move(options));
}

void require_no_hidden(std::string_view name, const std::vector<std::int64_t>& hidden) {
  if (hidden.empty()) return;
  throw_error("{} with hidden layers of {}; accepted: none; multi_layer_perceptron() takes them",
              name, fmt::join(hidden, ", "));
}

}  // namespace

template <class T>
std::unique_ptr<ObjectiveOf<T>> softmax_regression(DenseDataset<T> train,
                                                   DenseNetworkOptions<T> options) {
  require_no_hidden("softmax regression", options.hidden);
  if (!train.is_classified()) {
    throw Error(
        "softmax regression on real targets; accepted: data with classes; least_squares() takes "
        "real targets");
  }
  return make_network(std::move(train), std::move(options));
}

template <class T>
std::unique_ptr<ObjectiveOf<T>> least_squares(DenseDataset<T> train,
                                              DenseNetworkOptions<T> options) {
  require_no_hidden("least squares", options.hidden);
  if (train.is_classified()) {
    throw Error(
        "least squares on classes; accepted: data with real targets; softmax_regression() takes "
        "classes");
  }
  return make_network(std::move(train), std::move(options));
}

template <class T>
std::unique_ptr<ObjectiveOf<T>> multi_layer_perceptron(DenseDataset<T> train,
                                                       DenseNetworkOptions<T> options) {
  if (options.hidden.empty()) {
    throw Error(
        "a multi-layer perceptron without hidden layers; accepted: at least one width; "
        "softmax_regression() and least_squares() have none");
  }
  for (const std::int64_t width : options.hidden) {
    if (width < 1) throw_error("a hidden layer of width {}; accepted: at least 1", width);
  }
  return make_network(std::move(train), std::move(options));
}

template std::unique_ptr<ObjectiveOf<float>> softmax_regression(DenseDataset<float>,
                                                                DenseNetworkOptions<float>);
template std::unique_ptr<ObjectiveOf<double>> softmax_regression(DenseDataset<double>,
                                                                 DenseNetworkOptions<double>);
template std::unique_ptr<ObjectiveOf<float>> least_squares(DenseDataset<float>,
                                                           DenseNetworkOptions<float>);
template std::unique_ptr<ObjectiveOf<double>> least_squares(DenseDataset<double>,
                                                            DenseNetworkOptions<double>);
template std::unique_ptr<ObjectiveOf<float>> multi_layer_perceptron(DenseDataset<float>,
                                                                    DenseNetworkOptions<float>);
template std::unique_ptr<ObjectiveOf<double>> multi_layer_perceptron(DenseDataset<double>,
                                                                     DenseNetworkOptions<double>);

}  // namespace rubato
