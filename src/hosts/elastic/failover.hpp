#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "roles.hpp"
#include "runs/run/resumption.hpp"
#include "runs/run/run_request.hpp"

namespace rubato::hosts_detail {

/// A temporary folder for the run of a host that may have to write the run folder later. Owns the
/// folder, and removes it when destroyed.
class HostFolder {
 public:
  /// Throws OutputError if the folder cannot be made, and Error if there is no temporary folder.
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

/// Transfers `bytes` of the sender; returns them on the hosts that receive the state, and nothing
/// on the others. All hosts of the group must call it. Throws as Hosts::exchange() does.
[[nodiscard]] std::string transferred(Hosts& hosts, const StateTransfer& transfer,
                                      std::string bytes);

/// The state of a host that takes over the writing of a run from another one.
struct Failover {
  /// The folder that the user has asked for.
  const std::filesystem::path& wanted;
  const RunConfiguration& configuration;
  const Handover& handover;
  std::int64_t steps = 0;
};

/// Chooses the folder in which the run continues: the one in which it was written, or else the
/// wanted one, or, if that belongs to another run or is still in use, a new one beside it. If it is
/// not the previous folder, `report` receives a message and a note is left there
/// (RunLocation::resume()). A folder that could not be written any more (RunWriter::failure) is
/// used only if it is the wanted one and has room again. Throws Error if no folder is available,
/// and OutputError if nothing can be written.
[[nodiscard]] RunLocation fail_over(const Failover& failover, ElasticHosts& hosts,
                                    const Report& report);

/// Returns whether the run in a folder has done more than `steps` steps.
[[nodiscard]] bool has_more(const std::filesystem::path& folder, std::int64_t steps);

/// Chooses the folder for this host's copy of a run that others may continue: the wanted one,
/// unless it has more of the run, else a new one beside it. Throws OutputError.
[[nodiscard]] RunLocation leave_copy(const Failover& failover);

/// Chooses a temporary folder for the copy, if no other folder can be written. Throws Error as
/// fail_over() does.
[[nodiscard]] RunLocation temporary_copy(const Failover& failover);

}  // namespace rubato::hosts_detail
