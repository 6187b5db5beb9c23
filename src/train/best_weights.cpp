#include <utility>

#include <ATen/Functions.h>

#include <rubato/model/tensor_state.hpp>
#include <rubato/train/best_weights.hpp>

namespace rubato {

namespace {

const std::string kBestParameter = "best.parameter.";
const std::string kBestBuffer = "best.buffer.";

std::vector<NamedTensor> copies_of(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  copies.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) copies.push_back({name, tensor.detach().clone()});
  return copies;
}

}  // namespace

BestWeights::BestWeights(Metric metric, std::function<void(const BestWeights&)> on_better)
    : metric_(metric), on_better_(std::move(on_better)), best_({.mode = mode_of(metric)}) {}

void BestWeights::on_epoch(Training& training, const EpochRecord& epoch) {
  const std::optional<double> value = value_of(metric_, epoch);
  if (!value) return;
  static_cast<void>(best_.is_over_after(*value));
  if (!best_.improved()) return;
  epoch_ = epoch.epoch;
  parameters_ = copies_of(training.parameters());
  buffers_ = copies_of(training.buffers());
  if (on_better_) on_better_(*this);
}

void BestWeights::save(State& state) const {
  state.put("best.patience", best_.state());
  state.put("best.epoch", epoch_.value());
  for (const NamedTensor& named : parameters_) {
    put_tensor(state, kBestParameter + named.name, named.tensor);
  }
  for (const NamedTensor& named : buffers_)
    put_tensor(state, kBestBuffer + named.name, named.tensor);
}

void BestWeights::load(const Training& training, const State& state) {
  best_.load_state(state.values<double>("best.patience"));
  epoch_ = EpochIndex{state.count("best.epoch")};
  parameters_.clear();
  buffers_.clear();
  if (!best_.best()) return;
  parameters_ = copies_of(training.parameters());
  buffers_ = copies_of(training.buffers());
  for (const NamedTensor& named : parameters_) {
    read_tensor(state, kBestParameter + named.name, named.tensor);
  }
  for (const NamedTensor& named : buffers_)
    read_tensor(state, kBestBuffer + named.name, named.tensor);
}

}  // namespace rubato
