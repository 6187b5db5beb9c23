#include "step_engine.hpp"

#include <atomic>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <rubato/collective/kernels.hpp>
#include <rubato/core/check.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/stopwatch.hpp>
#include <rubato/runtime/step_executor.hpp>

namespace rubato {

namespace {

at::Tensor gather(const at::Tensor& all, std::span<const std::int64_t> samples) {
  // from_blob() takes no pointer to const; index_select() only reads.
  auto* indices =
      const_cast<std::int64_t*>(samples.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return all.index_select(
      0, at::from_blob(indices, {static_cast<std::int64_t>(samples.size())}, at::kLong));
}

// A leaf is the gradient of a minibatch, laid out as the parameters, and behind it by how much its
// forward changed the floating-point buffers: the tree sums both, and both are averaged in the end.
template <class T>
class TypedStepEngine final : public StepEngine {
 public:
  TypedStepEngine(const StepEngineParts& parts, const SgdOptions& sgd, std::int64_t max_minibatches,
                  std::string_view reduce)
      : parts_(parts),
        state_(parts.replicas.state()),
        parameters_(static_cast<std::size_t>(state_.parameter_layout().size())),
        buffers_(static_cast<std::size_t>(state_.buffer_layout().size())),
        executor_(parts.workers, parameters_ + buffers_, max_minibatches, reduce),
        sgd_(parameters_, sgd),
        gradient_views_(executor_.pool().max_buffers()),
        threads_(static_cast<std::size_t>(parts.workers.threads())) {
    for (const at::Tensor& counter : state_.counters()) next_counters_.push_back(counter.clone());
  }

  StepOutcome run(const StepPlan& step, const EpochSamples& samples, Rule& rule,
                  const StepSettings& settings) override {
    const Stopwatch wall;
    for (ThreadState& thread : threads_) thread.data_seconds = 0;
    const auto sum = executor_.run(
        step, settings.assignment,
        [&](CoreRank, MinibatchIndex minibatch, int thread, PartialSum<T>& out) {
          substep(samples.minibatch(minibatch), minibatch == step.first_minibatch, thread, out);
        });
    // Training on several hosts would combine this host's sum with the others' here.
    const Stopwatch update;
    StepOutcome outcome;
    outcome.loss = sum.scalars().loss / static_cast<double>(step.minibatches);
    RuleInput input = settings.rule_input;
    input.batch_size = step.batch_size;
    outcome.rates = rule.rates(input);
    outcome.applied = std::isfinite(outcome.loss) && is_finite(sum.values());
    if (outcome.applied) apply(sum.values(), step, rule.reduction(), outcome.rates);
    double data_seconds = 0;
    for (const ThreadState& thread : threads_) data_seconds += thread.data_seconds;
    outcome.seconds = {.data = data_seconds,
                       .compute = sum.seconds().compute - data_seconds,
                       .reduce = sum.seconds().reduce,
                       .update = update.seconds(),
                       .wall = wall.seconds()};
    return outcome;
  }

  [[nodiscard]] std::int64_t gradient_buffers() const override {
    return executor_.pool().high_water();
  }

 private:
  // One for each thread, on lines of its own.
  struct alignas(128) ThreadState {
    double data_seconds = 0;
  };

  void substep(std::span<const std::int64_t> samples, bool first, int thread, PartialSum<T>& out) {
    // Whatever the caller of fit() has switched off.
    const at::AutoGradMode with_gradients(true);
    Replica& replica = parts_.replicas.of_thread(thread);
    const std::vector<at::Tensor>& gradients = gradients_of(out);
    replica.begin(gradients);
    const Stopwatch data;
    const at::Tensor input = gather(parts_.dataset.inputs, samples);
    const at::Tensor target = gather(parts_.dataset.targets, samples);
    threads_[static_cast<std::size_t>(thread)].data_seconds += data.seconds();
    const at::Tensor loss = parts_.loss(replica.forward(input), target);
    if (loss.dim() != 0 || !loss.requires_grad()) {
      throw Error(
          fmt::format("the loss of a minibatch must be one differentiable number; it has {} "
                      "dimensions and {} gradient",
                      loss.dim(), loss.requires_grad() ? "a" : "no"));
    }
    loss.backward();
    replica.check_gradients(gradients);
    out.scalars.loss = loss.item<double>();
    if (buffers_ > 0) write_buffer_changes(replica, out.values.subspan(parameters_));
    // Counters advance once for a step, as its first minibatch advances them.
    if (first) copy_counters(replica);
  }

  // The gradient part of a pool buffer as one view for each parameter. Made at the first use of the
  // buffer; whoever holds the buffer is alone with its views.
  const std::vector<at::Tensor>& gradients_of(PartialSum<T>& sum) {
    std::vector<at::Tensor>& views =
        gradient_views_[static_cast<std::size_t>(executor_.pool().id_of(&sum))];
    if (views.empty()) views = state_.parameter_layout().views(sum.values.data());
    return views;
  }

  // By how much the forward of a minibatch changed the buffers. Not what it left in them: the mean
  // of equal values is not always that value, and a sum of masks may be infinite. So what no
  // forward writes to keeps its bits, infinite ones included.
  void write_buffer_changes(const Replica& replica, std::span<T> changes) const {
    const T* before = state_.flat_buffers().data_ptr<T>();
    const T* after = replica.flat_buffers().data_ptr<T>();
    for (std::size_t i = 0; i < buffers_; ++i) {
      changes[i] = after[i] == before[i] ? T{0} : after[i] - before[i];
    }
  }

  void copy_counters(const Replica& replica) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < next_counters_.size(); ++i) {
      next_counters_[i].copy_(replica.counters()[i].tensor);
    }
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

  void apply(std::span<const T> sum, const StepPlan& step, GradientReduction reduction,
             const Rates& rates) {
    sgd_.step({state_.flat_parameters().data_ptr<T>(), parameters_}, sum.first(parameters_),
              step.minibatches, reduction, rates, parts_.workers);
    T* shared = buffers_ > 0 ? state_.flat_buffers().data_ptr<T>() : nullptr;
    for (std::size_t i = 0; i < buffers_; ++i) {
      const T change = sum[parameters_ + i];
      if (change != T{0}) shared[i] += change / static_cast<T>(step.minibatches);
    }
    for (std::size_t i = 0; i < next_counters_.size(); ++i) {
      state_.counters()[i].copy_(next_counters_[i]);
    }
  }

  StepEngineParts parts_;
  const SharedState& state_;
  std::size_t parameters_;
  std::size_t buffers_;
  StepExecutor<T> executor_;
  Sgd<T> sgd_;
  std::vector<std::vector<at::Tensor>> gradient_views_;
  std::vector<at::Tensor> next_counters_;
  std::vector<ThreadState> threads_;
};

}  // namespace

std::unique_ptr<StepEngine> make_step_engine(const StepEngineParts& parts, const SgdOptions& sgd,
                                             std::int64_t max_minibatches,
                                             std::string_view reduce) {
  if (parts.replicas.state().type() == at::kDouble) {
    return std::make_unique<TypedStepEngine<double>>(parts, sgd, max_minibatches, reduce);
  }
  return std::make_unique<TypedStepEngine<float>>(parts, sgd, max_minibatches, reduce);
}

}  // namespace rubato
