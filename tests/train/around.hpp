#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/loop/objective.hpp>
#include <rubato/testing.hpp>

namespace rubato::test {

/// Computes a minibatch with the evaluator of the objective within. Each evaluator has a copy, so
/// what a copy keeps is the evaluator's own.
using Evaluate = std::function<double(Evaluator<double>& inner, const Minibatch& minibatch,
                                      const Leaf<double>& leaf, EvaluatorProgress& progress)>;

/// Does as the objective within it does, the test left out: to be derived from, for what is to be
/// another way. Minibatches are computed by `evaluate` if it is not empty.
class Around : public ObjectiveOf<double> {
 public:
  explicit Around(std::unique_ptr<ObjectiveOf<double>> inner = tiny_objective())
      : inner_(std::move(inner)) {}
  explicit Around(Evaluate evaluate, std::unique_ptr<ObjectiveOf<double>> inner = tiny_objective())
      : evaluate_(std::move(evaluate)), inner_(std::move(inner)) {}

  std::int64_t samples() const override { return inner_->samples(); }
  const std::vector<TrainedArray>& trained() const override { return inner_->trained(); }
  const std::vector<NamedArray>& parameters() const override { return inner_->parameters(); }
  const std::vector<NamedArray>& buffers() const override { return inner_->buffers(); }
  std::string fingerprint() const override { return inner_->fingerprint(); }
  std::span<double> flat_parameters() override { return inner_->flat_parameters(); }
  std::size_t averaged() const override { return inner_->averaged(); }
  void begin_minibatches(Workers& workers) override { inner_->begin_minibatches(workers); }
  void move_averages(std::span<const double> sums, std::int64_t minibatches) override {
    inner_->move_averages(sums, minibatches);
  }
  std::unique_ptr<Evaluator<double>> make_evaluator() override {
    if (!evaluate_) return inner_->make_evaluator();
    return std::make_unique<Evaluating>(inner_->make_evaluator(), evaluate_);
  }

 protected:
  [[nodiscard]] ObjectiveOf<double>& inner() { return *inner_; }

 private:
  class Evaluating final : public Evaluator<double> {
   public:
    Evaluating(std::unique_ptr<Evaluator<double>> inner, Evaluate evaluate)
        : inner_(std::move(inner)), evaluate_(std::move(evaluate)) {}
    double evaluate(const Minibatch& minibatch, const Leaf<double>& leaf,
                    EvaluatorProgress& progress) override {
      return evaluate_(*inner_, minibatch, leaf, progress);
    }

   private:
    std::unique_ptr<Evaluator<double>> inner_;
    Evaluate evaluate_;
  };

  Evaluate evaluate_;
  std::unique_ptr<ObjectiveOf<double>> inner_;
};

}  // namespace rubato::test
