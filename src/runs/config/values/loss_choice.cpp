#include "loss_choice.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <rubato/base/spec.hpp>

#include "model_choice.hpp"

namespace rubato {

namespace {

void read_class_weights(Spec& spec, LossChoice& loss) {
  constexpr std::int64_t kLargestClass = std::int64_t{1} << 53;
  loss.ignore = spec.whole("ignore", Unset{"every target counts"}, -kLargestClass, kLargestClass);
  loss.class_weights =
      spec.reals("class-weights", Unset{"1 each"}, kNotNegative).value_or(std::vector<double>());
}

constexpr std::array<LossEntry, 5> kLosses{
    {{.name = "cross-entropy",
      .help = "of the softmax of the outputs, logits of [batch, classes], and the classes, without "
              "those equal to ignore, and each weighing what class-weights says; or of rows of "
              "probabilities",
      .of_classes = true,
      .of_probabilities = true,
      .read = read_class_weights},
     {.name = "nll",
      .help = "the negative log-likelihood of outputs that are log-probabilities of "
              "[batch, classes]; arguments as of cross-entropy",
      .of_classes = true,
      .read = read_class_weights},
     {.name = "mse",
      .help = "the mean squared error of the outputs; classes become one-hot vectors"},
     {.name = "bce",
      .help = "the binary cross entropy of the sigmoid of the outputs; classes become "
              "one-hot vectors"},
     {.name = "script:FILE",
      .help = "any loss, as torch.jit.script() in Python exported it: forward() takes outputs and "
              "targets and gives one number, the mean over the samples, or two, a sum and its "
              "weight"}}};

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
  Spec spec(text);
  entry = find_row("loss", spec.name(), kLosses);
  if (entry.read != nullptr) entry.read(spec, *loss);
  spec.finish();
  return loss;
}

Parsed<LossChoice> loss_of(const RunConfiguration& run) {
  if (!run.loss.empty()) return run.loss;
  return run.model->script || run.model->is_own() ? "cross-entropy" : "nll";
}

}  // namespace rubato
