#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

/// What a trainer is doing, and what it can therefore be asked for.
class TrainerStage {
 public:
  void begin_fit() { now_ = Now::training; }
  void end_fit() { now_ = Now::idle; }
  /// While `action` runs, which does not throw, states may be taken.
  template <class Action>
  void between_steps(const Action& action) {
    now_ = Now::between_steps;
    action();
    now_ = Now::training;
  }

  /// What there is to remember fits together, or does not: in the middle of an update or of
  /// loading.
  void set_whole(bool whole) { whole_ = whole; }
  [[nodiscard]] bool has_state() const { return whole_ && now_ != Now::training; }

  /// `function` has thrown, so that at most the state is of use; `why` there is none where what it
  /// changed is not whole.
  void broken_by(std::string_view function, std::string why) {
    now_ = Now::idle;
    thrown_ = function;
    if (!whole_) no_state_ = std::move(why);
  }

  /// Throw Error.
  void require_idle(std::string_view function) const {
    if (now_ == Now::idle) return;
    throw Error(fmt::format("{} was called in the middle of fit(); accepted: before or after it",
                            function));
  }
  void require_usable(std::string_view function) const {
    if (thrown_.empty()) return;
    throw Error(
        fmt::format("{} cannot be called after {} has thrown; accepted: another trainer, which may "
                    "load the state of this one where has_state()",
                    function, thrown_));
  }
  void require_state() const {
    if (now_ == Now::training) {
      throw Error(
          "a state is taken between steps; accepted: in Observer::between_steps(), or outside "
          "of fit()");
    }
    if (!whole_) {
      throw Error(fmt::format("there is no state: {}; accepted: an earlier state", no_state_));
    }
  }

 private:
  enum class Now { idle, training, between_steps };

  Now now_ = Now::idle;
  bool whole_ = true;
  std::string thrown_;
  std::string no_state_;
};

}  // namespace rubato
