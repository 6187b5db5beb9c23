// compute() is the body of every substep and runs on several threads at once, so it writes only to
// what belongs to its thread (seconds, lists of minibatches), to its minibatch (the log) or to its
// buffer. A minibatch adds a part of a sum over the step: one with fewer samples counts by its
// share, and one whose loss has weights is already a sum over these. Minibatches computed in one
// pass add their losses in the order of a SummationTree, so that they have the bits of minibatches
// computed one by one. Exceptions of an evaluator get their place here, where phase, minibatch and
// step are known.

#include "substeps.hpp"

#include <cmath>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/sums.hpp>

#include "base/core/throw_error.hpp"
#include "loop/train/checked_options.hpp"

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
                      const Workers& workers, const Leaves& leaves)
    : options_(options),
      parameters_(objective.flat_parameters().size()),
      averaged_(objective.averaged()),
      squares_(leaves.squares),
      evaluators_(evaluators_of(objective, options.threads)),
      data_seconds_(static_cast<std::size_t>(workers.threads())),
      at_once_(leaves.at_once > 1 ? data_seconds_.size() : 0) {
  for (AtOnce& of_thread : at_once_) {
    of_thread.minibatches.reserve(static_cast<std::size_t>(leaves.at_once));
    of_thread.losses.reserve(static_cast<std::size_t>(leaves.at_once));
  }
}

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
  const std::int64_t of_step = task.minibatch.value() - plan.first_minibatch.value();
  const auto report = [&](Phase phase, Span::Moment begin, Span::Moment end) {
    options_.on_span({.activity = activity_of(phase),
                      .epoch = step.epoch,
                      .step = plan.index,
                      .minibatch = task.minibatch,
                      .core = task.core,
                      .cores = task.cores,
                      .minibatches = task.count,
                      .thread = task.thread,
                      .begin = begin,
                      .end = end});
  };
  // std::function holds a reference without an allocation.
  EvaluatorProgress progress(options_.on_span ? EvaluatorProgress::OnPhase(std::cref(report))
                                              : EvaluatorProgress::OnPhase());
  try {
    std::optional<double> weight;
    const Leaf<T> leaf{.gradient = out.values.first(parameters_),
                       .averaged = out.values.subspan(parameters_, averaged_),
                       .buffer = buffer,
                       .weight = &weight};
    const Minibatch minibatch = minibatch_of(step, task, 0);
    out.scalars.loss =
        task.count == 1
            ? pick(task.thread, of_step + plan.index.value()).evaluate(minibatch, leaf, progress)
            : evaluate_several(step, task, leaf, progress);
    progress.end();
    data_seconds_[static_cast<std::size_t>(task.thread)].value += progress.data_seconds();
    if (weight && !(*weight >= 0 && std::isfinite(*weight))) {
      throw_error("the loss has a weight of {}; accepted: a finite one of at least 0",
                  in_words(*weight));
    }
    if (options_.log_minibatches) {
      const double square = squared_norm(std::span<const T>(out.values).first(parameters_));
      // A minibatch without weight has neither loss nor gradient.
      const double part = weight.value_or(1) == 0 ? 1 : weight.value_or(1);
      log_.note(task.minibatch, out.scalars.loss / part, std::sqrt(square) / part);
    }
    if (weight) {
      out.scalars.weight = *weight;
      out.scalars.weighted = task.count;
    }
    // Minibatches computed together are all full-sized.
    const double share = weight ? *weight : weigh(std::ssize(minibatch.samples), out);
    if (squares_) square(share, out);
  } catch (...) {
    rethrow_with_place(progress.phase(),
                       fmt::format("minibatch {} of {} at {}", of_step + 1, plan.minibatches,
                                   place_of(step.epoch, plan.index)));
  }
}

template <class T>
Minibatch Substeps<T>::minibatch_of(const StepOfMinibatches& step, const SubstepTask& task,
                                    std::int64_t which) const {
  const MinibatchIndex index{task.minibatch.value() + which};
  const MinibatchPlace place = task.step->place_of(index, options_.assignment);
  return {.samples = step.samples.minibatch(step.plan, index),
          .stream = {.seed = options_.seed,
                     .epoch = step.epoch.value(),
                     .step = step.plan.index.value(),
                     .minibatch = index.value()},
          .first_of_step = index == step.plan.first_minibatch,
          .core = place.core,
          .substep = place.substep,
          .loss_scale = step.loss_scale};
}

template <class T>
double Substeps<T>::evaluate_several(const StepOfMinibatches& step, const SubstepTask& task,
                                     const Leaf<T>& leaf, EvaluatorProgress& progress) {
  AtOnce& all = at_once_[static_cast<std::size_t>(task.thread)];
  all.minibatches.clear();
  for (std::int64_t i = 0; i < task.count; ++i) {
    all.minibatches.push_back(minibatch_of(step, task, i));
  }
  all.losses.assign(static_cast<std::size_t>(task.count), 0);
  pick(task.thread, 0).evaluate_several(all.minibatches, leaf, all.losses, progress);
  // The losses are added in the order of a SummationTree.
  for (std::size_t width = 1; width < all.losses.size(); width *= 2) {
    for (std::size_t i = 0; i + width < all.losses.size(); i += 2 * width) {
      all.losses[i] += all.losses[i + width];
    }
  }
  return all.losses.front();
}

template <class T>
double Substeps<T>::weigh(std::int64_t samples, PartialSum<T>& out) const {
  if (samples == options_.minibatch_size) return 1;
  const double weight = static_cast<double>(samples) / static_cast<double>(options_.minibatch_size);
  for (T& value : out.values.first(parameters_)) value *= static_cast<T>(weight);
  out.scalars.loss *= weight;
  return weight;
}

template <class T>
void Substeps<T>::square(double weight, PartialSum<T>& out) const {
  const T* const gradient = out.values.data();
  T* const squares = out.values.last(parameters_).data();
  // A minibatch without weight has no gradient. Most minibatches need no division.
  const auto divisor = static_cast<T>(weight == 0 ? 1 : weight);
  if (divisor == T{1}) {
    for (std::size_t i = 0; i < parameters_; ++i) squares[i] = gradient[i] * gradient[i];
  } else {
    for (std::size_t i = 0; i < parameters_; ++i) {
      squares[i] = gradient[i] * (gradient[i] / divisor);
    }
  }
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
