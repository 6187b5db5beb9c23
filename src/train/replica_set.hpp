#pragma once

#include <cstdint>
#include <vector>

#include <rubato/model/replica.hpp>
#include <rubato/model/shared_state.hpp>
#include <rubato/recipe/initializer_options.hpp>

namespace rubato {

/// The shared state of a model and a replica for each thread.
class ReplicaSet {
 public:
  /// The initial values are what the factory's first instance has after seeding libtorch with
  /// `seed`, and what the initializer makes of them.
  ReplicaSet(const ModelFactory& factory, const InitializerOptions& initializer, int threads,
             std::uint64_t seed);
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;
  ~ReplicaSet() = default;

  [[nodiscard]] const SharedState& state() const { return state_; }
  [[nodiscard]] Replica& of_thread(int thread) {
    return replicas_[static_cast<std::size_t>(thread)];
  }
  void set_training(bool training);

 private:
  ReplicaSet(Model first, const ModelFactory& factory, int threads, std::uint64_t seed);

  SharedState state_;
  std::vector<Replica> replicas_;
};

}  // namespace rubato
