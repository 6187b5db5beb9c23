#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <rubato/config/run_configuration.hpp>

namespace rubato {

/// What changes when an option does.
enum class Affects {
  bits,    ///< the trained weights
  speed,   ///< how fast it goes, and nothing else as long as --exact is on
  output,  ///< what is written and reported
};

/// How a resume treats an option that has changed.
enum class OnResume {
  fixed,       ///< refuses it
  free,        ///< takes the new value
  by_content,  ///< compares what the option names, not its name
  by_file,     ///< refuses it, but for another file with the same content
  by_hash,     ///< refuses it, but for another file with the same hash, which the text has
};

/// The type of an option, as files and other languages see it.
enum class OptionKind { flag, whole, real, text, text_or_number };

/// One option of a run: a row of the table, which all that reads, writes, compares or describes
/// configurations goes by.
struct RunOption {
  using PathMap = std::function<std::filesystem::path(const std::filesystem::path&)>;

  /// As users type it: "ref-batch" for --ref-batch.
  std::string name{};
  /// Stands for the value in descriptions: "N", "epochs|steps|samples". Empty for a flag.
  std::string value{};
  /// Describes the default where its text does not.
  std::string shown_default{};
  Affects affects = Affects::bits;
  OnResume resume = OnResume::fixed;
  /// The text with `map` applied to the path in it, if there is one. Empty for an option whose
  /// text never names a file.
  std::string (*map_path)(const std::string& text, const PathMap& map) = nullptr;
  /// What it is for, in a line or two.
  std::string help{};

  // What follows is made from the reading and the group, not written in the row.

  /// The heading that it stands under.
  std::string group{};
  OptionKind kind = OptionKind::text;
  /// What set() accepts, where that can be said in a few words: "a whole number from 1 to 8".
  std::string accepted{};
  /// Sets it from text, as the command line gives it. Throws Error, which does not name the option:
  /// what is wrong, and what would be accepted.
  std::function<void(RunConfiguration& configuration, const std::string& text)> set{};
  /// The text that set() reads back to the same value; empty where the option is not set.
  std::function<std::optional<std::string>(const RunConfiguration& configuration)> text{};
  /// Makes it what it is by default.
  std::function<void(RunConfiguration& configuration)> reset{};
};

/// Whether the text of an option names a file.
[[nodiscard]] bool names_file(const RunOption& option, const std::string& text);

/// The text of an option as other runs and hosts are to have it: of one that goes by hashes without
/// its paths. Empty where it is not set.
[[nodiscard]] std::optional<std::string> bound_text(const RunOption& option,
                                                    const RunConfiguration& configuration);

/// All of them, group by group. The same for the whole life of the process.
[[nodiscard]] std::span<const RunOption> run_options();

/// The option of that name. Throws Error for an unknown one, naming the nearest.
[[nodiscard]] const RunOption& run_option(std::string_view name);

/// The value of an option as JSON: true, 8, 0.01, "linear", or null where it is not set.
[[nodiscard]] std::string to_json(const RunOption& option, const RunConfiguration& configuration);

}  // namespace rubato
