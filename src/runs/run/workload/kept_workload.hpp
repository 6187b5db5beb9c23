#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato {

/// The options from which a workload is loaded, as text: runs with the same text have the same
/// workload. These are the group "Data and model" of the options and --kernels. Empty if a workload
/// cannot be kept for several processes, as with plug-ins, whose libraries may have threads or
/// state of their own.
[[nodiscard]] std::string workload_text(const RunConfiguration& run);

/// A workload that was loaded before the runs that use it, together with the identity of its files:
/// device, number, size and times of each.
class KeptWorkload {
 public:
  /// Files have to be unchanged for `settling` before they are read: the times of a file do not
  /// tell two changes apart that follow each other within the resolution of its file system.
  KeptWorkload(const RunConfiguration& configuration, LoadWorkload load,
               std::chrono::nanoseconds settling = std::chrono::seconds(2));

  /// Loads it, and forgets the one before. Keeps none if it cannot be loaded, so that each run
  /// loads it itself and says why, and as long as its files are changing. Throws nothing.
  void load();
  /// Whether load() would keep what is kept.
  [[nodiscard]] bool is_current() const;

  /// Whether the workload is that of a run.
  [[nodiscard]] bool is_for(const RunConfiguration& run) const;
  /// Returns the workload if it is kept, and is that of the run; otherwise loads another one.
  /// Throws Error as loading does.
  [[nodiscard]] std::shared_ptr<const Workload> workload_of(const RunConfiguration& run) const;

 private:
  struct Files {
    std::string identity;
    bool are_settled = false;
  };
  [[nodiscard]] Files look() const;

  RunConfiguration configuration_;
  LoadWorkload load_;
  std::chrono::nanoseconds settling_;
  std::string text_;
  Files files_;
  std::shared_ptr<const Workload> workload_;
};

}  // namespace rubato
