#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/run/resumption.hpp"

namespace rubato::app {

/// A temporary folder for the run of a host that may have to write the run folder later. Owns the
/// folder, and removes it when destroyed.
class HostFolder {
 public:
  /// Throws OutputError if the folder cannot be made.
  HostFolder();
  ~HostFolder();
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;

  /// A name for the run's folder, which does not exist yet.
  [[nodiscard]] std::filesystem::path run() const { return path_ / "run"; }

  /// Removes the folders of processes that were killed.
  static void remove_leftovers() noexcept;

 private:
  std::filesystem::path path_;
};

/// A state transfer in a group: the rank of the host that sends its state, and the hosts that need
/// it.
struct Giving {
  std::size_t from = 0;
  /// True for each rank that receives the state.
  std::vector<bool> to{};

  [[nodiscard]] bool any() const;
};

/// The host that has done the most steps sends its state to those that have none or are more than
/// one step behind; a single step is redone instead. If no host has a state, the first one begins
/// the run and sends its state to all others.
[[nodiscard]] Giving giving_of(const ElasticHosts& hosts);

/// Transfers `bytes` of the sender; returns them on the hosts that receive the state, and nothing
/// on the others. All hosts of the group must call it. Throws as Hosts::exchange() does.
[[nodiscard]] std::string given(Hosts& hosts, const Giving& giving, std::string bytes);

/// The state of a host that takes over the writing of a run from another one.
struct Inheritance {
  /// The folder that the user has asked for.
  const std::filesystem::path& wanted;
  const RunConfiguration& configuration;
  const Handover& handover;
  std::int64_t steps = 0;
};

/// Chooses the folder in which the run continues: the one in which it was written, or else the
/// wanted one, or, if that belongs to another run or is still in use, a new one beside it. If it is
/// not the previous folder, a message says so and a note is left there (RunLocation::resume()). A
/// folder that could not be written any more (RunWriter::failure) is used only if it is the wanted
/// one and has room again. Throws Error if no folder is available, and OutputError if nothing can
/// be written.
[[nodiscard]] RunLocation succeed(const Inheritance& inheritance, ElasticHosts& hosts);

/// Returns whether the run in a folder has done more than `steps` steps.
[[nodiscard]] bool has_more(const std::filesystem::path& folder, std::int64_t steps);

/// Chooses the folder for this host's copy of a run that others may continue: the wanted one,
/// unless it has more of the run, else a new one beside it. Throws OutputError.
[[nodiscard]] RunLocation leave_copy(const Inheritance& inheritance);

/// Chooses a temporary folder for the copy, if no other folder can be written. Throws Error as
/// succeed() does.
[[nodiscard]] RunLocation keep_copy(const Inheritance& inheritance);

}  // namespace rubato::app
