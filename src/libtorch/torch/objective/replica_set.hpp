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
  /// Without a replica. The initial values are what the factory's first instance has after seeding
  /// libtorch with `seed`, and what the initializer makes of them.
  ReplicaSet(const ModelFactory& factory, const InitializerOptions& initializer,
             std::uint64_t seed);
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;
  ~ReplicaSet() = default;

  [[nodiscard]] const SharedState& state() const { return state_; }

  /// One more, which stays where it is. Throws Error where the factory gives an instance twice.
  Replica& add();
  /// One that is in no set; empty where the factory gives an instance that is in one.
  [[nodiscard]] std::optional<Replica> make_apart() const;
  /// The one for what comes in that turn of all on that of `threads` threads.
  [[nodiscard]] Replica& pick(int thread, std::int64_t turn, int threads) {
    const auto in_turn = static_cast<std::size_t>(turn) % replicas_.size();
    return *replicas_[threads == 1 ? in_turn : static_cast<std::size_t>(thread)];
  }
  void set_training(bool training);

 private:
  ReplicaSet(Model first, ModelFactory factory, std::uint64_t seed);

  ModelFactory factory_;
  std::uint64_t seed_;
  // Until it is a replica.
  std::optional<Model> first_;
  SharedState state_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace rubato
