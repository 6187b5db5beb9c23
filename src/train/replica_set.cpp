#include "replica_set.hpp"

#include <utility>

#include <ATen/Context.h>

#include <rubato/core/error.hpp>
#include <rubato/model/initializer.hpp>

namespace rubato {

namespace {

Model seeded_instance(const ModelFactory& factory, const InitializerOptions& initializer,
                      std::uint64_t seed) {
  at::manual_seed(seed);
  Model model = factory();
  initialize(model, initializer);
  return model;
}

}  // namespace

ReplicaSet::ReplicaSet(const ModelFactory& factory, const InitializerOptions& initializer,
                       int replicas, std::uint64_t seed, Dealing dealing)
    : ReplicaSet(seeded_instance(factory, initializer, seed), factory, replicas, seed, dealing) {}

ReplicaSet::ReplicaSet(Model first, const ModelFactory& factory, int replicas, std::uint64_t seed,
                       Dealing dealing)
    : dealing_(dealing), state_(first) {
  replicas_.reserve(static_cast<std::size_t>(replicas));
  replicas_.emplace_back(std::move(first), state_);
  for (int replica = 1; replica < replicas; ++replica) {
    Model next = factory();
    if (state_.is_shared_by(next)) {
      throw Error(
          "the model factory gave the same instance twice; accepted: a new one at each call");
    }
    replicas_.emplace_back(std::move(next), state_);
  }
  // What libtorch's generator gives from here on must not depend on the number of instances made.
  at::manual_seed(seed);
}

void ReplicaSet::set_training(bool training) {
  for (Replica& replica : replicas_) replica.set_training(training);
}

}  // namespace rubato
