#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/steps/plan.hpp>

namespace rubato {

/// Keeps the first of several exceptions until all actions are done.
class FirstException {
 public:
  /// Performs the action, and keeps its exception if it is the first.
  template <class Action>
  void keep_of(const Action& action) noexcept {
    try {
      action();
    } catch (...) {
      if (!first_) first_ = std::current_exception();
    }
  }
  /// Rethrows the first exception, if there is one.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

/// The observers of a trainer, each with the name of its part of a state.
class Listeners {
 public:
  /// Adds an observer as Trainer::add_observer() does; without `name`, under its own name.
  void add(Training& training, std::shared_ptr<Observer> observer, std::optional<std::string> name);

  /// Calls all observers, even if some throw; `first` keeps the first exception.
  template <class Call>
  void notify(FirstException& first, const Call& call) const {
    for (const Listener& listener : listeners_) {
      first.keep_of([&] { call(*listener.observer); });
    }
  }
  /// Calls one observer after the other, and stops at the first exception.
  template <class Call>
  void ask(const Call& call) const {
    for (const Listener& listener : listeners_) call(*listener.observer);
  }
  [[nodiscard]] bool any_wants_gradients(const StepPlan& step) const {
    return std::any_of(listeners_.begin(), listeners_.end(), [&](const Listener& listener) {
      return listener.observer->wants_gradients(step);
    });
  }

  /// Visits the state of each observer, which has a part of its own in the trainer's. Throws Error
  /// if one saves something and has no name.
  void visit_state(StateVisitor& state, const Training& training) const;

 private:
  struct Listener {
    // Empty if the observer saves nothing.
    std::string name;
    std::shared_ptr<Observer> observer;
  };

  static void visit(const Listener& listener, StateVisitor& state, const Training& training);

  // The observers in the order in which they were added.
  std::vector<Listener> listeners_;
};

}  // namespace rubato
