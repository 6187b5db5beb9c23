#include "recorded.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "../models.hpp"
#include "primitives.hpp"

namespace rubato::bench {

namespace {

bool is_operator(std::string_view name) {
  return name.starts_with("aten::") || name.starts_with("rubato::");
}

}  // namespace

bool Call::is_operator() const {
  return bench::is_operator(name);
}

bool Call::is_view() const {
  if (outputs.empty() || name.ends_with('_')) return false;
  return std::ranges::any_of(
      inputs, [&](const Array& input) { return input.storage == outputs.front().storage; });
}

namespace {

Array array_of(const at::Tensor& tensor) {
  const std::int64_t last = tensor.dim() - 1;
  return {.sizes = tensor.sizes().vec(),
          .transposed = last > 0 && tensor.stride(last) != 1 && tensor.stride(last - 1) == 1,
          .storage = tensor.storage().data(),
          .data = tensor.data_ptr(),
          // Values that are repeated lie there once.
          .bytes = std::min(tensor.nbytes(), static_cast<std::size_t>(tensor.storage().nbytes()))};
}

template <class Values>
std::vector<Array> arrays_of(const Values& values) {
  std::vector<Array> arrays;
  for (const c10::IValue& value : values) {
    if (value.isTensor() && value.toTensor().defined()) {
      arrays.push_back(array_of(value.toTensor()));
    }
  }
  return arrays;
}

using Clock = std::chrono::steady_clock;

// The callbacks are plain functions, which write to this.
struct Recording {
  struct Times {
    Clock::time_point begin{};
    Clock::time_point end{};
  };
  Calls calls{};
  std::vector<Times> times{};
  // The indices of calls that have not ended.
  std::vector<std::size_t> open{};
};
Recording& recording() {
  static Recording all;
  return all;
}

bool consists_of_others(std::string_view name) {
  constexpr std::array<std::string_view, 3> kComposites{"aten::conv2d", "aten::linear",
                                                        "aten::matmul"};
  return !is_operator(name) || std::ranges::find(kComposites, name) != kComposites.end();
}

std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& function) {
  Recording& all = recording();
  const bool node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  std::int64_t number = function.seqNr();
  // The operator has a node of its own, which was made just before.
  if (number < 0 && !node) number = static_cast<std::int64_t>(at::sequence_number::peek()) - 1;
  Call call{.name = function.name(),
            .node = node,
            .number = number,
            .depth = all.open.size(),
            .inputs = arrays_of(function.inputs())};
  for (const c10::IValue& value : function.inputs()) {
    if (value.isIntList()) call.lists.push_back(value.toIntVector());
    if (value.isInt()) call.numbers.push_back(value.toInt());
  }
  all.open.push_back(all.calls.size());
  all.calls.push_back(std::move(call));
  at::enableRecordFunction(consists_of_others(function.name()));
  return nullptr;
}

void end_call(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  Recording& all = recording();
  all.calls[all.open.back()].outputs = arrays_of(function.outputs());
  all.open.pop_back();
  at::enableRecordFunction(true);
}

std::unique_ptr<at::ObserverContext> begin_time(const at::RecordFunction& function) {
  Recording& all = recording();
  all.open.push_back(all.times.size());
  at::enableRecordFunction(consists_of_others(function.name()));
  all.times.push_back({.begin = Clock::now()});
  return nullptr;
}

void end_time(const at::RecordFunction& /*function*/, at::ObserverContext* /*context*/) {
  Recording& all = recording();
  all.times[all.open.back()].end = Clock::now();
  all.open.pop_back();
  at::enableRecordFunction(true);
}

// Receives reports of all operators and nodes while it lives.
class Callbacks {
 public:
  explicit Callbacks(at::RecordFunctionCallback callback)
      : handle_(at::addGlobalCallback(
            callback.scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}
  ~Callbacks() { at::removeCallback(handle_); }
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

 private:
  at::CallbackHandle handle_;
};

void train(std::string_view network, std::int64_t samples, std::int64_t steps, OnSpan on_span) {
  TrainOptions options{.epochs = 1, .minibatch_size = samples, .cores = kCores};
  options.threads = 1;
  options.on_span = std::move(on_span);
  const std::int64_t all = samples * kCores * steps;
  TorchTrainer trainer(
      model(network), nll_loss(),
      TensorDataset{at::randn({all, 1, 28, 28}), at::randint(10, {all}, at::kLong)},
      Trace::constant(samples * kCores), options);
  static_cast<void>(trainer.fit());
}

// Finds out how far away each array is, in a training that repeats these calls.
void set_distances(Calls& calls) {
  struct Used {
    const void* data;
    std::size_t bytes;
  };
  // The last used is the last.
  std::vector<Used> order;
  const auto use = [&](Array& array) {
    array.distance = 0;
    auto found = order.end();
    while (found != order.begin() && std::prev(found)->data != array.data) {
      array.distance += (--found)->bytes;
    }
    if (found != order.begin()) order.erase(std::prev(found));
    order.push_back({.data = array.data, .bytes = array.bytes});
  };
  for (int minibatch = 0; minibatch < 2; ++minibatch) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      // Calls that consist of others touch nothing themselves.
      if (calls[i].is_view() || (i + 1 < calls.size() && calls[i + 1].depth > calls[i].depth)) {
        continue;
      }
      std::ranges::for_each(calls[i].inputs, use);
      std::ranges::for_each(calls[i].outputs, use);
    }
  }
}

}  // namespace

Calls recorded(std::string_view network, std::int64_t samples) {
  Calls calls;
  const Callbacks callbacks(
      at::RecordFunctionCallback(begin_call, end_call).needsInputs(true).needsOutputs(true));
  train(network, samples, 1, [&](const Span& span) {
    if (span.activity == Activity::gather) recording().calls.clear();
    if (span.activity == Activity::backward) calls = recording().calls;
  });
  set_distances(calls);
  return calls;
}

void add_times(std::string_view network, Calls& calls) {
  const Callbacks callbacks(at::RecordFunctionCallback(begin_time, end_time));
  train(network, kSamples, kSteps, [&](const Span& span) {
    auto& times = recording().times;
    if (span.activity == Activity::gather) times.clear();
    if (span.activity != Activity::backward) return;
    if (times.size() != calls.size()) throw Error("minibatches differ in what they call");
    for (std::size_t i = 0; i < times.size(); ++i) {
      calls[i].microseconds.push_back(microseconds_between(times[i].begin, times[i].end));
    }
  });
}

void add_times(std::string_view network, StepTimes& times) {
  times.restart();
  train(network, kSamples, kSteps, [&](const Span& span) { times.see(span); });
}

}  // namespace rubato::bench
