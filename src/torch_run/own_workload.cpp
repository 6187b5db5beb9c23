#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/torch/torch_trainer.hpp>
#include <rubato/torch_run/own_workload.hpp>

#include "torch_run/libtorch_workload.hpp"

namespace rubato {

namespace {

class TorchOwnWorkload final : public LibtorchWorkload {
 public:
  TorchOwnWorkload(OwnWorkload own, TorchOptions options)
      : own_(std::move(own)), options_(std::move(options)) {}

  std::string description() const override {
    if (!own_.description.empty()) return own_.description;
    const std::int64_t tests = own_.test ? own_.test->size() : 0;
    return fmt::format("a model of its own: {} training and {} test samples", samples(), tests);
  }
  std::int64_t samples() const override { return own_.train->size(); }
  std::int64_t gradient_bytes() const override { return gradient_bytes_of(own_.model); }

  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    TorchTrainer trainer(own_.model, own_.loss, own_.train, std::move(steps), options, options_);
    if (own_.test) trainer.set_test(own_.test, own_.test_loss);
    return trainer;
  }

 private:
  OwnWorkload own_;
  TorchOptions options_;
};

}  // namespace

std::shared_ptr<const Workload> own_workload(OwnWorkload own, const TorchOptions& options) {
  if (!own.model) throw Error("a workload without a model; accepted: a ModelFactory");
  if (!own.loss) throw Error("a workload without a loss; accepted: one such as nll_loss()");
  if (!own.train) throw Error("a workload without training data; accepted: a Dataset");
  return std::make_shared<TorchOwnWorkload>(std::move(own), options);
}

}  // namespace rubato
