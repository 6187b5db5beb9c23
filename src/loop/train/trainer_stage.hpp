#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

/// The current activity of a trainer, which decides what may be called.
class TrainerStage {
 public:
  void begin_fit() { now_ = Now::training; }
  void end_fit() { now_ = Now::idle; }
  /// States may be taken while `action` runs; it must not throw.
  template <class Action>
  void between_steps(const Action& action) {
    now_ = Now::between_steps;
    action();
    now_ = Now::training;
  }

  /// Sets whether the state is consistent; it is not in the middle of an update or of loading.
  void set_whole(bool whole) { whole_ = whole; }
  [[nodiscard]] bool has_state() const { return whole_ && now_ != Now::training; }

  /// `function` has thrown: only state() may be called now; `why` says why even that is refused, if
  /// the state is not whole.
  void broken_by(std::string_view function, std::string why) {
    now_ = Now::idle;
    thrown_ = function;
    if (!whole_) no_state_ = std::move(why);
  }

  /// The following functions throw Error unless the trainer is in the required stage.
  void require_idle(std::string_view function) const {
    if (now_ == Now::idle) return;
    throw_error("{} was called in the middle of fit(); accepted: before or after it", function);
  }
  void require_usable(std::string_view function) const {
    if (thrown_.empty()) return;
    throw_error(
        "{} cannot be called after {} has thrown; accepted: another trainer, which may load the "
        "state of this one where has_state()",
        function, thrown_);
  }
  void require_state() const {
    if (now_ == Now::training) {
      throw Error(
          "a state is taken between steps; accepted: in Observer::between_steps(), or outside "
          "of fit()");
    }
    if (!whole_) throw_error("there is no state: {}; accepted: an earlier state", no_state_);
  }

 private:
  enum class Now { idle, training, between_steps };

  Now now_ = Now::idle;
  bool whole_ = true;
  std::string thrown_;
  std::string no_state_;
};

/// The stretches of fit() during which the state of training does not change: while minibatches or
/// the test data are computed. Another thread may read the state then, however long they take.
///
/// Thread safety: the training thread calls everything but read(), which any other thread may call.
/// Only the training thread writes to the state, and only outside of these stretches; the threads
/// that compute minibatches read parameters, and write to memory of their own. The mutex makes
/// everything written before open() visible to read(), and makes the reads of read() happen before
/// the return of close().
class QuietStretches {
 public:
  void begin_fit() { set(/*fits=*/true, /*open=*/false); }
  void end_fit() { set(/*fits=*/false, /*open=*/false); }
  void open() { set(/*fits=*/true, /*open=*/true); }
  /// Waits for all readers, including those that are still waiting for a stretch: even a stretch
  /// that is shorter than the time in which they wake up is not missed.
  void close() {
    std::unique_lock lock(mutex_);
    // Readers that arrive from now on wait for the next stretch, so that this one can end.
    closes_ = true;
    changed_.wait(lock, [this] { return !open_ || readers_ == 0; });
    open_ = false;
    closes_ = false;
    lock.unlock();
    changed_.notify_all();
  }
  /// Calls `action`, which changes the state, in the middle of a stretch.
  template <class Action>
  void interrupt(const Action& action) {
    close();
    action();
    open();
  }

  /// Calls `action` in the open stretch, or in the next one. Returns false if fit() is not running
  /// or ends first.
  template <class Action>
  bool read(const Action& action) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !closes_; });
    const Reader reader(*this);
    changed_.wait(lock, [this] { return open_ || !fits_; });
    if (!open_) return false;
    action();
    return true;
  }

 private:
  // Constructed and destroyed with the mutex held.
  class Reader {
   public:
    explicit Reader(QuietStretches& of) : of_(of) { ++of_.readers_; }
    ~Reader() {
      if (--of_.readers_ == 0) of_.changed_.notify_all();
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    QuietStretches& of_;
  };

  void set(bool fits, bool open) {
    {
      const std::lock_guard lock(mutex_);
      fits_ = fits;
      open_ = open;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // The mutex protects all members below.
  bool fits_ = false;
  bool open_ = false;
  bool closes_ = false;
  int readers_ = 0;
};

/// Keeps a stretch open for its lifetime.
class QuietStretch {
 public:
  explicit QuietStretch(QuietStretches& all) : all_(all) { all_.open(); }
  ~QuietStretch() { all_.close(); }
  QuietStretch(const QuietStretch&) = delete;
  QuietStretch& operator=(const QuietStretch&) = delete;

 private:
  QuietStretches& all_;
};

}  // namespace rubato
