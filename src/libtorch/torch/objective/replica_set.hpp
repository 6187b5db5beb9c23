#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rubato/loop/model_options.hpp>

#include "libtorch/model/replica/replica.hpp"
#include "libtorch/model/replica/shared_state.hpp"

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

}  // namespace rubato
