#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "given_options.hpp"

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

/// Commands that take an option, or in which it has a part, beside `rubato train` and `rubato
/// compare`, which have all: a set.
enum class Commands : unsigned {
  none = 0,
  verify = 1U << 0,     ///< the others say that they have no part in it
  calibrate = 1U << 1,  ///< these, too
  evaluate = 1U << 2,   ///< `rubato eval` and `rubato predict`
  simulate = 1U << 3,
  plan = 1U << 4,
  convert = 1U << 5,  ///< `rubato trace convert`
};
[[nodiscard]] constexpr Commands operator|(Commands a, Commands b) {
  return static_cast<Commands>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Whether the sets have a command in common.
[[nodiscard]] constexpr bool meet(Commands a, Commands b) {
  return (static_cast<unsigned>(a) & static_cast<unsigned>(b)) != 0;
}
/// Of what a step computes, and of what says which steps there are.
inline constexpr Commands kOfSteps = Commands::verify | Commands::calibrate;
inline constexpr Commands kOfPlans = Commands::verify | Commands::simulate | Commands::plan;

/// Where an option does nothing.
struct Idle {
  /// Whether it does nothing in such a run, wherever it is given; null where it always does
  /// something.
  bool (*when)(const RunConfiguration& run) = nullptr;
  /// Why; "{}" in it is the text of the option `of`.
  std::string_view why{};
  /// With what it would do something.
  std::string_view accepted{};
  std::string_view of{};
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
  Commands commands = kOfSteps;
  /// Whether a value may have commas of its own, so that there is no list of several.
  bool has_commas = false;
  /// Whether it is a circumstance of training that a comparison is made under, and no choice.
  bool is_condition = false;
  /// Whether it is what a comparison is about: always a column of its answer, and never tuned.
  bool is_compared = false;
  /// Whether it is shown beside the results as a hyperparameter: what affects bits is, too.
  bool is_hyperparameter = false;
  /// Whether all hosts of a run need the same: of what affects bits they do, too.
  bool is_agreed = false;
  /// Whether it does something only where the run has a folder.
  bool needs_folder = false;
  /// Whether it names a file that the run writes, so that no two runs at a time may have it.
  bool is_written = false;
  /// Its default in an experiment, where that is another.
  std::string in_experiment{};
  Idle idle{};
  /// Why there is none in Python, where there is none.
  std::string not_in_python{};
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

/// Those in which one of the commands has a part, in the same order.
[[nodiscard]] std::vector<const RunOption*> run_options(Commands commands);

/// Why the option does nothing in such a run, and with what it would do something; empty where it
/// does something.
[[nodiscard]] std::string why_idle(const RunOption& option, const RunConfiguration& run);
/// Throws Error for the first option that is given and would do nothing in such a run.
void require_none_idle(const GivenOptions& given, const RunConfiguration& run);

/// The option of that name. Throws Error for an unknown one, naming the nearest.
[[nodiscard]] const RunOption& run_option(std::string_view name);

/// The value of an option as JSON: true, 8, 0.01, "linear", or null where it is not set.
[[nodiscard]] std::string to_json(const RunOption& option, const RunConfiguration& configuration);

}  // namespace rubato
