// An equal average of the weights after the updates since a number of samples (TrainOptions::tail;
// Jain et al. 2018, "Parallelizing stochastic gradient descent for least squares regression: mini-
// batching, averaging, and model misspecification": tail averaging).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>

#include "base/core/throw_error.hpp"
#include "step_part.hpp"

namespace rubato {

namespace {

template <class T>
class TailAverage final : public OtherWeights<T> {
 public:
  explicit TailAverage(std::int64_t begin) : begin_(begin) {}

  [[nodiscard]] std::span<T> values() override { return values_; }
  void begin(std::span<const T> parameters) override {
    if (values_.empty()) values_.assign(parameters.begin(), parameters.end());
  }
  // Until the tail begins, the average is the weights themselves.
  void move(std::span<const T> parameters, std::int64_t batch_size, Workers& workers) override {
    if (values_.size() != parameters.size()) {
      throw Error("the tail's weights are those of another model");
    }
    samples_ += batch_size;
    if (samples_ > begin_) ++updates_;
    const T share = updates_ == 0 ? T{1} : T{1} / static_cast<T>(updates_);
    workers.for_each_range(values_.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) values_[i] += share * (parameters[i] - values_[i]);
    });
  }
  void visit_state(StateVisitor& state) override {
    // In a fork that adds it, the average begins with the next update.
    if (state.forks() && !state.has("tail.weights", true)) return;
    state.list("tail.weights", values_);
    state.count("tail.samples", samples_);
    state.count("tail.updates", updates_);
  }

 private:
  std::int64_t begin_;
  std::vector<T> values_;
  std::int64_t samples_ = 0;
  std::int64_t updates_ = 0;
};

template <class T>
std::unique_ptr<OtherWeights<T>> make_tail(const TrainOptions& options) {
  return std::make_unique<TailAverage<T>>(*options.tail);
}

}  // namespace

StepPart tail_part() {
  return {.prefix = "tail.",
          .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
            return {{"tail", options.tail ? fmt::to_string(*options.tail) : "", OnFork::free}};
          },
          .needs = [](const TrainOptions& options) -> PartNeeds {
            if (!options.tail) return {};
            return {.remembered = 1, .tests_others = true};
          },
          .check =
              [](const TrainOptions& options) {
                if (!options.tail || *options.tail >= 0) return;
                throw_error("a tail after {} samples: accepted are values of at least 0",
                            *options.tail);
              },
          .weights = {.name = "tail",
                      .words = "average of the tail",
                      .label = "tail",
                      .missing = "no tail is averaged",
                      .exist = [](const TrainOptions& options) { return options.tail.has_value(); },
                      .make = {make_tail<float>, make_tail<double>}}};
}

}  // namespace rubato
