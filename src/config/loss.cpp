#include "config/loss.hpp"

#include <array>

#include <rubato/core/family.hpp>
#include <rubato/core/spec.hpp>

#include "config/model_source.hpp"

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

const LossEntry& loss_entry(const std::string& loss) {
  if (script_file(loss)) return kLosses.back();
  const Spec spec(loss);
  const LossEntry& entry = find_row("loss", spec.name(), kLosses);
  spec.finish();
  return entry;
}

std::string loss_of(const RunConfiguration& run) {
  if (!run.loss.empty()) return run.loss;
  return script_file(run.model) || run.model == kOwn ? "cross-entropy" : "nll";
}

}  // namespace rubato
