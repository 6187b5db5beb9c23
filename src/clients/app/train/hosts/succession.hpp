#pragma once

#include <cstdint>
#include <filesystem>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/run/resumption.hpp"

namespace rubato::app {

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
