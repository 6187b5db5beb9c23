#pragma once

#include <cstdint>
#include <filesystem>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/run/resumption.hpp"

namespace rubato::app {

/// What a host has come to that is to write a run which another one wrote.
struct Inheritance {
  /// That the user has asked for.
  const std::filesystem::path& wanted;
  const RunConfiguration& configuration;
  const Handover& handover;
  std::int64_t steps = 0;
};

/// Where the run goes on: in the folder in which it was written, else in the one that is wanted,
/// and where that is another run's, or is still worked in, in a new one beside it. Where it is not
/// the folder of before, that is said, and word is left there (RunLocation::resume()). A folder
/// that could not be written any more (RunWriter::failure) is taken only where it is the one that
/// is wanted and there is room in it again. Throws Error where none can be had, and OutputError
/// where nothing can be written.
[[nodiscard]] RunLocation succeed(const Inheritance& inheritance, ElasticHosts& hosts);

/// Whether the run in a folder has come further.
[[nodiscard]] bool has_more(const std::filesystem::path& folder, std::int64_t steps);

/// Where this host leaves a copy of a run that others may go on with: in the folder that is wanted,
/// unless there is more of the run in it, else beside it. Throws OutputError.
[[nodiscard]] RunLocation leave_copy(const Inheritance& inheritance);

/// Keeps the copy in the folder for temporary files when no other folder can be written. Throws
/// Error as succeed() does.
[[nodiscard]] RunLocation keep_copy(const Inheritance& inheritance);

}  // namespace rubato::app
