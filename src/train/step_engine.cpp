#include "step_engine.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <rubato/collective/kernels.hpp>
#include <rubato/core/check.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/stopwatch.hpp>
#include <rubato/machine/openblas.hpp>
#include <rubato/model/half.hpp>
#include <rubato/model/random_stream.hpp>
#include <rubato/operators/operators.hpp>
#include <rubato/optim/lookahead.hpp>
#include <rubato/optim/make_optimizer.hpp>
#include <rubato/runtime/faulty_executor.hpp>
#include <rubato/runtime/step_executor.hpp>
#include <rubato/scaling/loss_scaler.hpp>

#include "autocast.hpp"
#include "checked_rates.hpp"
#include "gather.hpp"
#include "gradient_meter.hpp"
#include "gradient_pair.hpp"
#include "master_weights.hpp"
#include "place.hpp"
#include "rethrow.hpp"
#include "step_buffers.hpp"
#include "training_memory.hpp"
#include "trial.hpp"

namespace rubato {

namespace {

ParameterLayout layout_of(const SharedState& state, std::span<const ParameterGroup> groups) {
  ParameterLayout layout{.layer_ends = state.parameter_layout().ends(), .layer_groups = {}};
  for (const NamedTensor& named : state.trained()) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
      return group.takes(named);
    });
    // Those that no group takes are group 0.
    layout.layer_groups.push_back(
        found == groups.end() ? 0 : static_cast<std::size_t>(found - groups.begin()) + 1);
  }
  return layout;
}

std::vector<GroupOptions> options_of(std::span<const ParameterGroup> groups) {
  std::vector<GroupOptions> options(1);
  for (const ParameterGroup& group : groups) options.push_back(group.options);
  return options;
}

template <class T>
std::unique_ptr<FlatOptimizer<T>> optimizer_of(const TrainOptions& options,
                                               const ParameterLayout& layout,
                                               const SharedState& state) {
  std::unique_ptr<FlatOptimizer<T>> optimizer;
  if (options.own_optimizer) {
    optimizer = std::make_unique<TorchOptimizer<T>>(layout, state, options.own_optimizer,
                                                    options_of(options.groups));
  } else {
    optimizer = make_optimizer<T>(options.optimizer, layout, state, options_of(options.groups));
  }
  if (!options.lookahead) return optimizer;
  return std::make_unique<Lookahead<T>>(std::move(optimizer), *options.lookahead);
}

// A leaf is the gradient of a minibatch, laid out as the parameters, and behind it by how much its
// forward changed the floating-point buffers: the tree sums both.
template <class T>
class TypedStepEngine final : public StepEngine {
 public:
  TypedStepEngine(const StepEngineParts& parts, const TrainOptions& options,
                  std::int64_t max_minibatches)
      : parts_(parts),
        options_(options),
        state_(parts.replicas.state()),
        parameters_(static_cast<std::size_t>(state_.parameter_layout().size())),
        buffers_(state_, parts.workers.threads()),
        layout_(layout_of(state_, options.groups)),
        blocks_(layout_.layer_ends),
        optimizer_(optimizer_of<T>(options, layout_, state_)),
        group_norms_(parts.rule.needs().group_norms || options.log_noise),
        layer_norms_(parts.rule.needs().layer_norms || optimizer_->needs_layer_norms()),
        executor_(parts.workers,
                  {.values = parameters_ + buffers_.size(),
                   .max_leaves = max_minibatches,
                   .norms = group_norms_ ? blocks_ : NormBlocks()},
                  options.reduce),
        faulty_executor_(executor_, options.faults, options.stragglers),
        gradient_meter_(blocks_),
        gradient_pair_(group_norms_ ? blocks_ : no_blocks_),
        weight_meter_(blocks_),
        groups_(options.groups.size() + 1),
        layers_(layout_.layers()),
        half_(options.precision == Precision::fp16),
        loss_scaler_(options.loss_scale),
        gradient_views_(executor_.pool().max_buffers()),
        threads_(static_cast<std::size_t>(parts.workers.threads())) {
    if (parts.rule.reduction() == GradientReduction::sum && !optimizer_->scales_weight_decay()) {
      throw Error(
          fmt::format("rule {} sums gradients, which the optimizer cannot follow; accepted: "
                      "with optimizer sgd or lars",
                      parts.rule.name()));
    }
  }

  StepOutcome run(const StepPlan& step, const EpochSamples& samples,
                  const StepSettings& settings) override {
    const Stopwatch wall;
    const auto begin_attempt = [this] {
      for (ThreadState& thread : threads_) thread.data_seconds = 0;
      buffers_.begin();
    };
    begin_attempt();
    StepPlan done = step;
    if (options_.log_minibatches) {
      minibatches_.assign(static_cast<std::size_t>(step.minibatches), {});
    }
    std::optional<typename MasterWeights<T>::Rounded> rounded;
    if (half_) rounded.emplace(master_weights_, parameters(), parts_.workers);
    const auto sum = faulty_executor_.run(
        done, options_.assignment,
        [&](CoreRank, MinibatchIndex minibatch, int thread, PartialSum<T>& out) {
          const StreamKey stream{.seed = options_.seed,
                                 .epoch = settings.epoch.value(),
                                 .step = step.index.value(),
                                 .minibatch = minibatch.value()};
          const std::int64_t of_step = minibatch.value() - step.first_minibatch.value();
          Work work;
          try {
            substep(samples.minibatch(minibatch), stream, of_step == 0, thread,
                    parts_.replicas.pick(thread, of_step + step.index.value()), out, work);
            if (options_.log_minibatches) log_minibatch(step, minibatch, out);
          } catch (...) {
            rethrow_with_place(
                work.phase, fmt::format("minibatch {} of {} at {}", of_step + 1, step.minibatches,
                                        place_of(settings.epoch, step.index)));
          }
        },
        [&](const StepPlan& attempt, std::span<const FaultRecord> faults, std::int64_t cores_left) {
          if (settings.on_fault) settings.on_fault(attempt, faults, cores_left);
          begin_attempt();
        });
    rounded.reset();
    // Training on several hosts would combine this host's sum with the others' here.
    const Stopwatch update;
    StepOutcome outcome;
    outcome.cores = done.cores;
    outcome.loss = sum.scalars().loss / static_cast<double>(step.minibatches);
    const bool finite = measure(sum, step, outcome);
    outcome.applied = finite && std::isfinite(outcome.loss);
    if (settings.before_change) settings.before_change();
    if (options_.log_minibatches) outcome.minibatches = logged_minibatches(done);
    if (half_) update_loss_scale(outcome);
    if (outcome.skipped) {
      outcome.gain = 0;
      gradient_pair_.forget();
      outcome.seconds = timing(sum, update, wall);
      return outcome;
    }
    const Rates rates = parts_.rule.rates(
        {.batch_size = step.batch_size,
         .minibatch_size = options_.minibatch_size,
         .reference_batch_size = options_.reference_batch_size,
         .base_learning_rate = settings.base_learning_rate,
         .epoch_size = parts_.dataset.size(),
         .groups = parts_.rule.needs().group_norms ? std::span<const GradientNorms>(groups_)
                                                   : std::span<const GradientNorms>(),
         .from_pair = outcome.from_pair,
         .layers = parts_.rule.needs().layer_norms ? std::span<const LayerNorms>(layers_)
                                                   : std::span<const LayerNorms>(),
         .group_count = groups_.size(),
         .layer_count = layers_.size()});
    outcome.learning_rate = rates.learning_rate;
    outcome.gain = rates.gain;
    if (outcome.applied) {
      require_applicable(rates, {.rule = options_.rule,
                                 .place = place_of(settings.epoch, step.index),
                                 .groups = groups_.size(),
                                 .layers = layers_.size()});
      if (settings.inspect) show_gradients(sum.values(), step, settings.inspect);
      apply(sum.values(), step, rates, outcome);
    }
    outcome.seconds = timing(sum, update, wall);
    return outcome;
  }

  void try_out(Replica& replica) override {
    Work work;
    try {
      const StreamKey stream{.seed = options_.seed};
      const RandomStream::Scope random = threads_.front().random.begin(stream);
      const at::Tensor gradients = at::zeros_like(state_.flat_parameters());
      const std::vector<at::Tensor> views = state_.parameter_layout().views(gradients);
      std::optional<typename MasterWeights<T>::Rounded> rounded;
      if (half_) rounded.emplace(master_weights_, parameters(), parts_.workers);
      for (const auto& samples : trial_minibatches(parts_.dataset, options_.minibatch_size)) {
        static_cast<void>(forward_backward(replica, samples, views, work));
      }
    } catch (...) {
      rethrow_with_place(work.phase,
                         place_of_trial(parts_.dataset, options_.minibatch_size, "training data"));
    }
  }

  [[nodiscard]] std::int64_t gradient_buffers() const override {
    return executor_.pool().high_water();
  }
  void save(State& state) const override {
    optimizer_->save(state);
    gradient_pair_.save(state);
    if (half_) state.put(kLossScale, loss_scaler_.state());
  }
  void load(const State& state) override {
    optimizer_->load(state);
    if (group_norms_) gradient_pair_.load(state);
    if (half_) loss_scaler_.load_state(state.values<double>(kLossScale));
  }

 private:
  static constexpr std::string_view kLossScale = "loss_scale";

  // One for each thread, on lines of its own.
  struct alignas(128) ThreadState {
    double data_seconds = 0;
    RandomStream random{};
  };

  // How far the work on a minibatch has come.
  struct Work {
    Phase phase = Phase::data;
    double data_seconds = 0;
  };

  void substep(std::span<const std::int64_t> samples, const StreamKey& stream, bool first,
               int thread, Replica& replica, PartialSum<T>& out, Work& work) {
    ThreadState& own = threads_[static_cast<std::size_t>(thread)];
    const RandomStream::Scope random = own.random.begin(stream);
    out.scalars.loss = forward_backward(replica, samples, gradients_of(out), work);
    if (half_) unscale(out.values.first(parameters_));
    own.data_seconds += work.data_seconds;
    buffers_.note(replica, first, thread, out.values.subspan(parameters_));
  }

  // The loss of the samples; their gradients are added to `gradients`.
  double forward_backward(Replica& replica, std::span<const std::int64_t> samples,
                          const std::vector<at::Tensor>& gradients, Work& work) const {
    // Whatever the caller of fit() has switched off.
    const at::AutoGradMode with_gradients(true);
    const OperatorScope operators(options_.operators);
    replica.begin(gradients);
    const Stopwatch data;
    work.phase = Phase::data;
    at::Tensor input = gather(parts_.dataset.inputs, samples);
    if (options_.augment) input = options_.augment(input);
    const at::Tensor target = gather(parts_.dataset.targets, samples);
    work.data_seconds += data.seconds();
    const double loss = half_ ? half_substep(replica, input, target, work.phase)
                              : full_substep(replica, input, target, work.phase);
    replica.check_gradients(gradients);
    return loss;
  }

  static void require_differentiable(const at::Tensor& loss) {
    if (loss.dim() != 0 || !loss.requires_grad()) {
      throw Error(
          fmt::format("the loss of a minibatch must be one differentiable number; it has {} "
                      "dimension{} and {} gradient",
                      loss.dim(), loss.dim() == 1 ? "" : "s", loss.requires_grad() ? "a" : "no"));
    }
  }

  double full_substep(Replica& replica, const at::Tensor& input, const at::Tensor& target,
                      Phase& phase) const {
    const at::Tensor loss = loss_of(replica, input, target, phase);
    require_differentiable(loss);
    phase = Phase::backward;
    loss.backward();
    return loss.item<double>();
  }

  // The model in float16, from its inputs to its outputs and back; the loss in between, and its
  // scaling, in float32.
  double half_substep(Replica& replica, at::Tensor& input, const at::Tensor& target,
                      Phase& phase) const {
    round_to_half(input);
    at::Tensor output;
    phase = Phase::forward;
    {
      const HalfStorage storage(true);
      output = replica.forward(input);
    }
    phase = Phase::loss;
    const at::Tensor of_loss = output.detach().requires_grad_();
    const at::Tensor loss = parts_.loss(of_loss, target);
    require_differentiable(loss);
    phase = Phase::backward;
    (loss * loss_scaler_.scale()).backward();
    round_to_half(of_loss.grad());
    const HalfStorage storage(true);
    output.backward(of_loss.grad());
    return loss.item<double>();
  }

  // What overflowed stays infinite, or becomes NaN.
  void unscale(std::span<T> gradient) const {
    const T factor = static_cast<T>(1 / loss_scaler_.scale());
    for (T& value : gradient) value *= factor;
  }

  void update_loss_scale(StepOutcome& outcome) {
    outcome.loss_scale = loss_scaler_.scale();
    loss_scaler_.update(outcome.applied);
    outcome.skipped = !outcome.applied && !loss_scaler_.exhausted();
  }

  // Minibatches have places of their own, whoever computes them.
  void log_minibatch(const StepPlan& step, MinibatchIndex minibatch, const PartialSum<T>& out) {
    const auto place = static_cast<std::size_t>(minibatch.value() - step.first_minibatch.value());
    minibatches_[place] = {.minibatch = minibatch,
                           .core = {},
                           .loss = out.scalars.loss,
                           .gradient_norm = std::sqrt(
                               squared_norm(std::span<const T>(out.values).first(parameters_)))};
  }

  // With who has computed them, after all faults.
  std::span<const MinibatchRecord> logged_minibatches(const StepPlan& done) {
    for (CoreRank core; core.value() < done.cores; ++core) {
      const MinibatchRun share = done.share_of(core, options_.assignment);
      for (std::int64_t substep = 0; substep < share.count; ++substep) {
        const std::int64_t place = share[substep].value() - done.first_minibatch.value();
        MinibatchRecord& record = minibatches_[static_cast<std::size_t>(place)];
        record.core = core;
        record.substep = substep;
      }
    }
    return minibatches_;
  }

  [[nodiscard]] StepTiming timing(const StepSum<T>& sum, const Stopwatch& update,
                                  const Stopwatch& wall) const {
    double data_seconds = 0;
    for (const ThreadState& thread : threads_) data_seconds += thread.data_seconds;
    return {.data = data_seconds,
            .compute = sum.seconds().compute - data_seconds,
            .reduce = sum.seconds().reduce,
            .update = update.seconds(),
            .wall = wall.seconds()};
  }

  at::Tensor loss_of(Replica& replica, const at::Tensor& input, const at::Tensor& target,
                     Phase& phase) const {
    // Backward follows the types of forward by itself.
    const AutocastGuard autocast(options_.precision == Precision::bf16);
    phase = Phase::forward;
    const at::Tensor output = replica.forward(input);
    phase = Phase::loss;
    return parts_.loss(output, target);
  }

  // The gradient part of a pool buffer as one view for each parameter. Made at the first use of the
  // buffer; whoever holds the buffer is alone with its views.
  const std::vector<at::Tensor>& gradients_of(PartialSum<T>& sum) {
    std::vector<at::Tensor>& views =
        gradient_views_[static_cast<std::size_t>(executor_.pool().id_of(&sum))];
    if (views.empty()) views = state_.parameter_layout().views(sum.values.data());
    return views;
  }

  // Whether the sum is finite; and what the rule, the optimizer and the record want to know of it.
  bool measure(const StepSum<T>& sum, const StepPlan& step, StepOutcome& outcome) {
    const std::span<const T> values = sum.values();
    if (!group_norms_ && !layer_norms_ && !options_.clip_norm) {
      return is_finite(values);
    }
    const bool finite = gradient_meter_.measure(values, parts_.workers);
    const auto minibatches = static_cast<double>(step.minibatches);
    // Of the mean, as the meter's are of the sum.
    const double of_mean = 1 / (minibatches * minibatches);
    double square = 0;
    for (const double layer : gradient_meter_.layers()) square += layer * of_mean;
    outcome.gradient_norm = std::sqrt(square);
    if (group_norms_) {
      std::fill(groups_.begin(), groups_.end(), GradientNorms());
      sum_squares(blocks_, sum.squares(), [&](std::size_t layer) -> double& {
        return groups_[layout_.layer_groups[layer]].minibatch_square;
      });
      for (GradientNorms& group : groups_) group.minibatch_square /= minibatches;
      for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
        groups_[layout_.layer_groups[layer]].mean_square +=
            gradient_meter_.layers()[layer] * of_mean;
      }
      outcome.from_pair = finite && measure_pair(values, step);
      outcome.groups = groups_;
    }
    if (layer_norms_) {
      static_cast<void>(weight_meter_.measure(parameters(), parts_.workers));
      for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
        const std::size_t group = layout_.layer_groups[layer];
        const double decay = options_.optimizer.weight_decay;
        layers_[layer] = {
            .weight_square = weight_meter_.layers()[layer],
            .gradient_square = gradient_meter_.layers()[layer] * of_mean,
            .weight_decay = group == 0
                                ? decay
                                : options_.groups[group - 1].options.weight_decay.value_or(decay)};
      }
    }
    return finite;
  }

  // Of one minibatch alone nothing can be said of the noise: makes the groups' norms those of this
  // step and the one before, where both had one. Whether it did.
  bool measure_pair(std::span<const T> values, const StepPlan& step) {
    if (step.minibatches > 1) gradient_pair_.forget();
    if (step.minibatches > 1 || !gradient_pair_.take(values.first(parameters_), parts_.workers)) {
      return false;
    }
    std::fill(groups_.begin(), groups_.end(), GradientNorms());
    for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
      GradientNorms& group = groups_[layout_.layer_groups[layer]];
      group.minibatch_square +=
          (gradient_meter_.layers()[layer] + gradient_pair_.previous_layers()[layer]) / 2;
      group.mean_square += gradient_pair_.mean_layers()[layer];
    }
    return true;
  }

  [[nodiscard]] bool is_finite(std::span<const T> values) const {
    std::atomic<bool> finite{true};
    parts_.workers.for_each_range(values.size(), [&](std::size_t begin, std::size_t end) {
      // Relaxed: read after the threads have been joined.
      if (!all_finite(values.subspan(begin, end - begin))) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    return finite;
  }

  void show_gradients(std::span<T> sum, const StepPlan& step,
                      const std::function<void(std::span<const NamedTensor>)>& inspect) const {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> views = state_.parameter_layout().views(sum.data());
    std::vector<NamedTensor> gradients;
    for (std::size_t i = 0; i < views.size(); ++i) {
      gradients.push_back(
          {state_.trained()[i].name, views[i] / static_cast<double>(step.minibatches)});
    }
    inspect(gradients);
  }

  [[nodiscard]] std::span<T> parameters() const {
    return {state_.flat_parameters().data_ptr<T>(), parameters_};
  }

  void apply(std::span<T> sum, const StepPlan& step, const Rates& rates,
             const StepOutcome& outcome) {
    T factor = parts_.rule.reduction() == GradientReduction::mean
                   ? T{1} / static_cast<T>(step.minibatches)
                   : T{1};
    if (options_.clip_norm) factor *= static_cast<T>(shortening(*outcome.gradient_norm));
    T clip = std::numeric_limits<T>::infinity();
    if (options_.clip_value) {
      clip = static_cast<T>(*options_.clip_value);
      const T of_sum = clip * static_cast<T>(step.minibatches);
      if (parts_.rule.reduction() == GradientReduction::sum) clip = of_sum;
      if (optimizer_->needs_layer_norms()) clip_sum(sum, of_sum);
    }
    if (layer_norms_) {
      // The optimizer's gradient is the one it applies.
      const double of_sum = static_cast<double>(factor) * static_cast<double>(factor);
      for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
        layers_[layer].gradient_square = gradient_meter_.layers()[layer] * of_sum;
      }
    }
    optimizer_->step({.parameters = parameters(),
                      .gradient_sum = sum.first(parameters_),
                      .gradient_factor = factor,
                      .clip = clip,
                      .rates = rates,
                      .layers = layers_},
                     parts_.workers);
    buffers_.apply(sum.subspan(parameters_), step.minibatches);
  }

  // For an optimizer that goes by the norms of the gradient it applies: clips in a pass of its own,
  // and takes the norms again.
  void clip_sum(std::span<T> sum, T clip) {
    const std::span<T> gradient = sum.first(parameters_);
    parts_.workers.for_each_range(parameters_, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) gradient[i] = std::clamp(gradient[i], -clip, clip);
    });
    static_cast<void>(gradient_meter_.measure(gradient, parts_.workers));
  }

  // The factor by which a gradient of that norm is to be shortened: torch's clip_grad_norm_.
  [[nodiscard]] double shortening(double norm) const {
    constexpr double kTiny = 1e-6;
    return std::min(1.0, *options_.clip_norm / (norm + kTiny));
  }

  StepEngineParts parts_;
  const TrainOptions& options_;
  const SharedState& state_;
  std::size_t parameters_;
  StepBuffers<T> buffers_;
  ParameterLayout layout_;
  NormBlocks blocks_;
  std::unique_ptr<FlatOptimizer<T>> optimizer_;
  // What is measured: of each group, of each tensor.
  bool group_norms_;
  bool layer_norms_;
  StepExecutor<T> executor_;
  FaultyExecutor<T> faulty_executor_;
  GradientMeter<T> gradient_meter_;
  NormBlocks no_blocks_;
  // Where group norms are measured, for steps of one minibatch.
  GradientPair<T> gradient_pair_;
  GradientMeter<T> weight_meter_;
  std::vector<GradientNorms> groups_;
  std::vector<LayerNorms> layers_;
  // With Precision::fp16.
  bool half_;
  LossScaler loss_scaler_;
  MasterWeights<T> master_weights_;
  // Of the step, where they are logged.
  std::vector<MinibatchRecord> minibatches_;
  std::vector<std::vector<at::Tensor>> gradient_views_;
  std::vector<ThreadState> threads_;
};

}  // namespace

namespace {

// What the optimizer remembers of every parameter, in values.
int values_of(const TrainOptions& options) {
  const OptimizerOptions& optimizer = options.optimizer;
  const int momentum = optimizer.momentum != 0 ? 1 : 0;
  const int lookahead = options.lookahead ? 1 : 0;
  if (options.own_optimizer) return lookahead;
  switch (optimizer.kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return lookahead + (optimizer.amsgrad ? 3 : 2);
    case OptimizerKind::rmsprop:
      return lookahead + momentum + (optimizer.centered ? 2 : 1);
    case OptimizerKind::adagrad:
      return lookahead + 1;
    default:
      return lookahead + momentum;
  }
}

TrainingSizes sizes_of(const StepEngineParts& parts, const TrainOptions& options,
                       std::int64_t max_minibatches) {
  const SharedState& state = parts.replicas.state();
  const at::Tensor& inputs = parts.dataset.inputs;
  return {.parameters = static_cast<std::size_t>(state.parameter_layout().size()),
          .buffers = static_cast<std::size_t>(state.buffer_layout().size()),
          .value_bytes = c10::elementSize(state.type()),
          .sample_bytes = inputs.nbytes() / static_cast<std::size_t>(inputs.size(0)),
          .minibatch = options.minibatch_size,
          .minibatches = std::min(max_minibatches, parts.dataset.size() / options.minibatch_size),
          .cores = options.cores,
          .threads = parts.workers.threads(),
          .reducer = options.reduce,
          .optimizer_values = values_of(options),
          .openblas = loaded_openblas().has_value()};
}

}  // namespace

std::unique_ptr<StepEngine> make_step_engine(const StepEngineParts& parts,
                                             const TrainOptions& options,
                                             std::int64_t max_minibatches) {
  require_training_memory(sizes_of(parts, options, max_minibatches));
  if (parts.replicas.state().type() == at::kDouble) {
    if (options.precision == Precision::fp16) {
      throw Error("precision fp16: the model's parameters are float64; accepted: with float32");
    }
    return std::make_unique<TypedStepEngine<double>>(parts, options, max_minibatches);
  }
  return std::make_unique<TypedStepEngine<float>>(parts, options, max_minibatches);
}

}  // namespace rubato
