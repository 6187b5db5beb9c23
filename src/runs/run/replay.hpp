#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <rubato/runs/run_configuration.hpp>

#include "fork.hpp"

namespace rubato {

/// Steps of a run that are repeated, to write down what was not written then.
struct ReplayRequest {
  std::filesystem::path run{};
  /// The steps, counted from 1 and included.
  std::int64_t first = 1;
  std::int64_t last = 1;
  /// configuration_of_run(), with what is to be written in addition, the threads and the kernels.
  RunConfiguration configuration{};
  /// The number of steps between two files of weights; 0 for none.
  std::int64_t weights_every = 0;
};

struct ReplayResult {
  /// The folder with the records of these steps, that of a run.
  std::filesystem::path folder{};
  /// The numbers of losses and of digests that were compared.
  std::int64_t losses = 0;
  std::int64_t digests = 0;
  /// The first step that differs, and what may be the reason; empty if all are equal.
  std::string difference{};
};

/// Repeats the steps, with the options that they had (RunHistory), and writes their records to
/// RUN/replays/FIRST-LAST. A replay that was interrupted continues; another one of the same steps
/// with other options gets a folder of its own. With RunConfiguration::log_noise, the noise is
/// measured from the first of the steps on. Throws Error as state_after() does, and OutputError.
[[nodiscard]] ReplayResult replay(const ReplayRequest& request, const ReplayParts& parts);

}  // namespace rubato
