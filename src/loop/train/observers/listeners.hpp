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

/// The first of some exceptions, kept until all that was to be done is done.
class FirstException {
 public:
  /// Does it, and keeps what it throws where it is the first.
  template <class Action>
  void keep_of(const Action& action) noexcept {
    try {
      action();
    } catch (...) {
      if (!first_) first_ = std::current_exception();
    }
  }
  /// Throws it, where there is one.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

/// The observers of a trainer, by the names of what they save.
class Listeners {
 public:
  /// As Trainer::add_observer() says; without `name` under its own.
  void add(Training& training, std::shared_ptr<Observer> observer, std::optional<std::string> name);

  /// All of them hear, whichever of them throw; `first` keeps the first of their exceptions.
  template <class Call>
  void tell(FirstException& first, const Call& call) const {
    for (const Listener& listener : listeners_) {
      first.keep_of([&] { call(*listener.observer); });
    }
  }
  /// One after the other, until one throws: of what ends with the exception.
  template <class Call>
  void ask(const Call& call) const {
    for (const Listener& listener : listeners_) call(*listener.observer);
  }
  [[nodiscard]] bool any_wants_gradients(const StepPlan& step) const {
    return std::any_of(listeners_.begin(), listeners_.end(), [&](const Listener& listener) {
      return listener.observer->wants_gradients(step);
    });
  }

  /// What each remembers, in a part of its own of the trainer's state. Throws Error where one saves
  /// something and has no name.
  void visit_state(StateVisitor& state, const Training& training) const;

 private:
  struct Listener {
    // Empty where it saves nothing.
    std::string name;
    std::shared_ptr<Observer> observer;
  };

  static void visit(const Listener& listener, StateVisitor& state, const Training& training);

  // In the order in which they were added.
  std::vector<Listener> listeners_;
};

}  // namespace rubato
