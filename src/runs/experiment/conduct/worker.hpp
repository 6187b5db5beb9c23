#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// The paths of a run of an experiment, or of an attempt at it.
struct RunFiles {
  /// The run folder.
  std::filesystem::path folder;
  /// Its configuration, readable by `rubato train --config`.
  std::filesystem::path config;
  /// Its stderr; the file is removed if it stays empty.
  std::filesystem::path log;
  /// The message of a run that failed; exists only then.
  std::filesystem::path failed;
};

/// The state of a run, as its files show it.
enum class RunState {
  absent,  ///< no files, or none that the run could continue from
  begun,   ///< a checkpoint exists, so the run can continue
  ended,   ///< the summary exists
  failed,  ///< the message of the failure exists
};
[[nodiscard]] RunState state_of(const RunFiles& files);
/// Returns true if the run has ended or failed.
[[nodiscard]] bool has_result(const RunFiles& files);
/// The paths of a run in `folder`, that of the experiment or of a worker; `tuning` selects the runs
/// that tune.
[[nodiscard]] RunFiles files_of(const std::filesystem::path& folder, const std::string& run,
                                bool tuning);

/// The folders of an experiment that have the folders of its runs, of those that tune, and of its
/// workers.
inline constexpr std::string_view kRunsFolder = "runs";
inline constexpr std::string_view kTuneFolder = "tune";
inline constexpr std::string_view kWorkFolder = "workers";
/// The file in a run's folder that names the machine on which the run ended.
inline constexpr std::string_view kMachine = "machine.txt";

/// The fate of a result that a worker has published.
struct Publication {
  enum class Kind {
    first,   ///< it is the run's result now
    same,    ///< the run had the same result already
    differs  ///< the run had another result, which is kept; this one is beside it
  };
  Kind kind = Kind::first;
  /// The machine of the result that was there before.
  std::string machine{};
};

/// A process that does runs of an experiment, in a folder of its own:
///
///     workers/WORKER/runs/NAME/   an attempt at a run, and NAME.log with its messages
///     workers/WORKER/tune/NAME/   the same for the runs that tune
///     runs/NAME.claim1            a link with the name of WORKER, which does the run; the last
///                                 of several links counts
///
/// Any number of workers, on any number of machines, share the folder of an experiment, and need no
/// lock for it: nobody writes into the folder of another worker, a result is renamed into place as
/// a whole, and of two results for one run the first is kept. The folder of a worker is locked, by
/// its children too, only to tell which workers of the same machine are gone.
class Worker {
 public:
  /// Makes the folder, and removes those of workers of this machine that are gone and have left
  /// nothing. Throws Error.
  explicit Worker(std::filesystem::path experiment);
  /// Removes the folder if no attempts are left in it.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// A descriptor for children to inherit, which holds the lock.
  [[nodiscard]] int lock() const { return descriptor_; }
  [[nodiscard]] RunFiles attempt_at(const RunFiles& run) const { return files_in(path_, run); }

  /// Begins an attempt with the furthest state in which anybody has left the run: moves it here if
  /// its worker is gone, and copies it if that is not known. Leaves no attempt if there is no such
  /// state.
  void take_over(const RunFiles& run) const;

  /// Begins an attempt with the last state of a run that has ended, of any experiment. Returns
  /// false if it has left none.
  [[nodiscard]] bool begin_with(const std::filesystem::path& ended, const RunFiles& run) const;

  /// Makes `shared` what continues the run in `from` after `steps` steps, unless another
  /// worker has done it. Returns whether it is there.
  [[nodiscard]] bool share(const std::filesystem::path& from, const std::filesystem::path& shared,
                           std::int64_t steps) const;

  /// Claims the run for this worker, until it has a result. Returns false if another worker has
  /// claimed it that is not known to be gone, and that has claimed or written anything for the run
  /// in the last minute. It saves work, and nothing relies on it: a file system without symbolic
  /// links has no claims.
  [[nodiscard]] bool claim(const RunFiles& run) const;

  /// Makes the result of a complete attempt the result of the run, unless it has one. The attempt
  /// is gone afterwards. A result that differs goes to `different/`. Throws OutputError.
  [[nodiscard]] Publication publish(const RunFiles& run) const;
  /// The same for an attempt that has failed with these words.
  [[nodiscard]] Publication publish_failure(const RunFiles& run, std::string words) const;

  /// Moves the folder of a run into damaged/, so that the run starts anew; returns its new path.
  /// Does nothing if it has moved already. Throws OutputError.
  [[nodiscard]] std::filesystem::path set_aside(const RunFiles& run) const;

  /// Replaces a file of the experiment, which other workers may do at the same time.
  void write(const std::filesystem::path& file, std::string_view content) const;

  /// Removes attempts at runs that have a result, if their workers are gone or have written nothing
  /// for an hour.
  void clean_up() const;

 private:
  [[nodiscard]] bool is_at_work(const std::filesystem::path& claim, const RunFiles& run) const;
  [[nodiscard]] RunFiles files_in(const std::filesystem::path& worker, const RunFiles& run) const;
  [[nodiscard]] std::filesystem::path set_beside(const std::filesystem::path& folder,
                                                 std::string_view ending = {}) const;
  void make_own_folder();

  std::filesystem::path experiment_;
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Returns whether the summaries in two run folders have the same bits, computed by the same
/// kernels and versions; false if one of them cannot be read or does not name these.
[[nodiscard]] bool have_same_origin(const std::filesystem::path& one,
                                    const std::filesystem::path& other);

/// The results in `different/` that differ from the first results of their runs, each in words with
/// both machines and both folders; only those of `run` if it is not empty.
[[nodiscard]] std::vector<std::string> differences_in(const std::filesystem::path& experiment,
                                                      const std::string& run = {});

}  // namespace rubato
