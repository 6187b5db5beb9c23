// A hook on each parameter adds the square of every gradient to the sum of its group (note()). The
// square of the mean gradient can be computed only when the last backward pass has accumulated it:
// with one worker, a callback of the autograd engine does so at the end of that pass, before the
// caller may clip; with several, measure() does so when the caller, who has averaged the gradients,
// calls gain() or step(). norms() undoes the scaling of the losses, so the estimator always gets
// norms of unscaled gradients. measure() keeps a copy of the estimator from before the step, which
// zero_grad() or a further backward pass restores.

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/adascale.hpp>

#include "adascale_checks.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

namespace {

double square_of(const at::Tensor& tensor) {
  return tensor.detach().to(at::kDouble).square().sum().item<double>();
}

AdaScaleLoopOptions checked(const AdaScaleLoopOptions& options) {
  require_gradients(options.world_size, options.num_gradients_to_accumulate);
  if (options.world_size > 1 && !options.all_reduce_sum) {
    throw Error("AdaScale with more than one worker needs all_reduce_sum");
  }
  return options;
}

// A state has this number for a smoothing that follows the number of gradients, which is the
// default.
constexpr double kFollows = -1;

// The range of numbers in a state.
bool are_valid(double scale, double gradients_to_accumulate, double smoothing) {
  constexpr double kMostGradients = 1e9;
  const bool is_count = gradients_to_accumulate >= 1 && gradients_to_accumulate <= kMostGradients &&
                        gradients_to_accumulate == std::floor(gradients_to_accumulate);
  return scale > 0 && std::isfinite(scale) && is_count &&
         (smoothing == kFollows || (smoothing >= 0 && smoothing < 1));
}

}  // namespace

AdaScale::AdaScale(torch::optim::Optimizer& optimizer, const AdaScaleLoopOptions& options)
    : optimizer_(optimizer),
      options_(checked(options)),
      scale_(checked_scale(options.scale.value_or(static_cast<double>(gradients_in_step())))),
      estimator_({.smoothing = options.smoothing,
                  .averaging = options.debias_ewma ? Averaging::debiased : Averaging::mean_first,
                  .smallest_variance = options.smallest_variance},
                 0) {
  const std::size_t groups = optimizer_.param_groups().size();
  for (std::size_t group = 0; group < groups; ++group) hook_group(group);
}

AdaScale::~AdaScale() {
  unhook();
}

double AdaScale::smoothing() const {
  return estimator_.smoothing(gradients_in_step());
}

void AdaScale::hook_group(std::size_t group) {
  estimator_.add_group();
  squares_.push_back(0);
  for (const at::Tensor& tensor : optimizer_.param_groups()[group].params()) {
    const std::size_t index = parameters_.size();
    parameters_.push_back({.tensor = tensor, .group = group});
    if (!tensor.requires_grad()) continue;
    // The hook runs before the gradient is added to the accumulated one.
    parameters_.back().hook =
        tensor.register_hook([this, index](const at::Tensor& gradient) { note(index, gradient); });
  }
}

void AdaScale::note(std::size_t index, const at::Tensor& gradient) {
  Parameter& parameter = parameters_[index];
  if (parameter.backwards == options_.num_gradients_to_accumulate) {
    throw_error(
        "AdaScale: more than {} backward passes without a step; accepted: step(), or zero_grad(), "
        "which drops them",
        options_.num_gradients_to_accumulate);
  }
  ++parameter.backwards;
  const at::NoGradGuard no_grad;
  squares_[parameter.group] += square_of(gradient);
  if (parameter.backwards < options_.num_gradients_to_accumulate || options_.world_size > 1) return;
  // This gradient, and others, will have been accumulated by the end of the pass.
  ++last_gradients_;
  torch::autograd::Engine::get_default_engine().queue_callback([this] { end_backward(); });
}

void AdaScale::end_backward() {
  // Every gradient queues this callback; the first call does all the work.
  if (known_gradients_ == last_gradients_) return;
  known_gradients_ = last_gradients_;
  // A measurement after an earlier pass is dropped: a step may have several passes for each
  // minibatch.
  forget_measurement();
  const at::NoGradGuard no_grad;
  norms_ = norms();
}

std::int64_t AdaScale::backwards() const {
  std::int64_t most = 0;
  for (const Parameter& parameter : parameters_) most = std::max(most, parameter.backwards);
  return most;
}

void AdaScale::require_between_steps(std::string_view what) const {
  if (const std::int64_t done = backwards(); done > 0) {
    throw_error(
        "AdaScale: {} in the middle of an accumulation, after {} of {} backward passes; accepted: "
        "after step(), or zero_grad(), which drops them",
        what, done, options_.num_gradients_to_accumulate);
  }
}

void AdaScale::set_scale(double scale, bool update_estimate) {
  require_between_steps("set_scale()");
  checked_scale(scale);
  if (update_estimate) estimator_.rescale_variance(scale_ / scale);
  scale_ = scale;
}

void AdaScale::set_num_gradients_to_accumulate(std::int64_t count, bool update_smoothing) {
  require_between_steps("set_num_gradients_to_accumulate()");
  require_gradients(options_.world_size, count);
  const double before = smoothing();
  options_.num_gradients_to_accumulate = count;
  estimator_.set_smoothing(update_smoothing ? std::nullopt : std::optional(before));
}

std::vector<GradientNorms> AdaScale::norms() {
  const auto own = static_cast<double>(options_.num_gradients_to_accumulate);
  const auto all = static_cast<double>(gradients_in_step());
  std::vector<double> squares = squares_;
  if (options_.world_size > 1) {
    at::Tensor sums = at::empty({static_cast<std::int64_t>(squares.size())}, at::kDouble);
    std::copy(squares.begin(), squares.end(), sums.data_ptr<double>());
    options_.all_reduce_sum(sums);
    std::copy_n(sums.data_ptr<double>(), squares.size(), squares.begin());
  }
  // The gradients of a scaled loss are 1 / own of what they should be; otherwise the accumulated
  // gradient is own times the mean.
  const double undo_local = options_.is_scaled_loss ? own * own : 1;
  const double undo_sum = options_.is_scaled_loss ? 1 : 1 / (own * own);
  std::vector<GradientNorms> norms(squares.size());
  for (std::size_t group = 0; group < norms.size(); ++group) {
    norms[group].minibatch_square = squares[group] * undo_local / all;
  }
  for (const Parameter& parameter : parameters_) {
    const at::Tensor& gradient = parameter.tensor.grad();
    if (gradient.defined()) norms[parameter.group].mean_square += square_of(gradient) * undo_sum;
  }
  return norms;
}

void AdaScale::measure() {
  if (before_ || backwards() != options_.num_gradients_to_accumulate) return;
  const at::NoGradGuard no_grad;
  if (options_.world_size > 1) norms_ = norms();
  // A backward pass is still under way.
  if (norms_.empty()) return;
  before_ = estimator_;
  estimator_.update(norms_, gradients_in_step(), scale_);
}

void AdaScale::forget_measurement() {
  if (before_) estimator_ = *std::exchange(before_, std::nullopt);
}

double AdaScale::gain() {
  measure();
  return estimator_.gain(scale_);
}

double AdaScale::gain(std::size_t group) {
  if (group >= estimator_.groups()) {
    throw_error("AdaScale: gain() of parameter group {}; accepted: 0 to {}", group,
                estimator_.groups() - 1);
  }
  measure();
  return estimator_.gain(scale_, group);
}

void AdaScale::require_all_backwards(std::string_view what) const {
  if (!hooked_) throw_error("AdaScale: {} after unhook()", what);
  const std::int64_t done = backwards();
  if (done == options_.num_gradients_to_accumulate) {
    if (options_.world_size > 1 || !norms_.empty()) return;
    throw_error(
        "AdaScale: {} after a last backward pass that did not end; accepted: after zero_grad(), "
        "which drops the accumulation",
        what);
  }
  throw_error("AdaScale: {} after {} of {} backward passes", what, done,
              options_.num_gradients_to_accumulate);
}

void AdaScale::divide_gradients() {
  divided_ = true;
  if (options_.num_gradients_to_accumulate == 1) return;
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters_) {
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    if (gradient.defined()) {
      gradient.div_(static_cast<double>(options_.num_gradients_to_accumulate));
    }
  }
}

void AdaScale::scale_grad_by_num_grads_to_accum() {
  require_all_backwards("scale_grad_by_num_grads_to_accum()");
  if (options_.is_scaled_loss) {
    throw Error(
        "AdaScale: scale_grad_by_num_grads_to_accum() of losses that are divided already; "
        "accepted: with is_scaled_loss = false");
  }
  if (divided_) throw Error("AdaScale: scale_grad_by_num_grads_to_accum() twice in a step");
  // The accumulated gradients are measured before they are divided.
  measure();
  divide_gradients();
}

at::Tensor AdaScale::step(const torch::optim::Optimizer::LossClosure& closure) {
  if (!closure) throw Error("AdaScale: step() with an empty closure; accepted: step()");
  if (const std::int64_t done = backwards(); done > 0) {
    throw_error(
        "AdaScale: step(closure) after {} of {} backward passes; accepted: all of them in the "
        "closure, or step()",
        done, options_.num_gradients_to_accumulate);
  }
  at::Tensor loss;
  {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  step();
  return loss;
}

void AdaScale::step() {
  auto& groups = optimizer_.param_groups();
  if (groups.size() > estimator_.groups()) {
    throw_error(
        "AdaScale: step() of {} parameter groups, and {} are measured; accepted: groups that "
        "AdaScale::add_param_group() adds",
        groups.size(), estimator_.groups());
  }
  require_all_backwards("step()");
  measure();
  const at::NoGradGuard no_grad;
  if (!options_.is_scaled_loss && !divided_) divide_gradients();

  const auto rates = vector_of(groups, [](const auto& group) { return group.options().get_lr(); });
  const auto restore = [&] {
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates[i]);
  };
  try {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      groups[i].options().set_lr(rates[i] * gain(i));
    }
    optimizer_.step();
  } catch (...) {
    restore();
    throw;
  }
  restore();
  reset();
}

void AdaScale::zero_grad() {
  forget_measurement();
  reset();
  optimizer_.zero_grad();
}

void AdaScale::add_param_group(const torch::optim::OptimizerParamGroup& group) {
  require_between_steps("add_param_group()");
  optimizer_.add_param_group(group);
  if (hooked_) hook_group(optimizer_.param_groups().size() - 1);
}

std::string AdaScale::state_dict() const {
  require_between_steps("state_dict()");
  torch::serialize::OutputArchive archive;
  torch::serialize::OutputArchive of_optimizer;
  optimizer_.save(of_optimizer);
  archive.write("optimizer", of_optimizer);
  std::vector<double> numbers = numbers_of(estimator_);
  numbers.insert(numbers.begin(),
                 {scale_, static_cast<double>(options_.num_gradients_to_accumulate),
                  estimator_.fixed_smoothing().value_or(kFollows)});
  archive.write("adascale", at::tensor(numbers, at::kDouble), /*is_buffer=*/true);
  std::ostringstream out;
  archive.save_to(out);
  return std::move(out).str();
}

void AdaScale::load_state_dict(const std::string& bytes) {
  require_between_steps("load_state_dict()");
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size());
    at::Tensor tensor;
    archive.read("adascale", tensor, /*is_buffer=*/true);
    const std::span<const double> numbers(tensor.data_ptr<double>(),
                                          static_cast<std::size_t>(tensor.numel()));
    constexpr std::size_t kOwn = 3;
    if (numbers.size() < kOwn || !are_valid(numbers[0], numbers[1], numbers[2])) {
      throw Error("this is not a state of AdaScale: its numbers are out of their ranges");
    }
    torch::serialize::InputArchive of_optimizer;
    archive.read("optimizer", of_optimizer);
    AdaScaleEstimator estimator = estimator_;
    load_numbers(estimator, numbers.subspan(kOwn),
                 fmt::format("AdaScale of {} groups", estimator.groups()));
    optimizer_.load(of_optimizer);
    estimator_ = std::move(estimator);
    scale_ = numbers[0];
    estimator_.set_smoothing(numbers[2] < 0 ? std::nullopt : std::optional(numbers[2]));
    options_.num_gradients_to_accumulate = static_cast<std::int64_t>(numbers[1]);
  } catch (const c10::Error& error) {
    throw_error("this is not a state of AdaScale: {}", error.what_without_backtrace());
  }
}

void AdaScale::unhook() {
  if (!hooked_) return;
  hooked_ = false;
  for (const Parameter& parameter : parameters_) {
    if (parameter.tensor.requires_grad()) parameter.tensor.remove_hook(parameter.hook);
  }
  reset();
}

void AdaScale::reset() {
  for (Parameter& parameter : parameters_) parameter.backwards = 0;
  std::fill(squares_.begin(), squares_.end(), 0);
  norms_.clear();
  before_.reset();
  divided_ = false;
}

}  // namespace rubato
