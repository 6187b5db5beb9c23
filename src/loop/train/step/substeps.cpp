#include "substeps.hpp"

#include <cmath>
#include <functional>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/sums.hpp>

#include "place.hpp"

namespace rubato {

namespace {

template <class T>
std::vector<std::unique_ptr<Evaluator<T>>> evaluators_of(ObjectiveOf<T>& objective, int count) {
  std::vector<std::unique_ptr<Evaluator<T>>> evaluators;
  evaluators.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    evaluators.push_back(objective.make_evaluator());
    if (evaluators.back() == nullptr) {
      throw Error("the objective makes no evaluator; accepted: one for each thread");
    }
  }
  return evaluators;
}

Activity activity_of(Phase phase) {
  switch (phase) {
    case Phase::data:
      return Activity::gather;
    case Phase::loss:
      return Activity::loss;
    case Phase::backward:
      return Activity::backward;
    default:
      return Activity::forward;
  }
}

}  // namespace

template <class T>
Substeps<T>::Substeps(ObjectiveOf<T>& objective, const TrainOptions& options,
                      const Workers& workers)
    : options_(options),
      parameters_(objective.flat_parameters().size()),
      evaluators_(evaluators_of(objective, options.threads)),
      data_seconds_(static_cast<std::size_t>(workers.threads())) {}

template <class T>
void Substeps<T>::begin_step(const StepPlan& step) {
  if (options_.log_minibatches) log_.begin(step);
  begin_attempt();
}

template <class T>
void Substeps<T>::begin_attempt() {
  for (Seconds& seconds : data_seconds_) seconds.value = 0;
}

template <class T>
void Substeps<T>::compute(const StepOfMinibatches& step, const SubstepTask& task,
                          std::int64_t buffer, PartialSum<T>& out) {
  const StepPlan& plan = step.plan;
  const std::span<const std::int64_t> samples = step.samples.minibatch(plan, task.minibatch);
  const std::int64_t of_step = task.minibatch.value() - plan.first_minibatch.value();
  const auto tell = [&](Phase phase, Span::Moment begin, Span::Moment end) {
    options_.on_span({.activity = activity_of(phase),
                      .epoch = step.epoch,
                      .step = plan.index,
                      .minibatch = task.minibatch,
                      .core = task.core,
                      .thread = task.thread,
                      .begin = begin,
                      .end = end});
  };
  // A reference, which std::function holds without an allocation.
  EvaluatorProgress progress(options_.on_span ? EvaluatorProgress::OnPhase(std::cref(tell))
                                              : EvaluatorProgress::OnPhase());
  try {
    out.scalars.loss = pick(task.thread, of_step + plan.index.value())
                           .evaluate({.samples = samples,
                                      .stream = {.seed = options_.seed,
                                                 .epoch = step.epoch.value(),
                                                 .step = plan.index.value(),
                                                 .minibatch = task.minibatch.value()},
                                      .first_of_step = of_step == 0,
                                      .core = task.core,
                                      .substep = task.substep,
                                      .loss_scale = step.loss_scale},
                                     {.gradient = out.values.first(parameters_),
                                      .averaged = out.values.subspan(parameters_),
                                      .buffer = buffer},
                                     progress);
    progress.end();
    data_seconds_[static_cast<std::size_t>(task.thread)].value += progress.data_seconds();
    if (options_.log_minibatches) {
      log_.note(task.minibatch, out.scalars.loss,
                std::sqrt(squared_norm(std::span<const T>(out.values).first(parameters_))));
    }
    weigh(std::ssize(samples), out);
  } catch (...) {
    rethrow_with_place(progress.phase(),
                       fmt::format("minibatch {} of {} at {}", of_step + 1, plan.minibatches,
                                   place_of(step.epoch, plan.index)));
  }
}

template <class T>
void Substeps<T>::weigh(std::int64_t samples, PartialSum<T>& out) const {
  if (samples == options_.minibatch_size) return;
  const double weight = static_cast<double>(samples) / static_cast<double>(options_.minibatch_size);
  for (T& value : out.values.first(parameters_)) value *= static_cast<T>(weight);
  out.scalars.loss *= weight;
}

template <class T>
Evaluator<T>& Substeps<T>::pick(int thread, std::int64_t turn) {
  const auto in_turn = static_cast<std::size_t>(turn) % evaluators_.size();
  return *evaluators_[options_.dealing == Dealing::in_turns ? in_turn
                                                            : static_cast<std::size_t>(thread)];
}

template <class T>
double Substeps<T>::data_seconds() const {
  double sum = 0;
  for (const Seconds& seconds : data_seconds_) sum += seconds.value;
  return sum;
}

template <class T>
std::span<const MinibatchRecord> Substeps<T>::records(const StepPlan& done) {
  if (!options_.log_minibatches) return {};
  return log_.records(done, options_.assignment);
}

template class Substeps<float>;
template class Substeps<double>;

}  // namespace rubato
