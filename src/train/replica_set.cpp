#include "replica_set.hpp"

#include <utility>

#include <ATen/Context.h>

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
                       int threads, std::uint64_t seed)
    : ReplicaSet(seeded_instance(factory, initializer, seed), factory, threads, seed) {}

ReplicaSet::ReplicaSet(Model first, const ModelFactory& factory, int threads, std::uint64_t seed)
    : state_(first) {
  replicas_.reserve(static_cast<std::size_t>(threads));
  replicas_.emplace_back(std::move(first), state_);
  for (int thread = 1; thread < threads; ++thread) replicas_.emplace_back(factory(), state_);
  // What libtorch's generator gives from here on must not depend on the number of instances made.
  at::manual_seed(seed);
}

void ReplicaSet::set_training(bool training) {
  for (Replica& replica : replicas_) replica.set_training(training);
}

}  // namespace rubato
