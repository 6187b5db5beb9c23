#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/workers.hpp>

#include "evaluation.hpp"
#include "libtorch/model/dispatch_scopes.hpp"
#include "libtorch/model/shared_state.hpp"

namespace rubato {

/// The trained parameters, as they lie in SharedState::flat_parameters().
[[nodiscard]] std::vector<TrainedArray> trained_arrays(const SharedState& state);

/// The weights of training in float16: between steps the shared parameters are the float32 master
/// weights, which updates and evaluations see; while the minibatches of a step are computed they
/// are rounded to float16, and only a state still gets the master weights (in_place_of()).
///
/// T is float or double; only float is rounded.
template <class T>
class MasterWeights {
 public:
  /// Rounds the parameters, until restore(). Does nothing if they are rounded already.
  void round(std::span<T> parameters, Workers& workers) {
    if (!parameters_.empty()) return;
    master_.resize(parameters.size());
    workers.for_each_range(parameters.size(), [&](std::size_t begin, std::size_t end) {
      round_part(parameters.subspan(begin, end - begin), begin);
    });
    parameters_ = parameters;
  }
  /// Rounds the parameters on the calling thread.
  void round(std::span<T> parameters) {
    if (!parameters_.empty()) return;
    master_.resize(parameters.size());
    round_part(parameters, 0);
    parameters_ = parameters;
  }
  /// Replaces arrays within the parameters, which are rounded now, by the master weights; other
  /// arrays stay as they are.
  [[nodiscard]] std::vector<NamedArray> in_place_of(std::vector<NamedArray> arrays) {
    for (NamedArray& array : arrays) {
      const auto* const data = static_cast<const T*>(array.data);
      const bool inside = std::greater_equal<>()(data, static_cast<const T*>(parameters_.data())) &&
                          std::less<>()(data, parameters_.data() + parameters_.size());
      if (inside) array.data = master_.data() + (data - parameters_.data());
    }
    return arrays;
  }
  [[nodiscard]] bool has_rounded() const { return !parameters_.empty(); }
  void restore() noexcept {
    if (parameters_.empty()) return;
    std::copy(master_.begin(), master_.end(), parameters_.begin());
    parameters_ = {};
  }

 private:
  void round_part(std::span<T> part, std::size_t begin) {
    std::copy(part.begin(), part.end(), master_.data() + begin);
    if constexpr (std::is_same_v<T, float>) round_to_half(part);
  }

  std::vector<T> master_;
  // The parameters while they are rounded; empty otherwise.
  std::span<T> parameters_;
};

/// Parts of an objective of libtorch.
struct TorchParts {
  ModelFactory model;
  Loss loss;
  std::shared_ptr<const Dataset> train;
  TorchOptions options;
  /// Seed of the initial values.
  std::uint64_t seed = 0;
};

/// The part of an objective of libtorch that does not depend on the type of its parameters.
class TorchObjective {
 public:
  TorchObjective(const TorchObjective&) = delete;
  TorchObjective& operator=(const TorchObjective&) = delete;
  virtual ~TorchObjective() = default;

  /// Throws Error if there is no data set, or no sample in it.
  void set_test(std::shared_ptr<const Dataset> test, Loss loss);
  [[nodiscard]] Evaluation evaluate(const Dataset& dataset, Workers& workers,
                                    const EvaluationOptions& options, std::string_view when);
  [[nodiscard]] Tensors predict(const Dataset& dataset, Workers& workers);
  [[nodiscard]] const SharedState& state() const { return replicas_->state(); }
  [[nodiscard]] const TorchOptions& options() const { return parts_.options; }

 protected:
  TorchObjective(TorchParts parts, std::unique_ptr<ReplicaSet> replicas);

  [[nodiscard]] const Loss& test_loss() const { return test_loss_ ? test_loss_ : parts_.loss; }
  [[nodiscard]] std::vector<BoundValue> values() const;
  void try_test(Replica& replica, std::int64_t minibatch_size) const;

  TorchParts parts_;
  std::shared_ptr<const Dataset> test_;
  Loss test_loss_;
  std::unique_ptr<ReplicaSet> replicas_;
};

/// Makes the objective, and sets libtorch's number of intra-op threads to 1. Throws Error for
/// missing or empty data, for a model that cannot be shared, and for a precision that the machine
/// or the model does not support.
[[nodiscard]] std::unique_ptr<Objective> make_torch_objective(TorchParts parts);

}  // namespace rubato
