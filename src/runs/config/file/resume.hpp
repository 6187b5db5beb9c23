#pragma once

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// The source from which a run continues.
enum class ResumeFrom {
  /// A checkpoint; the contents of data, trace and files are compared with it.
  checkpoint,
  /// The configuration alone, if the run has produced nothing yet: data, trace and files must be
  /// those that it names.
  configuration,
};

/// Throws Error if a run of the configuration `before` cannot continue with `now`, naming each
/// option that differs and those that may be changed. The paths of both must be of one kind: see
/// with_paths_from().
void require_resumable(const RunConfiguration& before, const RunConfiguration& now,
                       ResumeFrom from);

}  // namespace rubato
