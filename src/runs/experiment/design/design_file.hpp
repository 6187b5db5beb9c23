#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "design.hpp"

namespace rubato {

/// What the file of a design says.
struct DesignFile {
  Design design;
  /// 0 where the file does not say.
  std::int64_t jobs = 0;
  /// Whether it says how many --epochs there are at most.
  bool says_epochs = false;
};

// The file of a design is TOML:
//
//     model = "softmax"                 options of all runs, as in a run's configuration
//     [axes]
//     rule = ["linear", "adascale"]     any option
//     seed = "1..5"
//     [compare]
//     budget = "epochs=4"               and baseline, tune, tune-seeds, target, jobs

/// Reads the file of a design. Relative paths in it are relative to its folder. Throws Error with
/// file and line for what is no TOML, an unknown option or table, and values that are not accepted.
/// Plug-ins are as of read_configuration().
[[nodiscard]] DesignFile read_design(const std::filesystem::path& file,
                                     const RunConfiguration& around = {});

/// The same for text at hand; paths are left as they are, and nothing is loaded.
[[nodiscard]] DesignFile parse_design(std::string_view text, const std::string& source,
                                      const Extensions& extensions = {});

/// The text of a file in `folder` that reproduces the design: read_design() reads it back. Paths
/// inside the folder are relative.
[[nodiscard]] std::string to_toml(const Design& design, const std::filesystem::path& folder);

}  // namespace rubato
