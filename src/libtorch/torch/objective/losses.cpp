// Losses of classes bring outputs and targets into rows first (class_rows()), so one formula serves
// samples, tokens and pixels. Without class weights they return a mean; with weights they return
// the weighted sum and the weight, because only the step can divide by the weight of all its
// minibatches. libtorch's ignored index is set to a number that no target has unless the user
// ignores a class, so an invalid class is an error. Most losses carry a check of their outputs,
// such as probabilities in place of logits; it runs only on minibatches that are tried
// (tried_loss()). The cross entropy of probabilities is libtorch's own, of rows that are checked in
// every minibatch.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "base/core/throw_error.hpp"
#include "libtorch/model/script.hpp"
#include "libtorch/torch/sample_tensors.hpp"

namespace rubato {

namespace {

double checked(double label_smoothing) {
  if (label_smoothing >= 0 && label_smoothing < 1) return label_smoothing;
  throw_error("label smoothing {}: accepted are values from 0 to below 1", label_smoothing);
}

// Targets without rows go to libtorch unchanged, which accepts them or says why not.
ClassRows rows_of(const at::Tensor& output, const at::Tensor& target) {
  return class_rows(output, target).value_or(ClassRows{.outputs = output, .targets = target});
}

// An ignored index that no target has, so that an invalid class is an error and not left out of a
// mean.
constexpr std::int64_t kIgnoreNone = std::numeric_limits<std::int64_t>::min();

// Computes a loss of class targets. libtorch says only that a negative one is out of bounds.
template <class Compute>
at::Tensor of_classes(const at::Tensor& targets, const Compute& compute) {
  try {
    return compute();
  } catch (const c10::IndexError&) {
    const auto least = targets.min().item<std::int64_t>();
    if (least >= 0) throw;
    throw_error(
        "a target is {}, which is not a class; accepted: classes from 0, and the one that the loss "
        "ignores, as with --loss cross-entropy:ignore={}",
        least, least);
  }
}

ClassWeights checked(const ClassWeights& classes) {
  const std::vector<double>& weights = classes.weights;
  const auto good = [](double weight) { return weight >= 0 && std::isfinite(weight); };
  const bool any = weights.empty() || std::ranges::any_of(weights, [](double w) { return w > 0; });
  if (any && std::ranges::all_of(weights, good)) return classes;
  throw_error("class weights {}: accepted are finite ones of at least 0, not all of them 0",
              fmt::join(weights, "/"));
}

// The weights of as many classes as there are outputs; undefined if all weigh 1.
at::Tensor class_weights(const ClassWeights& classes, std::int64_t outputs) {
  if (classes.weights.empty()) return {};
  if (std::ssize(classes.weights) != outputs) {
    throw_error("{} class weights, and outputs of {} classes; accepted: one for each",
                classes.weights.size(), outputs);
  }
  return at::tensor(classes.weights, at::kDouble);
}

// The weighted sum of negative log-probabilities over rows, and the sum of their weights.
LossValue weighted_sum(const ClassRows& rows, const ClassWeights& classes, double spread) {
  const std::int64_t outputs = rows.outputs.dim() == 2 ? rows.outputs.size(1) : 0;
  const at::Tensor weights = class_weights(classes, outputs);
  const at::Tensor typed = weights.defined() ? weights.to(rows.outputs.scalar_type()) : weights;
  const std::int64_t ignored = classes.ignore.value_or(kIgnoreNone);
  at::Tensor sum = of_classes(rows.targets, [&] {
    return at::nll_loss(rows.outputs, rows.targets, typed, at::Reduction::Sum, ignored);
  });
  const at::Tensor counted = rows.targets.ne(ignored);
  if (spread > 0) {
    const at::Tensor all = typed.defined() ? rows.outputs * typed : rows.outputs;
    const at::Tensor of_rows = all.sum(1).masked_select(counted);
    sum = (1 - spread) * sum - of_rows.sum() * (spread / static_cast<double>(outputs));
  }
  if (!weights.defined()) return {sum, counted.sum()};
  return {sum, weights.index_select(0, rows.targets.masked_select(counted)).sum()};
}

// libtorch would broadcast other shapes.
void require_same_shape(std::string_view loss, const at::Tensor& output, const at::Tensor& target) {
  if (output.sizes() == target.sizes()) return;
  throw_error(
      "{} compares outputs and targets one by one, and outputs are [{}] and targets [{}]; "
      "accepted: targets of the outputs' shape{}",
      loss, fmt::join(output.sizes(), ", "), fmt::join(target.sizes(), ", "),
      target.is_floating_point() ? ", or integers, which are classes" : "");
}

void require_probabilities(const at::Tensor& target) {
  const at::Tensor rows = rows_by_class(target.detach());
  const at::Tensor sums = rows.sum(1, /*keepdim=*/false, at::kDouble);
  // The sum is NaN if a probability is.
  const at::Tensor good = (sums - 1).abs().le(kSumTolerance).logical_and_(rows.ge(0).all(1));
  if (good.all().item<bool>()) return;
  const auto row = good.logical_not().nonzero()[0].item<std::int64_t>();
  const auto least = rows[row].min().item<double>();
  throw_error(
      "cross-entropy takes real targets as probabilities of the classes, and those at [{}] of the "
      "minibatch {} {:.6g}; accepted: at least 0 and with a sum of 1, or integers, which are "
      "classes",
      row, least < 0 ? "have" : "sum to", least < 0 ? least : sums[row].item<double>());
}

// The mean cross entropy of probabilities, as PyTorch has it: class weights change no divisor.
at::Tensor of_probabilities(const at::Tensor& output, const at::Tensor& target,
                            const ClassWeights& classes, double spread) {
  if (classes.ignore) {
    throw_error(
        "targets are probabilities, of which no class is ignored, and the loss ignores {}; "
        "accepted: integers, which are classes, or a loss that ignores none",
        *classes.ignore);
  }
  require_same_shape("cross-entropy", output, target);
  if (target.dim() < 2) {
    throw_error(
        "real targets of [{}] are not rows of probabilities; accepted: [samples, classes], or "
        "integers, which are classes",
        fmt::join(target.sizes(), ", "));
  }
  require_probabilities(target);
  at::Tensor weights = class_weights(classes, output.size(1));
  if (weights.defined()) weights = weights.to(target.scalar_type());
  return at::cross_entropy_loss(output, target, weights, at::Reduction::Mean, kIgnoreNone, spread);
}

std::vector<std::int64_t> without_weight(const ClassWeights& classes) {
  std::vector<std::int64_t> without;
  if (classes.ignore) without.push_back(*classes.ignore);
  for (std::size_t i = 0; i < classes.weights.size(); ++i) {
    if (classes.weights[i] == 0) without.push_back(static_cast<std::int64_t>(i));
  }
  return without;
}

// Threshold of a single output that is a number between the two classes, not a logit.
constexpr double kMiddle = 0.5;
// Threshold of losses of classes, where a single output stands for a single class.
constexpr double kNever = std::numeric_limits<double>::infinity();

// The sum of the exponentials that can still be that of probabilities, in any precision.
constexpr double kMostSum = 1.05;

// Returns whether the rows are probabilities, as of softmax().
bool are_probabilities(const at::Tensor& rows) {
  constexpr double kClose = 1e-3;
  return rows.ge(0).all().item<bool>() && (rows.sum(1) - 1).abs().max().item<double>() < kClose;
}

// Rows of outputs that are tried, in double; empty if there are no two classes.
std::optional<at::Tensor> tried_rows(const Tensors& outputs, const Tensors& targets) {
  if (outputs.size() != 1 || targets.size() != 1) return std::nullopt;
  const at::Tensor output = outputs.front().detach();
  auto rows = class_rows(output, targets.front());
  if (!rows) rows = most_probable(output, targets.front());
  if (!rows || rows->outputs.size(1) < 2 || rows->outputs.numel() == 0) return std::nullopt;
  return rows->outputs.to(at::kDouble);
}

// The loss of other outputs has no lower bound.
void require_log_probabilities(const Tensors& outputs, const Tensors& targets) {
  const auto rows = tried_rows(outputs, targets);
  if (!rows) return;
  const double sum = std::exp(rows->logsumexp(1).max().item<double>());
  if (!(sum > kMostSum)) return;
  if (are_probabilities(*rows)) {
    throw Error(
        "nll takes log-probabilities, and the outputs are probabilities, as of softmax(); "
        "accepted: log_softmax(), or logits with --loss cross-entropy");
  }
  throw_error(
      "nll takes log-probabilities, as of log_softmax(), and the exponentials of the outputs sum "
      "to {:.3g}; accepted: log-probabilities, or --loss cross-entropy",
      sum);
}

// The softmax of probabilities differs little between classes, so that training is slow and the
// loss stays high.
void refuse_probabilities(const Tensors& outputs, const Tensors& targets) {
  const auto rows = tried_rows(outputs, targets);
  if (!rows || !are_probabilities(*rows)) return;
  throw Error(
      "cross-entropy takes logits or log-probabilities, and the outputs are probabilities, as of "
      "softmax(); accepted: the outputs before softmax(), or log_softmax()");
}

// The loss of classes with weights, of log-probabilities or of logits.
Loss weighted_loss(const ClassWeights& classes, double label_smoothing, bool of_logits) {
  const Loss loss = [classes = checked(classes), spread = checked(label_smoothing), of_logits](
                        const at::Tensor& output, const at::Tensor& target) -> LossValue {
    if (of_logits && target.is_floating_point()) {
      return of_probabilities(output, target, classes, spread);
    }
    ClassRows rows = rows_of(output, target);
    if (of_logits) rows.outputs = at::log_softmax(rows.outputs, 1);
    return weighted_sum(rows, classes, spread);
  };
  Loss weighted = loss.without(without_weight(classes))
                      .with_threshold(kNever)
                      .with_check(of_logits ? refuse_probabilities : require_log_probabilities);
  return of_logits ? std::move(weighted).with_probabilities() : weighted;
}

void require_shares(const at::Tensor& target) {
  if (target.numel() == 0) return;
  const auto [least, most] = at::aminmax(target.detach());
  if (least.item<double>() >= 0 && most.item<double>() <= 1) return;
  throw_error(
      "bce takes targets from 0 to 1, and they are from {:.6g} to {:.6g}; accepted: these, or "
      "classes with an output for each",
      least.item<double>(), most.item<double>());
}

// Returns whether a sigmoid() has computed the tensor, apart from changes of its shape. Logits may
// lie between 0 and 1, too, so that values do not tell.
bool is_of_sigmoid(const at::Tensor& output) {
  constexpr std::array<std::string_view, 7> kShapes{"View",      "UnsafeView", "Reshape", "Squeeze",
                                                    "Unsqueeze", "Flatten",    "Alias"};
  auto node = output.grad_fn();
  while (node) {
    const std::string name = node->name();
    if (name.starts_with("Sigmoid")) return true;
    const bool is_shape = std::ranges::any_of(
        kShapes, [&](std::string_view shape) { return name.starts_with(shape); });
    if (!is_shape || node->num_outputs() == 0) return false;
    node = node->next_edge(0).function;
  }
  return false;
}

// Log-probabilities are recognised by their exponentials, which sum to 1 in every row; those of
// logits do so only by chance.
void require_logits(const Tensors& outputs, const Tensors& /*targets*/) {
  if (outputs.size() != 1) return;
  if (is_of_sigmoid(outputs.front())) {
    throw Error(
        "bce takes logits, and the outputs are probabilities, as of sigmoid(); accepted: the "
        "outputs before sigmoid()");
  }
  const at::Tensor output = outputs.front().detach().to(at::kDouble);
  constexpr double kClose = 1e-4;
  if (output.dim() < 2 || output.size(-1) < 2 || output.numel() == 0) return;
  if (output.logsumexp(-1).abs().max().item<double>() > kClose) return;
  throw Error(
      "bce takes logits, and the outputs are log-probabilities, as of log_softmax(); accepted: "
      "logits, or --loss nll");
}

// True if the loss compares numbers or probabilities: a single output then lies between the numbers
// of two classes.
bool takes_numbers(const ScriptCall& call) {
  return call.calls({"aten::binary_cross_entropy", "aten::mse_loss", "aten::l1_loss",
                     "aten::smooth_l1_loss", "aten::huber_loss"});
}

}  // namespace

Loss nll_loss(const ClassWeights& classes, double label_smoothing) {
  if (!classes.any()) return nll_loss(label_smoothing);
  return weighted_loss(classes, label_smoothing, /*of_logits=*/false);
}

Loss cross_entropy_loss(const ClassWeights& classes, double label_smoothing) {
  if (!classes.any()) return cross_entropy_loss(label_smoothing);
  return weighted_loss(classes, label_smoothing, /*of_logits=*/true);
}

Loss nll_loss(double label_smoothing) {
  const double spread = checked(label_smoothing);
  Loss nll([spread](const at::Tensor& output, const at::Tensor& target) {
    const ClassRows rows = rows_of(output, target);
    const at::Tensor loss = of_classes(rows.targets, [&] {
      return at::nll_loss(rows.outputs, rows.targets, {}, at::Reduction::Mean, kIgnoreNone);
    });
    return spread == 0 ? loss : (1 - spread) * loss - spread * rows.outputs.mean();
  });
  return std::move(nll).with_threshold(kNever).with_check(require_log_probabilities);
}

Loss cross_entropy_loss(double label_smoothing) {
  const double spread = checked(label_smoothing);
  Loss cross_entropy([spread](const at::Tensor& output, const at::Tensor& target) {
    if (target.is_floating_point()) return of_probabilities(output, target, {}, spread);
    const ClassRows rows = rows_of(output, target);
    return of_classes(rows.targets, [&] {
      return at::cross_entropy_loss(rows.outputs, rows.targets, /*weight=*/at::Tensor(),
                                    at::Reduction::Mean, kIgnoreNone, spread);
    });
  });
  return std::move(cross_entropy)
      .with_threshold(kNever)
      .with_check(refuse_probabilities)
      .with_probabilities();
}

Loss mse_loss() {
  return Loss([](const at::Tensor& output, const at::Tensor& target) {
           require_same_shape("mse", output, target);
           return at::mse_loss(output, target);
         })
      .with_threshold(kMiddle);
}

Loss bce_loss() {
  return Loss([](const at::Tensor& output, const at::Tensor& target) {
           require_same_shape("bce", output, target);
           require_shares(target);
           return at::binary_cross_entropy_with_logits(output, target);
         })
      .with_check(require_logits);
}

Loss script_loss(const torch::jit::Module& module) {
  const torch::jit::Module copy = module.deepcopy();
  for (const auto& named : copy.named_parameters()) {
    if (named.value.requires_grad()) {
      throw_error(
          "parameter '{}' of the TorchScript loss would not be trained; accepted: as a parameter "
          "of the model, which may be one of its outputs, or without requires_grad",
          named.name);
    }
  }
  const auto call = std::make_shared<ScriptCall>(copy);
  if (call->sets_attributes()) {
    throw Error(
        "forward() of the TorchScript loss sets attributes; accepted: a loss that keeps nothing "
        "from one call to the next");
  }
  Loss loss([call](const Tensors& outputs, const Tensors& targets) -> LossValue {
    Tensors all = outputs;
    all.insert(all.end(), targets.begin(), targets.end());
    const Tensors results = (*call)(all);
    if (results.size() == 2) return {results[0], results[1]};
    return only_tensor(results, "results of the TorchScript loss");
  });
  return std::move(loss).with_threshold(takes_numbers(*call) ? kMiddle : 0);
}

}  // namespace rubato
