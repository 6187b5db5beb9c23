#include "loss.hpp"

#include <array>
#include <memory>
#include <string>

#include <rubato/base/spec.hpp>

#include "engine.hpp"
#include "model_source.hpp"

namespace rubato {

namespace {

constexpr std::array<LossEntry, 5> kLosses{
    {{.name = "cross-entropy",
      .help = "of the softmax of the outputs, logits of [batch, classes], and the classes",
      .of_classes = true},
     {.name = "nll",
      .help = "the negative log-likelihood of outputs that are log-probabilities of "
              "[batch, classes]",
      .of_classes = true},
     {.name = "mse",
      .help = "the mean squared error of the outputs; classes are vectors of 0 and one 1"},
     {.name = "bce",
      .help = "the binary cross entropy of the sigmoid of the outputs; classes are vectors of 0 "
              "and one 1"},
     {.name = "script:FILE",
      .help = "any loss, as torch.jit.script() in Python exported it: forward() takes outputs and "
              "targets and gives one number, the mean over the samples"}}};

}  // namespace

std::span<const LossEntry> losses() {
  return kLosses;
}

template <>
std::shared_ptr<const LossChoice> Parsed<LossChoice>::parse(const std::string& text,
                                                            const Extensions& /*own*/) {
  auto loss = std::make_shared<LossChoice>();
  if (text.empty()) return loss;
  LossEntry& entry = *loss;
  loss->script = script_file(text);
  if (loss->script) {
    entry = kLosses.back();
    return loss;
  }
  const Spec spec(text);
  entry = find_row("loss", spec.name(), kLosses);
  spec.finish();
  return loss;
}

Parsed<LossChoice> loss_of(const RunConfiguration& run) {
  if (!run.loss.empty()) return run.loss;
  return run.model->script || run.model->is_own() ? "cross-entropy" : "nll";
}

}  // namespace rubato
