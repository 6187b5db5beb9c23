#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <rubato/config/run_configuration.hpp>
#include <rubato/report/checkpoints.hpp>
#include <rubato/report/run_folder.hpp>

namespace rubato {

struct Handover;

/// Where a run is kept, and what it continues from. Nothing in it is touched until everything else
/// that the run needs has been checked.
class RunLocation {
 public:
  /// Nowhere: the run writes nothing.
  RunLocation() = default;
  /// A folder that does not exist; the run makes it.
  [[nodiscard]] static RunLocation create(std::filesystem::path folder);
  /// The folder of a run, to go on with it: from `checkpoint`, one of its files, else from the
  /// newest good one, else from the beginning. Throws Error where the run cannot go on, is worked
  /// on by another process, has gone on in another folder, or was trained with other options than
  /// `configuration`, naming them.
  [[nodiscard]] static RunLocation resume(
      std::filesystem::path folder, const RunConfiguration& configuration,
      const std::optional<std::filesystem::path>& checkpoint = {});
  /// Nowhere, but what resume() goes on from: of a host that computes along with the one that
  /// works in the folder. Throws Error as resume() does, but for other processes.
  [[nodiscard]] static RunLocation follow(
      const std::filesystem::path& folder, const RunConfiguration& configuration,
      const std::optional<std::filesystem::path>& checkpoint = {});

  /// A folder, for a run of other hosts to go on in from its state, with its records. Where there
  /// is one it is that of the same run, and nothing of it is newer; else it is made. Throws Error
  /// where it is of another run or is worked on by another process, for longer than `patience`
  /// where that has ended, OutputError where it cannot be written.
  [[nodiscard]] static RunLocation take_over(std::filesystem::path folder,
                                             const RunConfiguration& configuration,
                                             const Handover& handover,
                                             std::chrono::milliseconds patience = {});

  /// Empty where it is nowhere.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  /// Whether there is a run in it.
  [[nodiscard]] bool is_resumed() const { return folder_.has_value(); }
  /// What the run goes on from; empty where it begins. Its file has no name where other hosts have
  /// given it.
  [[nodiscard]] const std::optional<CheckpointFolder::Found>& from() const { return from_; }
  /// Whether that checkpoint was named.
  [[nodiscard]] bool is_named() const { return named_; }
  /// Why newer checkpoints were passed over.
  [[nodiscard]] const std::vector<std::string>& rejected() const { return rejected_; }

 private:
  friend class Run;

  // What the run in `folder` goes on from.
  void find(const std::filesystem::path& folder, const RunConfiguration& configuration,
            const std::optional<std::filesystem::path>& checkpoint);

  std::filesystem::path path_;
  std::optional<RunFolder> folder_;
  std::optional<CheckpointFolder::Found> from_;
  bool named_ = false;
  std::vector<std::string> rejected_;
};

}  // namespace rubato
