// A step passes through one chain: evaluators fill leaves (Substeps), reducer and hosts sum them,
// StepMeter measures the sum, the rule answers rates and RateAdjuster adapts them,
// GradientPreparation clips and transforms, and the optimizer updates the parameters; then averages
// and buffers move. It has two phases, and begin_change() is the border: before it, a step that
// throws or whose loss is not finite is undone by take_back(), since only the rule, the adjuster,
// the loss scale and the meter have changed; after it, an exception leaves no state. The state of
// training does not change while the minibatches are computed, so another thread may read it then
// (StepSettings::quiet). Calls of the rule, the optimizer and other parts that users can write
// stand between two calls of enter(), which tells the trainer whose code runs.

#include "step_engine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/numbers/loss_scaler.hpp>
#include <rubato/numbers/sums.hpp>

#include "applied_gradient.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "loop/runtime/host_sum.hpp"
#include "loop/runtime/step_executor.hpp"
#include "loop/train/checked_options.hpp"
#include "loop/train/trainer_stage.hpp"
#include "numbers/scaling/rate_adjuster.hpp"
#include "rate_factors.hpp"
#include "state_digest.hpp"
#include "step_choices.hpp"
#include "step_meter.hpp"
#include "step_part.hpp"
#include "substeps.hpp"

namespace rubato {

namespace {

ParameterLayout layout_of(const std::vector<TrainedArray>& trained, const TrainOptions& options) {
  const std::vector<ParameterGroup>& groups = options.groups;
  ParameterLayout layout;
  for (const TrainedArray& of : trained) {
    layout.layer_ends.push_back(of.end);
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
      return group.takes(of.array);
    });
    // Tensors that no group takes are in group 0.
    layout.layer_groups.push_back(
        found == groups.end() ? 0 : static_cast<std::size_t>(found - groups.begin()) + 1);
    layout.matrices.push_back(matrix_shape(options.optimizer.method, of.array));
    layout.rate_factors.push_back(rate_factor_of(of.array, options.rate_factors));
  }
  return layout;
}

std::vector<double> weight_decays_of(const TrainOptions& options) {
  const double decay = options.optimizer.weight_decay;
  std::vector<double> decays{decay};
  for (const ParameterGroup& group : options.groups) {
    decays.push_back(group.options.weight_decay.value_or(decay));
  }
  return decays;
}

template <class T>
std::unique_ptr<FlatOptimizer<T>> make_own_optimizer(const OwnOptimizer& own,
                                                     const OptimizerParts& parts) {
  return make_typed<T>(own, "own_optimizer makes none for", parts);
}

template <class T>
std::unique_ptr<FlatOptimizer<T>> make_step_optimizer(ObjectiveOf<T>& objective,
                                                      const TrainOptions& options,
                                                      const ParameterLayout& layout) {
  auto optimizer =
      options.own_optimizer
          ? make_own_optimizer<T>(options.own_optimizer, {.layout = layout,
                                                          .trained = objective.trained(),
                                                          .groups = group_options(options.groups)})
          : make_optimizer<T>(options.optimizer, layout, group_options(options.groups));
  if (!options.lookahead) return optimizer;
  return std::make_unique<Lookahead<T>>(std::move(optimizer), *options.lookahead, layout,
                                        options.adjustments.memories.lookahead);
}

template <class T>
std::unique_ptr<Reducer<T>> make_step_reducer(const TrainOptions& options, std::string_view chosen,
                                              const ReducerSize& size, Workers& workers) {
  const OwnReducer& own = options.own_reducer;
  if (!own) return make_reducer<T>(chosen, size, workers);
  return make_typed<T>(own, fmt::format("reducer {} is made for no", own.name), size, workers);
}

// The computation of a step's minibatches, during which the parameters do not change.
template <class T>
class MinibatchScope {
 public:
  MinibatchScope(ObjectiveOf<T>& objective, Workers& workers)
      : objective_(objective), workers_(workers) {
    begin();
  }
  // Called again before the minibatches are redone.
  void begin() { objective_.begin_minibatches(workers_); }
  ~MinibatchScope() { objective_.end_minibatches(); }
  MinibatchScope(const MinibatchScope&) = delete;
  MinibatchScope& operator=(const MinibatchScope&) = delete;

 private:
  ObjectiveOf<T>& objective_;
  Workers& workers_;
};

// A leaf is the gradient of a minibatch, laid out like the parameters, followed by the values that
// the objective averages and, if the optimizer needs them, by the squares of the gradient: the tree
// sums all of them.
template <class T>
class TypedStepEngine final : public StepEngine {
 public:
  TypedStepEngine(ObjectiveOf<T>& objective, const StepEngineParts& parts,
                  const TrainOptions& options, std::int64_t max_minibatches)
      : objective_(objective),
        workers_(parts.workers),
        rule_(parts.rule),
        options_(options),
        parameters_(objective.flat_parameters().size()),
        averaged_(objective.averaged()),
        layout_(layout_of(objective.trained(), options)),
        optimizer_(make_step_optimizer<T>(objective, options, layout_)),
        squares_(optimizer_->needs_minibatch_squares() ? parameters_ : 0),
        adjuster_(options.adjustments),
        meter_(layout_,
               {.groups = takes_norms(rule_, options),
                .metric = rule_.needs().metric_norms,
                .layers = rule_.needs().parameter_norms || optimizer_->needs_parameter_norms(),
                .norm = options.clip_norm.has_value()},
               weight_decays_of(options)),
        preparation_(options, {.layout = layout_, .trained = objective.trained()}),
        sum_size_({.values = parameters_ + averaged_ + squares_,
                   .max_leaves = max_minibatches,
                   .norms = meter_.blocks_of_sum(),
                   .overwritten = objective.overwrites_gradients() ? parameters_ : 0}),
        at_once_(most_at_once(objective, rule_, options, squares_ > 0)),
        executor_(workers_, listened_reducer(), on_merge()),
        faulty_executor_(executor_, options.faults, options.stragglers),
        host_executor_(
            faulty_executor_, options.hosts.get(), sum_size_,
            {.bytes = objective.tally_bytes(),
             .write = [&objective](std::span<std::byte> tally) { objective.put_tally(tally); },
             .add = [&objective](std::span<const std::byte> tally) { objective.add_tally(tally); }},
            [this](Span::Moment begin) {
              exchange_seconds_ =
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
              report_span(Activity::exchange, begin);
            }),
        substeps_(objective, options, workers_, {.at_once = at_once_, .squares = squares_ > 0}),
        digest_(workers_) {
    if (const auto scale = objective.loss_scale()) loss_scaler_.emplace(*scale);
    for (const OtherWeightsInfo& info : other_weights(&options)) {
      others_.emplace(info.name, std::get<OtherWeightsMaker<T>>(info.make)(options));
    }
    const OptimizerNumbers numbers = optimizer_->numbers();
    require_compatible({.options = options,
                        .rule = rule_,
                        .follows_sums = optimizer_->follows_sums(),
                        .squares = squares_ > 0,
                        .has_momentum = numbers.momentum || numbers.beta1,
                        .moves_momentum = parts.schedule.moves_momentum()});
    adjuster_.require_effect(numbers, rule_);
  }

  StepOutcome run(const StepPlan& step, const SampleOrder& samples,
                  const StepSettings& settings) override {
    const Before before{
        .rule = numbers_of(rule_), .adjuster = adjuster_, .loss_scaler = loss_scaler_};
    changing_ = false;
    try {
      StepOutcome outcome = run_step(step, samples, settings);
      if (changing_) {
        meter_.keep();
      } else {
        take_back(before, settings);
      }
      return outcome;
    } catch (...) {
      if (!changing_) take_back(before, settings);
      throw;
    }
  }

  [[nodiscard]] std::int64_t gradient_buffers() const override {
    return executor_.pool().high_water();
  }
  [[nodiscard]] std::int64_t minibatches_at_once() const override { return at_once_; }
  [[nodiscard]] bool shows_others() override {
    const auto is_there = [](const auto& other) { return !other.second->values().empty(); };
    return !optimizer_->shown().empty() || std::ranges::any_of(others_, is_there);
  }
  void exchange_shown(std::string_view weights) override {
    std::ranges::swap_ranges(shown(weights), parameters());
  }
  void visit_state(StateVisitor& state, bool new_optimizer) override {
    visit_memory(state, new_optimizer);
    meter_.visit_state(state);
    // The states of older versions do not have it, nor do those before the first step.
    const bool known = adjuster_.knows_last();
    if (state.has(kBatchChange, known)) state.numbers(kBatchChange, adjuster_, "the last batch");
  }

 private:
  static constexpr std::string_view kLossScale = "loss_scale";
  static constexpr std::string_view kBatchChange = "last_batch";

  // Visits the memory that decides, with the parameters and buffers, how a gradient changes them.
  // It has nothing that is only measured, because digests must not depend on that.
  void visit_memory(StateVisitor& state, bool new_optimizer = false) {
    if (!new_optimizer) optimizer_->visit_state(state);
    for (const auto& [name, weights] : others_) weights->visit_state(state);
    preparation_.visit_state(state);
    const bool there = !state.forks() || state.has(kLossScale, true);
    if (loss_scaler_ && there) state.numbers(kLossScale, *loss_scaler_, "the loss scale");
  }

  [[nodiscard]] Digest digest(const StepSettings& settings) {
    digest_.add("parameter.", objective_.parameters());
    digest_.add("buffer.", objective_.buffers());
    const ShowEntry add = [this](std::string_view name, std::span<const std::byte> bytes) {
      digest_.add(name, bytes);
    };
    StateVisitor memory = StateVisitor::to(add);
    enter("optimizer", settings);
    visit_memory(memory);
    enter({}, settings);
    return digest_.finish();
  }

  // The state that a step changes before its update.
  struct Before {
    std::vector<double> rule;
    RateAdjuster adjuster;
    std::optional<LossScaler> loss_scaler;
  };

  void take_back(const Before& before, const StepSettings& settings) noexcept {
    try {
      meter_.drop();
      loss_scaler_ = before.loss_scaler;
      adjuster_ = before.adjuster;
      load_numbers(rule_, before.rule, "the rule");
    } catch (...) {
      // The rule does not accept its own state, so the old one is lost.
      begin_change(settings);
    }
  }

  static void enter(std::string_view part, const StepSettings& settings) {
    if (settings.enter) settings.enter(part);
  }

  void begin_change(const StepSettings& settings) {
    changing_ = true;
    if (settings.before_change) settings.before_change();
  }

  [[nodiscard]] StepOutcome run_step(const StepPlan& step, const SampleOrder& samples,
                                     const StepSettings& settings) {
    const Stopwatch wall;
    place_ = {.epoch = settings.epoch, .step = step.index};
    exchange_seconds_.reset();
    StepOutcome outcome;
    StepRecord& record = outcome.record;
    record.epoch = settings.epoch;
    record.plan = step;
    record.assignment = options_.assignment;
    record.scale =
        static_cast<double>(step.batch_size) / static_cast<double>(options_.reference_batch_size);
    enter("optimizer", settings);
    meter_.begin_step(*optimizer_, workers_);
    enter(options_.own_reducer ? "reduce" : "", settings);
    const StepSum<T> sum = sum_of(record.plan, samples, settings);
    enter({}, settings);
    const Stopwatch update;
    const double size = step.size_in_minibatches(options_.minibatch_size);
    const std::span<const MinibatchRecord> minibatches = substeps_.records(record.plan);
    record.minibatches.assign(minibatches.begin(), minibatches.end());
    record.weight = weight_of(sum.scalars(), step);
    if (record.weight == 0.0) {
      // There is no mean without weight.
      record.loss = std::numeric_limits<double>::quiet_NaN();
      if (loss_scaler_) record.loss_scale = loss_scaler_->scale();
      record.applied = false;
      record.skipped = true;
    } else {
      if (record.weight) divide_by_weight(sum, size / *record.weight);
      record.loss = sum.scalars().loss / size;
      const bool finite = meter_.measure(sum, size, parameters(), workers_);
      record.gradient_norm = meter_.gradient_norm();
      outcome.groups = meter_.groups();
      outcome.from_pair = meter_.from_pair();
      record.applied = finite && std::isfinite(record.loss);
      if (loss_scaler_) update_loss_scale(record);
    }
    if (record.skipped) {
      record.gain = 0;
      begin_change(settings);
      meter_.forget_pair();
    } else {
      update_by_rule(sum.values(), step, settings, outcome);
    }
    if (settings.digest && (record.applied || record.skipped)) record.digest = digest(settings);
    record.seconds = timing(sum, update, wall);
    report_span(Activity::update, update.begun());
    return outcome;
  }

  [[nodiscard]] std::span<T> parameters() const { return objective_.flat_parameters(); }
  [[nodiscard]] std::span<T> shown(std::string_view weights) {
    return weights == kModelWeights ? optimizer_->shown() : others_.at(weights)->values();
  }

  // The sum of the weights of its minibatches; empty if their losses are means.
  [[nodiscard]] static std::optional<double> weight_of(const StepScalars& sum,
                                                       const StepPlan& step) {
    if (sum.weighted == 0) return std::nullopt;
    if (sum.weighted == sum.minibatches) return sum.weight;
    throw_error(
        "the loss has a weight in {} of the {} minibatches of step {} of the run; accepted: one in "
        "all of them, or none",
        sum.weighted, sum.minibatches, step.index.value() + 1);
  }

  // Scales a sum over weights to the sum that means of the minibatches would have, so that all
  // later code can divide by the size of the step.
  void divide_by_weight(const StepSum<T>& sum, double factor) {
    const auto of_values = static_cast<T>(factor);
    for (const std::span<T> part : {sum.values().first(parameters_), sum.values().last(squares_)}) {
      workers_.for_each_range(part.size(), [&](std::size_t begin, std::size_t end) {
        for (T& value : part.subspan(begin, end - begin)) value *= of_values;
      });
    }
    sum.scale(factor, static_cast<double>(of_values) * static_cast<double>(of_values));
  }

  // Sums the gradients of the step's minibatches; afterwards `step` is as it was finally done.
  [[nodiscard]] StepSum<T> sum_of(StepPlan& step, const SampleOrder& samples,
                                  const StepSettings& settings) {
    substeps_.begin_step(step);
    MinibatchScope<T> scope(objective_, workers_);
    const StepOfMinibatches of_step{.plan = step,
                                    .samples = samples,
                                    .epoch = settings.epoch,
                                    .loss_scale = loss_scaler_ ? loss_scaler_->scale() : 1};
    std::optional<QuietStretch> quiet;
    if (settings.quiet != nullptr) quiet.emplace(*settings.quiet);
    return host_executor_.run(
        step, options_.assignment,
        [&](const SubstepTask& task, PartialSum<T>& out) {
          substeps_.compute(of_step, task, static_cast<std::int64_t>(executor_.pool().id_of(&out)),
                            out);
        },
        [&](const StepPlan& attempt, std::span<const FaultRecord> faults, std::int64_t cores_left) {
          if (settings.on_fault) settings.on_fault(attempt, faults, cores_left);
          substeps_.begin_attempt();
          scope.begin();
        },
        at_once_in(step));
  }

  // Returns 1 if one minibatch has fewer samples: it is then weighted by itself.
  [[nodiscard]] std::int64_t at_once_in(const StepPlan& step) const {
    const bool whole =
        step.size_in_minibatches(options_.minibatch_size) == static_cast<double>(step.minibatches);
    return whole ? at_once_ : 1;
  }

  // Empty if nobody listens.
  [[nodiscard]] typename StepExecutor<T>::OnMerge on_merge() {
    if (!options_.on_span) return {};
    return [this](const Merge& merge) {
      Span span = place_;
      span.activity = Activity::merge;
      span.minibatch = merge.minibatch;
      span.minibatches = merge.minibatches;
      span.core = merge.core;
      span.cores = merge.cores;
      span.thread = merge.thread;
      span.begin = merge.begin;
      span.end = merge.end;
      options_.on_span(span);
    };
  }
  [[nodiscard]] std::unique_ptr<Reducer<T>> listened_reducer() {
    std::unique_ptr<Reducer<T>> reducer =
        make_step_reducer<T>(options_, chosen_reducer(options_, at_once_), sum_size_, workers_);
    if (options_.on_meeting) {
      reducer->observe_meetings(
          [this](const Meeting& meeting) { options_.on_meeting(place_.step, meeting); });
    }
    return reducer;
  }
  // Reports work on the whole step, which ends now.
  void report_span(Activity activity, Span::Moment begin) const {
    if (!options_.on_span) return;
    Span span = place_;
    span.activity = activity;
    span.begin = begin;
    span.end = std::chrono::steady_clock::now();
    options_.on_span(span);
  }

  void update_loss_scale(StepRecord& record) {
    record.loss_scale = loss_scaler_->scale();
    loss_scaler_->update(record.applied);
    record.skipped = !record.applied && !loss_scaler_->exhausted();
  }

  // The numbers of the optimizer in a step whose schedule sets such a momentum, so that the rule
  // and the adjuster continue from it.
  [[nodiscard]] OptimizerNumbers numbers_at(const std::optional<double>& momentum) const {
    OptimizerNumbers numbers = optimizer_->numbers();
    if (momentum && numbers.momentum) numbers.momentum = momentum;
    if (momentum && numbers.beta1) numbers.beta1 = momentum;
    return numbers;
  }

  void update_by_rule(std::span<T> sum, const StepPlan& step, const StepSettings& settings,
                      StepOutcome& outcome) {
    const RuleNeeds needs = rule_.needs();
    enter("rule", settings);
    const RuleInput input{
        .batch_size = step.batch_size,
        .minibatch_size = options_.minibatch_size,
        .reference_batch_size = options_.reference_batch_size,
        .base_learning_rate = settings.base_learning_rate,
        .epoch_size = objective_.samples(),
        .groups = needs.group_norms ? meter_.groups() : std::span<const GradientNorms>(),
        .metric_groups = meter_.metric_groups(),
        .from_pair = outcome.from_pair,
        .layers = needs.parameter_norms ? meter_.layers() : std::span<const ParameterNorms>(),
        .optimizer = numbers_at(settings.momentum),
        .group_count = options_.groups.size() + 1,
        .layer_count = layout_.layers()};
    const Rates answer = rule_.rates(input);
    enter({}, settings);
    StepRecord& record = outcome.record;
    record.learning_rate = answer.learning_rate;
    record.gain = answer.gain;
    if (!record.applied) return;
    require_applicable(answer, {.rule = options_.rule.text(),
                                .place = place_of(settings.epoch, step.index),
                                .groups = options_.groups.size() + 1,
                                .layers = layout_.layers(),
                                .optimizer = input.optimizer});
    Rates rates = adjuster_.adjust(answer, input, rule_);
    if (settings.momentum) {
      OptimizerAnswer& answered = rates.optimizer;
      if (!answered.momentum) answered.momentum = input.optimizer.momentum;
      if (!answered.beta1) answered.beta1 = input.optimizer.beta1;
    }
    record.learning_rate = rates.learning_rate;
    record.optimizer = rates.optimizer;
    const double decay = options_.optimizer.weight_decay;
    if (decay != 0 && rates.weight_decay_factor != 1) {
      record.weight_decay = decay * rates.weight_decay_factor;
    }
    if (settings.inspect) show_gradients(sum, step, settings.inspect);
    apply(sum, step, rates, settings, record.gradient_norm);
  }

  // Shows the mean gradients, in a copy.
  void show_gradients(std::span<const T> sum, const StepPlan& step,
                      const std::function<void(std::span<const NamedArray>)>& inspect) const {
    std::vector<T> mean(parameters_);
    const auto size = static_cast<T>(step.size_in_minibatches(options_.minibatch_size));
    std::transform(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(parameters_),
                   mean.begin(), [size](T value) { return value / size; });
    std::vector<NamedArray> gradients;
    std::size_t begin = 0;
    for (const TrainedArray& trained : objective_.trained()) {
      gradients.push_back(trained.array);
      gradients.back().data = mean.data() + begin;
      begin = trained.end;
    }
    inspect(gradients);
  }

  void apply(std::span<T> sum, const StepPlan& step, const Rates& rates,
             const StepSettings& settings, const std::optional<double>& norm) {
    const bool of_mean = rule_.reduction() == GradientReduction::mean;
    enter("transform", settings);
    const AppliedGradient<T> applied = preparation_.prepare(
        {.sum = sum.first(parameters_),
         .parameters = parameters(),
         .step = step,
         .epoch = settings.epoch,
         .norm = norm,
         .of_mean = of_mean,
         .norms_wanted = optimizer_->needs_parameter_norms()},
        [&] { begin_change(settings); }, workers_);
    meter_.set_applied(static_cast<double>(applied.factor), applied.changed, workers_);
    const std::span<const T> averaged = sum.subspan(parameters_, averaged_);
    const std::vector<std::size_t> unreached = objective_.unreached(averaged);
    begin_change(settings);
    const double size = step.size_in_minibatches(options_.minibatch_size);
    // The factor by which clipping has shortened the gradient.
    const double shortening = static_cast<double>(applied.factor) * (of_mean ? size : 1);
    for (const auto& [name, weights] : others_) weights->begin(parameters());
    enter("optimizer", settings);
    optimizer_->step({.parameters = parameters(),
                      .gradient_sum = sum.first(parameters_),
                      .gradient_factor = applied.factor,
                      .clip = applied.clip,
                      .rates = rates,
                      .batch_size = step.batch_size,
                      .reference_batch_size = options_.reference_batch_size,
                      .layers = meter_.layers(),
                      .summed = of_mean ? 1 : size,
                      .unreached = unreached,
                      .square_sum = sum.last(squares_),
                      .square_factor = static_cast<T>(shortening * shortening / size)},
                     workers_);
    enter({}, settings);
    for (const auto& [name, weights] : others_) {
      weights->move(parameters(), step.batch_size, workers_);
    }
    objective_.move_averages(averaged, step.minibatches);
  }

  [[nodiscard]] StepTiming timing(const StepSum<T>& sum, const Stopwatch& update,
                                  const Stopwatch& wall) const {
    const double data_seconds = substeps_.data_seconds();
    return {.data = data_seconds,
            .compute = sum.seconds().compute - data_seconds,
            .reduce = sum.seconds().reduce,
            .exchange = exchange_seconds_,
            .update = update.seconds(),
            .wall = wall.seconds()};
  }

  ObjectiveOf<T>& objective_;
  Workers& workers_;
  Rule& rule_;
  const TrainOptions& options_;
  // The numbers of values in the parts of a leaf: parameters_, averaged_ and squares_.
  std::size_t parameters_;
  std::size_t averaged_;
  ParameterLayout layout_;
  std::unique_ptr<FlatOptimizer<T>> optimizer_;
  std::size_t squares_;
  RateAdjuster adjuster_;
  StepMeter<T> meter_;
  GradientPreparation<T> preparation_;
  // The place in training, for the spans of the step.
  Span place_;
  // Set once the hosts have exchanged the sums of the current step.
  std::optional<double> exchange_seconds_;
  ReducerSize sum_size_;
  std::int64_t at_once_;
  StepExecutor<T> executor_;
  FaultyExecutor<T> faulty_executor_;
  HostExecutor<T> host_executor_;
  Substeps<T> substeps_;
  // Weights beside the model's, by name.
  std::map<std::string_view, std::unique_ptr<OtherWeights<T>>> others_;
  StateDigest digest_;
  std::optional<LossScaler> loss_scaler_;
  // True once the step has changed something that cannot be undone.
  bool changing_ = false;
};

template <class T>
std::unique_ptr<StepEngine> engine_of(const StepEngineParts& parts, const TrainOptions& options,
                                      const StepRange& steps) {
  auto& objective = dynamic_cast<ObjectiveOf<T>&>(parts.objective);
  require_training_memory(training_sizes({.parameters = objective.flat_parameters().size(),
                                          .buffers = objective.averaged(),
                                          .value_bytes = sizeof(T)},
                                         parts, options, steps));
  return std::make_unique<TypedStepEngine<T>>(objective, parts, options, steps.most);
}

}  // namespace

std::unique_ptr<StepEngine> make_step_engine(const StepEngineParts& parts,
                                             const TrainOptions& options, const StepRange& steps) {
  return parts.objective.type() == ElementType::f64 ? engine_of<double>(parts, options, steps)
                                                    : engine_of<float>(parts, options, steps);
}

}  // namespace rubato
