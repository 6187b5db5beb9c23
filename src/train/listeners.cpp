#include "listeners.hpp"

#include <fmt/format.h>

#include <rubato/core/error.hpp>

namespace rubato {

namespace {

std::string part_of(std::string_view observer) {
  return fmt::format("observer/{}", observer);
}

}  // namespace

State observer_state(const State& trainer, std::string_view name) {
  return trainer.part(part_of(name));
}

void Listeners::add(Training& training, std::shared_ptr<Observer> observer,
                    std::optional<std::string> name) {
  if (observer == nullptr) throw Error("an observer is added that is null; accepted: any other");
  Listener listener{.name = name ? *std::move(name) : std::string(observer->name()),
                    .observer = std::move(observer)};
  if (listener.name.find('/') != std::string::npos) {
    throw Error(
        fmt::format("an observer called '{}'; accepted: a name without '/'", listener.name));
  }
  for (const Listener& other : listeners_) {
    if (listener.name.empty() || other.name != listener.name) continue;
    throw Error(fmt::format(
        "there is an observer '{}' already; accepted: another name, as in add_observer(observer, "
        "name)",
        listener.name));
  }
  listener.observer->on_added(training);
  // Rather now than when the first state is taken.
  static_cast<void>(state_of(listener));
  listeners_.push_back(std::move(listener));
}

void Listeners::save(State& state) const {
  for (const Listener& listener : listeners_) state.put(part_of(listener.name), state_of(listener));
}

void Listeners::load(const Training& training, const State& state) const {
  for (const Listener& listener : listeners_) {
    listener.observer->load(training,
                            listener.name.empty() ? State() : observer_state(state, listener.name));
  }
}

State Listeners::state_of(const Listener& listener) {
  State state;
  listener.observer->save(state);
  if (!state.empty() && listener.name.empty()) {
    const std::string& saved =
        state.arrays().empty() ? state.texts().begin()->first : state.arrays().begin()->first;
    throw Error(
        fmt::format("an observer without a name saves '{}', which nobody could load; accepted: one "
                    "with a name(), or add_observer(observer, name)",
                    saved));
  }
  return state;
}

}  // namespace rubato
