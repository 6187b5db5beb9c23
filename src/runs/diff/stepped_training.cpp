// A SteppedTraining is a Run without a folder in which each call of fit() takes one step: the
// observer Watch pauses training after it. compute() relies on fit() calling on_epoch_begin() also
// in the middle of an epoch: there, before the next step, the objective has the weights that steps
// change, and Watch::look asks it for single minibatches and pauses again. They have the bits of
// the step because they get its random stream, core, substep and loss scale. Their gradients go
// into memory that is cleared for each, without a reducer.

#include "stepped_training.hpp"

#include <new>
#include <utility>

#include <rubato/loop/objective.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/throw_error.hpp"
#include "runs/run/resumption.hpp"

namespace rubato {

namespace {

RunConfiguration without_records(RunConfiguration run) {
  run.digest = "every=1";
  run.checkpoint_every = "never";
  run.timeline = "";
  run.monitor = "";
  run.tensorboard = false;
  run.log_minibatches = false;
  return run;
}

// Memory as reducers have it for their leaves.
template <class T>
class LeafMemory {
 public:
  explicit LeafMemory(std::size_t size)
      : values_(static_cast<T*>(::operator new[](size * sizeof(T), kAlignment)), size) {}
  ~LeafMemory() { ::operator delete[](values_.data(), kAlignment); }
  LeafMemory(const LeafMemory&) = delete;
  LeafMemory& operator=(const LeafMemory&) = delete;

  [[nodiscard]] std::span<T> values() const { return values_; }

 private:
  static constexpr std::align_val_t kAlignment{128};
  std::span<T> values_;
};

// Asks the objective for the minibatches of a step, as the step itself does.
template <class T>
void compute_minibatches(Training& training, const StepRecord& step, std::int64_t first,
                         std::int64_t end, SampleOrder& order,
                         const std::function<void(const MinibatchResult&)>& take) {
  auto& objective = dynamic_cast<ObjectiveOf<T>&>(training.objective());
  const TrainOptions& options = training.options();
  const std::size_t size = objective.flat_parameters().size();
  const LeafMemory<T> memory(size + objective.averaged());
  const auto evaluator = objective.make_evaluator();
  const StepPlan& plan = step.plan;
  std::vector<CoreRank> cores(static_cast<std::size_t>(plan.minibatches));
  std::vector<std::int64_t> substeps(cores.size());
  for (CoreRank core; core.value() < plan.cores; ++core) {
    const MinibatchRun share = plan.share_of(core, options.assignment);
    for (std::int64_t i = 0; i < share.count; ++i) {
      const auto place = static_cast<std::size_t>(share[i].value() - plan.first_minibatch.value());
      cores[place] = core;
      substeps[place] = i;
    }
  }
  std::vector<NamedArray> gradient;
  std::size_t begin = 0;
  for (const TrainedArray& trained : objective.trained()) {
    gradient.push_back(trained.array);
    gradient.back().data = memory.values().data() + begin;
    begin = trained.end;
  }
  order.prepare(step.epoch, plan);
  objective.begin_minibatches(training.workers());
  try {
    for (std::int64_t i = first; i < end; ++i) {
      const auto place = static_cast<std::size_t>(i);
      const MinibatchIndex index{plan.first_minibatch.value() + i};
      std::fill(memory.values().begin(), memory.values().end(), T{0});
      std::optional<double> weight;
      EvaluatorProgress progress;
      const double loss = evaluator->evaluate({.samples = order.minibatch(plan, index),
                                               .stream = {.seed = options.seed,
                                                          .epoch = step.epoch.value(),
                                                          .step = plan.index.value(),
                                                          .minibatch = index.value()},
                                               .first_of_step = i == 0,
                                               .core = cores[place],
                                               .substep = substeps[place],
                                               .loss_scale = step.loss_scale.value_or(1)},
                                              {.gradient = memory.values().first(size),
                                               .averaged = memory.values().subspan(size),
                                               .buffer = 0,
                                               .weight = &weight},
                                              progress);
      take({.of_step = i, .loss = loss, .gradient = gradient});
    }
  } catch (...) {
    objective.end_minibatches();
    throw;
  }
  objective.end_minibatches();
}

SampleOrder order_of(const Trainer& trainer) {
  const TrainOptions& options = trainer.options();
  return {trainer.objective().samples(), options.minibatch_size, options.seed, options.sampler};
}

}  // namespace

void SteppedTraining::Watch::on_epoch_begin(Training& training, const EpochStart& /*epoch*/) {
  if (!look) return;
  std::exchange(look, {})(training);
  training.pause();
}

void SteppedTraining::Watch::on_gradients(Training& /*training*/, const StepPlan& /*step*/,
                                          std::span<const NamedArray> all) {
  gradients = ArrayCopies(all);
}

void SteppedTraining::Watch::on_step(Training& /*training*/, const StepRecord& taken) {
  step = taken;
  has_step = true;
}

void SteppedTraining::Watch::between_steps(Training& training) {
  // An epoch may also have ended, without a step.
  if (has_step) training.pause();
}

SteppedTraining::SteppedTraining(const RunConfiguration& configuration,
                                 std::shared_ptr<const Workload> workload, const State* from)
    : run_(
          without_records(configuration), std::move(workload),
          from == nullptr ? RunLocation() : RunLocation::fork({}, {.state = *from, .records = {}})),
      watch_(run_.trainer().add_observer<Watch>()) {}

bool SteppedTraining::advance() {
  if (ended_) return false;
  watch_->has_step = false;
  watch_->gradients = {};
  try {
    static_cast<void>(run_.trainer().fit());
  } catch (const Diverged&) {
    ended_ = true;
  }
  if (!watch_->has_step) ended_ = true;
  return watch_->has_step;
}

std::vector<std::int64_t> SteppedTraining::samples_of(const StepRecord& step,
                                                      std::int64_t minibatch) const {
  SampleOrder order = order_of(run_.trainer());
  order.prepare(step.epoch, step.plan);
  const auto samples =
      order.minibatch(step.plan, MinibatchIndex{step.plan.first_minibatch.value() + minibatch});
  return {samples.begin(), samples.end()};
}

void SteppedTraining::compute(const StepRecord& step, std::int64_t first, std::int64_t end,
                              const std::function<void(const MinibatchResult& result)>& take) {
  if (ended_) throw_error("the training has ended after {} steps", steps());
  watch_->look = [&](Training& training) {
    SampleOrder order = order_of(run_.trainer());
    const bool is_double = training.objective().type() == ElementType::f64;
    (is_double ? compute_minibatches<double> : compute_minibatches<float>)(training, step, first,
                                                                           end, order, take);
  };
  static_cast<void>(run_.trainer().fit());
}

}  // namespace rubato
