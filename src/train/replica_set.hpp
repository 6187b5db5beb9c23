#pragma once

#include <cstdint>
#include <vector>

#include <rubato/model/replica.hpp>
#include <rubato/model/shared_state.hpp>
#include <rubato/recipe/initializer_options.hpp>
#include <rubato/train/trainer.hpp>

namespace rubato {

/// The shared state of a model and its replicas: one for each thread, or with Dealing::in_turns one
/// for each thread that there would be.
class ReplicaSet {
 public:
  /// The initial values are what the factory's first instance has after seeding libtorch with
  /// `seed`, and what the initializer makes of them.
  /// Throws Error where the factory gives an instance twice.
  ReplicaSet(const ModelFactory& factory, const InitializerOptions& initializer, int replicas,
             std::uint64_t seed, Dealing dealing);
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;
  ~ReplicaSet() = default;

  [[nodiscard]] const SharedState& state() const { return state_; }
  /// The one that computes what comes in that turn of all on that thread.
  [[nodiscard]] Replica& pick(int thread, std::int64_t turn) {
    const auto in_turn = static_cast<std::size_t>(turn) % replicas_.size();
    return replicas_[dealing_ == Dealing::in_turns ? in_turn : static_cast<std::size_t>(thread)];
  }
  void set_training(bool training);

 private:
  ReplicaSet(Model first, const ModelFactory& factory, int replicas, std::uint64_t seed,
             Dealing dealing);

  Dealing dealing_;
  SharedState state_;
  std::vector<Replica> replicas_;
};

}  // namespace rubato
