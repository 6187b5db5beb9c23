#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "design.hpp"

namespace rubato {

/// The contents of a design file.
struct DesignFile {
  Design design;
  /// Number of parallel runs; 0 if the file does not set it.
  std::int64_t jobs = 0;
  /// Whether the file sets the maximum number of epochs.
  bool says_epochs = false;
  /// Whether the file says that nothing is tuned.
  bool never_tunes = false;
};

// A design file is TOML:
//
//     model = "softmax"                 options of all runs, as in a run's configuration
//     [axes]
//     rule = ["linear", "adascale"]     any option
//     seed = "1..5"
//     [compare]
//     budget = "epochs=4"               and baseline, tune, tune-seeds, target, margin, jobs

/// A key of the table [compare], which is also an option of `rubato compare`.
struct CompareKey {
  std::string_view name;
  /// The name of its value in --help.
  std::string_view value;
  std::string help;
  /// The default in --help; empty if there is none to show.
  std::string shown_default{};
  /// True if it is the baseline, which takes several values.
  bool is_list = false;
  /// Sets it; adds to a list. Throws Error, without the name of the key.
  void (*read)(DesignFile& file, const std::string& text);
};
[[nodiscard]] std::span<const CompareKey> compare_keys();

/// Reads a design file. Relative paths in it are relative to its folder. Throws Error with file and
/// line for invalid TOML, an unknown option or table, and values that are not accepted. Plug-ins
/// are handled as in read_configuration().
[[nodiscard]] DesignFile read_design(const std::filesystem::path& file,
                                     const RunConfiguration& around = {});

/// Parses the text of a design file; leaves paths as they are, and loads no plug-ins.
[[nodiscard]] DesignFile parse_design(std::string_view text, const std::string& source,
                                      const Extensions& extensions = {});

/// The text of a design file in `folder` that reproduces the design when read by read_design().
/// Paths inside the folder are relative.
[[nodiscard]] std::string to_toml(const Design& design, const std::filesystem::path& folder);

}  // namespace rubato
