#pragma once

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// What a run goes on from.
enum class ResumeFrom {
  /// A checkpoint, with which the contents of data, trace and files are compared.
  checkpoint,
  /// Its configuration alone, when it has come to nothing yet: data, trace and files have to be
  /// those that it names.
  configuration,
};

/// Throws Error where a run of the configuration `before` cannot go on with `now`: names each
/// option that differs and what may be changed. The paths of both have to be of one kind: see
/// with_paths_from().
void require_resumable(const RunConfiguration& before, const RunConfiguration& now,
                       ResumeFrom from);

}  // namespace rubato
