#include "replica_set.hpp"

#include <utility>

#include <ATen/Context.h>

#include <rubato/base/error.hpp>

#include "libtorch/model/networks/initializer.hpp"

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
                       std::uint64_t seed)
    : ReplicaSet(seeded_instance(factory, initializer, seed), factory, seed) {}

ReplicaSet::ReplicaSet(Model first, ModelFactory factory, std::uint64_t seed)
    : factory_(std::move(factory)), seed_(seed), first_(std::move(first)), state_(*first_) {}

Replica& ReplicaSet::add() {
  std::optional<Model> model = std::exchange(first_, std::nullopt);
  if (!model) {
    model = factory_();
    if (state_.is_shared_by(*model)) {
      throw Error(
          "the model factory gave the same instance twice; accepted: a new one at each call");
    }
  }
  replicas_.push_back(std::make_unique<Replica>(*std::move(model), state_));
  // Later numbers of libtorch's generator must not depend on the number of instances made.
  at::manual_seed(seed_);
  return *replicas_.back();
}

std::optional<Replica> ReplicaSet::make_apart() const {
  Model model = factory_();
  if (state_.is_shared_by(model)) return std::nullopt;
  return std::make_optional<Replica>(std::move(model), state_);
}

void ReplicaSet::set_training(bool training) {
  for (const auto& replica : replicas_) replica->set_training(training);
}

}  // namespace rubato
