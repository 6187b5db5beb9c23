#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/check.hpp>
#include <rubato/core/stopwatch.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/train/environment.hpp>
#include <rubato/train/trainer.hpp>

#include "evaluator.hpp"
#include "replica_set.hpp"
#include "step_engine.hpp"

namespace rubato {

namespace {

TrainOptions checked(TrainOptions options) {
  if (options.epochs < 1) {
    throw Error(fmt::format("{} epochs: at least 1 is needed", options.epochs));
  }
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    throw Error(
        fmt::format("learning rate {}: accepted are values above 0", options.learning_rate));
  }
  if (options.reference_batch_size < 1) {
    throw Error(
        fmt::format("reference batch size {}: at least 1 is needed", options.reference_batch_size));
  }
  if (options.threads < 0) {
    throw Error(fmt::format("{} threads: at least 1 is needed (0 takes all)", options.threads));
  }
  if (options.threads == 0) {
    options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  return options;
}

TensorDataset checked(TensorDataset dataset, std::string_view name) {
  require_valid(dataset, name);
  return dataset;
}

Planner checked_planner(Trace trace, const TensorDataset& train, const TrainOptions& options) {
  Planner planner(std::move(trace), {.dataset_size = train.size(),
                                     .minibatch_size = options.minibatch_size,
                                     .cores = options.cores});
  require_epochs(planner, options.epochs);
  return planner;
}

// libtorch must be on one intra-op thread before the first worker starts.
Workers make_workers(int threads) {
  use_one_intra_op_thread();
  return Workers(threads);
}

}  // namespace

Diverged::Diverged(std::string_view what, const StepRecord& step, std::string_view rule)
    : Error(fmt::format("{} at step {} (epoch {}, batch {}, rule {}, lr {:.6g}){}\n"
                        "try a lower --lr or another --rule",
                        what, step.plan.index.value(), step.epoch.value(), step.plan.batch_size,
                        rule, step.learning_rate,
                        step.applied ? "" : "; the step was not applied")),
      step_(step) {}

class Trainer::Implementation {
 public:
  Implementation(const ModelFactory& model, Loss loss, TensorDataset train, Trace trace,
                 TrainOptions options)
      : options_(checked(std::move(options))),
        train_(checked(std::move(train), "training data")),
        planner_(checked_planner(std::move(trace), train_, options_)),
        rule_(make_rule(options_.rule)),
        loss_(std::move(loss)),
        workers_(make_workers(options_.threads)),
        replicas_(model, options_.threads, options_.seed),
        engine_(make_step_engine({replicas_, loss_, train_, workers_}, options_.sgd,
                                 planner_.largest_step(), options_.reduce)) {}

  TrainResult fit() {
    RUBATO_CHECK(!fitted_, "a trainer fits once");
    fitted_ = true;
    while (result_.epochs < options_.epochs) {
      const std::optional<EpochPlan> epoch = planner_.next();
      if (!epoch) break;
      const EpochRecord record = run_epoch(*epoch);
      ++result_.epochs;
      if (record.test) note_test(*record.test);
      for (Observer* observer : observers_) observer->on_epoch(record);
      if (record.test && !std::isfinite(record.test->loss)) {
        throw Diverged(fmt::format("the test loss became {}", record.test->loss), last_step_,
                       options_.rule);
      }
    }
    return result_;
  }

  Evaluation evaluate(const TensorDataset& dataset) {
    return rubato::evaluate(replicas_, loss_, dataset, workers_);
  }

  const TrainOptions& options() const { return options_; }
  const TrainResult& result() const { return result_; }
  const SharedState& state() { return replicas_.state(); }
  std::int64_t gradient_buffers() const { return engine_->gradient_buffers(); }
  void set_test(TensorDataset test) { test_ = checked(std::move(test), "test data"); }
  void add_observer(Observer& observer) { observers_.push_back(&observer); }

 private:
  EpochRecord run_epoch(const EpochPlan& epoch) {
    for (Observer* observer : observers_) observer->on_epoch_begin(epoch);
    EpochRecord record;
    record.epoch = epoch.index;
    record.steps = static_cast<std::int64_t>(epoch.steps.size());
    const EpochSamples samples(train_.size(), options_.minibatch_size, options_.seed, epoch.index);
    double loss_sum = 0;
    Stopwatch stopwatch;
    for (const StepPlan& plan : epoch.steps) {
      last_step_ = run_step(epoch.index, plan, samples);
      const StepRecord& step = last_step_;
      for (Observer* observer : observers_) observer->on_step(step);
      if (!step.applied) {
        throw Diverged(std::isfinite(step.loss) ? "the gradient became infinite or NaN"
                                                : fmt::format("the loss became {}", step.loss),
                       step, options_.rule);
      }
      record.samples += plan.batch_size;
      loss_sum += step.loss * static_cast<double>(plan.minibatches);
      const double seconds = stopwatch.lap();
      record.train_seconds += seconds;
      result_.train_seconds += seconds;
      result_.samples += plan.batch_size;
      ++result_.steps;
    }
    record.train_loss = loss_sum / static_cast<double>(epoch.minibatches());
    if (test_) record.test = evaluate(*test_);
    record.test_seconds = stopwatch.lap();
    return record;
  }

  void note_test(const Evaluation& test) {
    result_.final_test = test;
    if (test.accuracy) {
      result_.best_test_accuracy = std::max(result_.best_test_accuracy.value_or(0), *test.accuracy);
    }
  }

  StepRecord run_step(EpochIndex epoch, const StepPlan& plan, const EpochSamples& samples) {
    const StepSettings settings{
        .assignment = options_.assignment,
        .rule_input = {.minibatch_size = options_.minibatch_size,
                       .reference_batch_size = options_.reference_batch_size,
                       .base_learning_rate = options_.learning_rate}};
    const StepOutcome outcome = engine_->run(plan, samples, *rule_, settings);
    return {.epoch = epoch,
            .plan = plan,
            .assignment = options_.assignment,
            .scale = static_cast<double>(plan.batch_size) /
                     static_cast<double>(options_.reference_batch_size),
            .learning_rate = outcome.rates.learning_rate,
            .loss = outcome.loss,
            .applied = outcome.applied,
            .seconds = outcome.seconds};
  }

  TrainOptions options_;
  TensorDataset train_;
  std::optional<TensorDataset> test_;
  Planner planner_;
  std::unique_ptr<Rule> rule_;
  Loss loss_;
  Workers workers_;
  ReplicaSet replicas_;
  std::unique_ptr<StepEngine> engine_;
  std::vector<Observer*> observers_;
  TrainResult result_;
  StepRecord last_step_;
  bool fitted_ = false;
};

Trainer::Trainer(const ModelFactory& model, Loss loss, TensorDataset train, Trace trace,
                 TrainOptions options)
    : implementation_(std::make_unique<Implementation>(model, std::move(loss), std::move(train),
                                                       std::move(trace), std::move(options))) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

void Trainer::set_test(TensorDataset test) {
  implementation_->set_test(std::move(test));
}
void Trainer::add_observer(Observer& observer) {
  implementation_->add_observer(observer);
}
TrainResult Trainer::fit() {
  return implementation_->fit();
}
Evaluation Trainer::evaluate(const TensorDataset& dataset) {
  require_valid(dataset, "data to evaluate on");
  return implementation_->evaluate(dataset);
}
const std::vector<NamedTensor>& Trainer::parameters() const {
  return implementation_->state().parameters();
}
const std::vector<NamedTensor>& Trainer::buffers() const {
  return implementation_->state().buffers();
}
const TrainResult& Trainer::result() const {
  return implementation_->result();
}
const TrainOptions& Trainer::options() const {
  return implementation_->options();
}
int Trainer::threads() const {
  return implementation_->options().threads;
}
std::int64_t Trainer::gradient_buffers() const {
  return implementation_->gradient_buffers();
}

}  // namespace rubato
