// Minibatches are tried before training to find errors that libtorch would accept. A loss may be
// any function, so its errors are recognised by what it computes: the loss of a minibatch is
// compared with those of its halves. Broadcasting that pairs each output with the targets of all
// samples makes the loss differ from the mean of its halves, and a loss that is their total is a
// sum. A loss that takes no halves is accepted. Warnings about the sizes of targets are intercepted
// and become errors. The minibatches consist of the first samples, some of which are replaced by
// the data set's extremes.

#include "trial.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/loop/objective.hpp>

#include "base/core/throw_error.hpp"
#include "libtorch/torch/sample_tensors.hpp"
#include "libtorch/versions.hpp"

namespace rubato {

namespace {

std::string shapes_of(const Tensors& tensors, std::int64_t samples) {
  std::vector<std::string> shapes;
  shapes.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.front() = samples;
    shapes.push_back(
        fmt::format("{} [{}]", c10::toString(tensor.scalar_type()), fmt::join(sizes, ", ")));
  }
  return fmt::to_string(fmt::join(shapes, " and "));
}

// " from 0 to 9" if there is one tensor of integers, which may be classes.
std::string range_of(const Tensors& targets) {
  if (targets.size() == 1 && targets.front().is_floating_point() && targets.front().dim() == 1) {
    return ", which are real numbers: classes are integers";
  }
  if (targets.size() != 1 || targets.front().numel() == 0 ||
      !c10::isIntegralType(targets.front().scalar_type(), /*includeBool=*/false)) {
    return {};
  }
  return fmt::format(" from {} to {}", targets.front().min().item<std::int64_t>(),
                     targets.front().max().item<std::int64_t>());
}

[[noreturn]] void refuse_shapes(const at::Tensor& output, const at::Tensor& target,
                                std::string_view why) {
  throw_error("outputs of [{}] and targets of [{}] {}; accepted: targets of the outputs' shape",
              fmt::join(output.sizes(), ", "), fmt::join(target.sizes(), ", "), why);
}

// Losses of Python's torch.nn.functional only warn of shapes that differ.
class SizesListener final : public libtorch::WarningListener {
 public:
  void on_message(std::string_view message) override {
    if (message.find("target size") != std::string_view::npos) warned = true;
  }
  bool warned = false;
};

// True if broadcasting would pair every sample with every other: outputs of [64, 1] and targets of
// [64] become [64, 64].
bool may_pair_samples(const at::Tensor& output, const at::Tensor& target) {
  if (output.dim() == target.dim() || output.dim() == 0 || target.dim() == 0) return false;
  // Classes have several outputs each.
  if (!target.is_floating_point() && output.numel() != target.numel()) return false;
  const auto [longer, shorter] = output.dim() > target.dim()
                                     ? std::pair(output.sizes(), target.sizes())
                                     : std::pair(target.sizes(), output.sizes());
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const std::int64_t one = longer[offset + i];
    if (one != shorter[i] && one != 1 && shorter[i] != 1) return false;
  }
  return true;
}

// Different numbers in the shape of `like`.
at::Tensor numbers_like(const at::Tensor& like, double first, double last) {
  return at::linspace(first, last, like.numel(), like.options()).view(like.sizes());
}

// True if the loss of some samples differs from that of their halves, as it does if each output is
// compared with the targets of all samples.
bool pairs_samples(const Loss& loss, const at::Tensor& output, const at::Tensor& target) {
  const std::int64_t samples = target.size(0);
  if (samples < 2 || output.size(0) != samples || !output.is_floating_point()) return false;
  constexpr double kLow = 0.25;
  constexpr double kHigh = 0.75;
  constexpr double kClose = 1e-3;
  const at::Tensor outputs = numbers_like(output, kLow, kHigh);
  const at::Tensor targets =
      target.is_floating_point() ? numbers_like(target, kHigh, kLow) : target;
  const auto sum_of = [&](std::int64_t begin, std::int64_t count) {
    const LossValue value = loss.value(Tensors{outputs.narrow(0, begin, count)},
                                       Tensors{targets.narrow(0, begin, count)});
    return value.loss.item<double>() * (value.weight.defined() ? 1 : static_cast<double>(count));
  };
  const at::NoGradGuard no_grad;
  try {
    const std::int64_t half = samples / 2;
    const double whole = sum_of(0, samples);
    const double halves = sum_of(0, half) + sum_of(half, samples - half);
    return std::abs(whole - halves) > kClose * std::max(std::abs(whole), std::abs(halves));
  } catch (const std::exception&) {
    // The loss does not take such numbers.
    return false;
  }
}

// Throws Error if the loss, which returns one number, is that of both halves together: a sum, whose
// weight in a step would depend on the size of a minibatch.
void require_mean(const Loss& loss, const Tensors& outputs, const Tensors& targets, double whole) {
  if (outputs.empty() || targets.empty() || targets.front().dim() == 0) return;
  const std::int64_t samples = targets.front().size(0);
  for (const Tensors* const tensors : {&outputs, &targets}) {
    for (const at::Tensor& tensor : *tensors) {
      if (samples < 2 || tensor.dim() == 0 || tensor.size(0) != samples) return;
    }
  }
  const at::NoGradGuard no_grad;
  const auto of = [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const Tensors& tensors) {
      Tensors some;
      for (const at::Tensor& tensor : tensors) some.push_back(tensor.narrow(0, begin, count));
      return some;
    };
    return loss.value(part(outputs), part(targets)).loss.item<double>();
  };
  const std::int64_t half = samples / 2;
  double first = 0;
  double second = 0;
  try {
    first = of(0, half);
    second = of(half, samples - half);
  } catch (const std::exception&) {
    // The loss takes no other number of samples.
    return;
  }
  constexpr double kClose = 1e-3;
  constexpr double kFar = 0.1;
  const double size = std::max(std::abs(first), std::abs(second));
  // A half in which nothing counts, as where all targets are ignored, says nothing.
  if (std::min(std::abs(first), std::abs(second)) <= kFar * size) return;
  const double mean =
      (first * static_cast<double>(half) + second * static_cast<double>(samples - half)) /
      static_cast<double>(samples);
  const bool is_sum = std::abs(whole - (first + second)) <= kClose * size;
  if (!is_sum || std::abs(whole - mean) <= kFar * size) return;
  throw Error(
      "the loss is the sum over a minibatch, as of reduction=\"sum\", so that weights would depend "
      "on its size; accepted: the mean, or two numbers, a sum and its weight");
}

}  // namespace

Loss tried_loss(const Loss& loss) {
  return Loss([&loss](const Tensors& outputs, const Tensors& targets) {
    if (loss.check()) loss.check()(outputs, targets);
    SizesListener sizes;
    LossValue value = [&] {
      const libtorch::WarningGuard guard(&sizes);
      return loss.value(outputs, targets);
    }();
    // In training alone, so that a test computes the loss once.
    if (!value.weight.defined() && value.loss.numel() == 1 && value.loss.requires_grad()) {
      require_mean(loss, outputs, targets, value.loss.item<double>());
    }
    if (outputs.size() == 1 && targets.size() == 1) {
      const at::Tensor& output = outputs.front();
      const at::Tensor& target = targets.front();
      if (sizes.warned) refuse_shapes(output, target, "are broadcast by the loss");
      if (may_pair_samples(output, target) && pairs_samples(loss, output, target)) {
        refuse_shapes(output, target, "are compared each with each by the loss");
      }
    }
    return value;
  });
}

std::vector<std::vector<std::int64_t>> trial_minibatches(const Dataset& dataset,
                                                         std::int64_t size) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(std::min(size, dataset.size())));
  std::iota(samples.begin(), samples.end(), 0);
  const std::vector<std::int64_t> extremes = dataset.extremes();
  if (extremes.size() <= samples.size()) {
    std::copy(extremes.begin(), extremes.end(), samples.begin());
    return {samples};
  }
  // The extremes are spread over several minibatches.
  std::vector<std::vector<std::int64_t>> minibatches;
  for (std::size_t begin = 0; begin < extremes.size(); begin += samples.size()) {
    const std::size_t count = std::min(samples.size(), extremes.size() - begin);
    std::copy_n(extremes.begin() + static_cast<std::ptrdiff_t>(begin), count, samples.begin());
    minibatches.push_back(samples);
  }
  return minibatches;
}

std::string place_of_trial(const Dataset& dataset, std::int64_t size, std::string_view name) {
  std::vector<std::int64_t> tried = dataset.extremes();
  if (tried.empty()) tried.push_back(0);
  try {
    const Batch batch = dataset.batch(tried);
    const std::int64_t samples = std::min(size, dataset.size());
    return fmt::format("a minibatch of the {}, tried before training (inputs {}, targets {}{})",
                       name, shapes_of(batch.inputs, samples), shapes_of(batch.targets, samples),
                       range_of(batch.targets));
  } catch (const std::exception&) {
    // The data set itself fails.
    return fmt::format("a minibatch of the {}, tried before training", name);
  }
}

void try_evaluation(Replica& replica, const Loss& loss, const Dataset& dataset, std::int64_t size,
                    std::string_view name) {
  const at::NoGradGuard no_grad;
  const Loss tried = tried_loss(loss);
  replica.set_training(false);
  try {
    for (const auto& samples : trial_minibatches(dataset, size)) {
      replica.load_buffers();
      const Batch batch =
          checked_batch(dataset.batch(samples), static_cast<std::int64_t>(samples.size()));
      const Tensors outputs = replica.forward(batch.inputs);
      const LossValue value = tried.value(outputs, batch.targets);
      static_cast<void>(value.weight_number());
      static_cast<void>(value.loss.item<double>());
    }
  } catch (...) {
    rethrow_with_place(Phase::evaluation, place_of_trial(dataset, size, name));
  }
}

}  // namespace rubato
