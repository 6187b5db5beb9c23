#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/workers.hpp>

#include "libtorch/model/replica.hpp"
#include "libtorch/model/shared_state.hpp"

namespace rubato {

/// The shared state of a model, and its replicas.
class ReplicaSet {
 public:
  /// Makes the state, without a replica. The initial values are those of the factory's first
  /// instance after seeding libtorch with `seed`, as the initializer changes them.
  ReplicaSet(const ModelFactory& factory, const InitializerOptions& initializer,
             std::uint64_t seed);
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;
  ~ReplicaSet() = default;

  [[nodiscard]] const SharedState& state() const { return state_; }

  /// Adds a replica, which keeps its address. Throws Error if the factory returns an instance
  /// twice.
  Replica& add();
  /// Makes a replica outside of the set; empty if the factory returns an instance of the set again.
  [[nodiscard]] std::optional<Replica> make_apart() const;
  /// The replica for item `turn` on this thread; a single thread uses all replicas in turn.
  [[nodiscard]] Replica& pick(int thread, std::int64_t turn, int threads) {
    const auto in_turn = static_cast<std::size_t>(turn) % replicas_.size();
    return *replicas_[threads == 1 ? in_turn : static_cast<std::size_t>(thread)];
  }
  void set_training(bool training);

 private:
  ReplicaSet(Model first, ModelFactory factory, std::uint64_t seed);

  ModelFactory factory_;
  std::uint64_t seed_;
  // The first instance, until it becomes a replica.
  std::optional<Model> first_;
  SharedState state_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

/// The numbers of samples that evaluate() computes at a time: all, or those of the full parts and
/// of the last one.
[[nodiscard]] std::vector<std::int64_t> evaluation_sizes(const Dataset& dataset);

/// Evaluates the model on a data set, on all threads, with the same bits for every number of
/// threads. Throws TrainingError; `when` is a phrase for messages: " after epoch 1".
[[nodiscard]] Evaluation evaluate(ReplicaSet& replicas, const Loss& loss, const Dataset& dataset,
                                  Workers& workers, const EvaluationOptions& options,
                                  const ReplacedOperators& operators, std::string_view when);

/// The outputs of the model for all samples of a data set, in their order, computed on all threads,
/// with the same bits for every number of threads. Throws TrainingError.
[[nodiscard]] Tensors predict(ReplicaSet& replicas, const Dataset& dataset, Workers& workers,
                              const ReplacedOperators& operators);

}  // namespace rubato
