#include "listeners.hpp"

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"

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
    throw_error("an observer called '{}'; accepted: a name without '/'", listener.name);
  }
  for (const Listener& other : listeners_) {
    if (listener.name.empty() || other.name != listener.name) continue;
    throw_error(
        "there is an observer '{}' already; accepted: another name, as in add_observer(observer, "
        "name)",
        listener.name);
  }
  listener.observer->on_added(training);
  // An observer that cannot be saved fails now rather than with the first state.
  State state;
  StateVisitor saving = StateVisitor::into(state);
  visit(listener, saving, training);
  listeners_.push_back(std::move(listener));
}

void Listeners::visit_state(StateVisitor& state, const Training& training) const {
  for (const Listener& listener : listeners_) visit(listener, state, training);
}

void Listeners::visit(const Listener& listener, StateVisitor& state, const Training& training) {
  if (!listener.name.empty()) {
    StateVisitor part = state.part(part_of(listener.name));
    if (state.forks() && part.has_none()) return;
    return listener.observer->visit_state(part, training);
  }
  State none;
  StateVisitor nothing = state.loading() ? StateVisitor::out_of(none) : StateVisitor::into(none);
  listener.observer->visit_state(nothing, training);
  if (none.empty()) return;
  const std::string& saved =
      none.arrays().empty() ? none.texts().begin()->first : none.arrays().begin()->first;
  throw_error(
      "an observer without a name saves '{}', which nobody could load; accepted: one with a "
      "name(), or add_observer(observer, name)",
      saved);
}

}  // namespace rubato
