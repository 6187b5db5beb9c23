#pragma once

#include <condition_variable>
#include <mutex>
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

/// The stretches of fit() in which nothing changes that a state consists of: while minibatches are
/// computed, and the test data. Another thread may read the state there, however long they take.
///
/// Thread safety: the thread that trains calls everything but read(), any other one read(). Only
/// the thread that trains writes to what a state consists of, and only outside of these stretches;
/// the threads that compute minibatches read parameters, and write to memory of their own. Whatever
/// was written before open() is visible to read(), and what read() reads has been read before
/// close() returns: both by the mutex.
class QuietStretches {
 public:
  void begin_fit() { set(/*fits=*/true, /*open=*/false); }
  void end_fit() { set(/*fits=*/false, /*open=*/false); }
  void open() { set(/*fits=*/true, /*open=*/true); }
  /// Waits for those who read, and for those who have begun to wait: a stretch that is shorter than
  /// the time in which they wake up is none that they miss.
  void close() {
    std::unique_lock lock(mutex_);
    // Readers that come from now on wait for the next stretch, so that this one ends.
    closes_ = true;
    changed_.wait(lock, [this] { return !open_ || readers_ == 0; });
    open_ = false;
    closes_ = false;
    lock.unlock();
    changed_.notify_all();
  }
  /// Calls `action`, which changes what a state consists of, in the middle of a stretch.
  template <class Action>
  void interrupt(const Action& action) {
    close();
    action();
    open();
  }

  /// Calls `action` in the stretch that is open, or the next one. False where fit() is not running,
  /// or ends before that.
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
  // With the mutex held, as it comes and as it goes.
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
  // Below: with the mutex.
  bool fits_ = false;
  bool open_ = false;
  bool closes_ = false;
  int readers_ = 0;
};

/// One stretch.
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
