#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "diff_stage.hpp"

namespace rubato {

/// The names of the options that a user gave, as opposed to those that only a configuration file
/// sets.
class GivenOptions {
 public:
  void add(std::string_view name) { names_.emplace(name); }
  [[nodiscard]] bool contains(std::string_view name) const { return names_.contains(name); }

  /// Always true: options are equal by their values, wherever these came from.
  friend bool operator==(const GivenOptions&, const GivenOptions&) { return true; }

 private:
  std::set<std::string, std::less<>> names_;
};

/// The results that change when an option does.
enum class Affects {
  bits,    ///< the trained weights
  speed,   ///< only the speed, as long as --exact is on
  output,  ///< only what is written and reported
};

/// How a resume treats an option that has changed.
enum class OnResume {
  fixed,       ///< refuses the new value
  free,        ///< takes the new value
  by_content,  ///< compares what the option names, not its name
  by_file,     ///< accepts only another file with the same content
  by_hash,     ///< accepts only another file with the same hash, which the text contains
};

/// A set of commands that accept an option, or that it affects, besides `rubato train` and `rubato
/// compare`, which have all options.
enum class Commands : unsigned {
  none = 0,
  verify = 1U << 0,     ///< says that all other options play no part in it
  calibrate = 1U << 1,  ///< says the same
  evaluate = 1U << 2,   ///< `rubato eval` and `rubato predict`
  simulate = 1U << 3,
  plan = 1U << 4,
  convert = 1U << 5,  ///< `rubato trace convert`
  replay = 1U << 6,
};
[[nodiscard]] constexpr Commands operator|(Commands a, Commands b) {
  return static_cast<Commands>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Whether the sets have a command in common.
[[nodiscard]] constexpr bool meet(Commands a, Commands b) {
  return (static_cast<unsigned>(a) & static_cast<unsigned>(b)) != 0;
}
/// The commands for options that say what a step computes, and for those that say which steps there
/// are.
inline constexpr Commands kOfSteps = Commands::verify | Commands::calibrate;
inline constexpr Commands kOfPlans = Commands::verify | Commands::simulate | Commands::plan;

/// The runs in which an option has no effect.
struct Idle {
  /// Whether it has no effect in this run, wherever it is given; null if it always has one.
  bool (*when)(const RunConfiguration& run) = nullptr;
  /// The reason; "{}" in it is replaced by the text of the option `of`.
  std::string_view why{};
  /// The circumstances in which it would have an effect.
  std::string_view accepted{};
  std::string_view of{};
};

/// The type of an option, as files and other languages see it.
enum class OptionKind { flag, whole, real, text, text_or_number };

/// One option of a run: a row of the table that everything uses which reads, writes, compares or
/// describes configurations.
struct RunOption {
  /// The name as users type it: "ref-batch" for --ref-batch.
  std::string name{};
  /// The placeholder for the value in descriptions: "N", "epochs|steps|samples". Empty for a flag.
  std::string value{};
  /// A description of the default; empty if its text says enough.
  std::string shown_default{};
  Affects affects = Affects::bits;
  /// The stages at which two trainings with different values can differ first (`rubato diff`).
  std::vector<DiffStage> stages{};
  OnResume resume = OnResume::fixed;
  /// Returns the text with `map` applied to the path in it, if there is one. Null for an option
  /// whose text never names a file.
  std::string (*map_path)(const std::string& text, const PathMap& map) = nullptr;
  Commands commands = kOfSteps;
  /// Whether a value may contain commas, so that a list of several values is not possible.
  bool has_commas = false;
  /// Whether it is a circumstance under which a comparison is made, not a choice.
  bool is_condition = false;
  /// Whether it is a subject of comparisons: always a column of the answer, and never tuned.
  bool is_compared = false;
  /// Whether it is shown beside the results as a hyperparameter; options that affect bits always
  /// are.
  bool is_hyperparameter = false;
  /// Whether all hosts of a run need the same value; of options that affect bits they always do.
  bool is_agreed = false;
  /// Whether it has an effect only if the run has a folder.
  bool needs_folder = false;
  /// Its default in an experiment, if that is different.
  std::string in_experiment{};
  Idle idle{};
  /// The reason why Python does not have it; empty if it does.
  std::string not_in_python{};
  /// The reason why a fork must have the value of its run; empty if it may have another.
  std::string_view fixed_in_fork{};
  /// A description in a line or two.
  std::string help{};

  // The members below are derived from the reading and the group; rows do not set them.

  /// The heading of its group.
  std::string group{};
  OptionKind kind = OptionKind::text;
  /// True if its text is parsed when it is set, so that it needs no check later.
  bool is_parsed = false;
  /// The values that set() accepts, if a few words suffice: "a whole number from 1 to 8".
  std::string accepted{};
  /// Sets it from text as the command line gives it. Throws Error with what is wrong and what would
  /// be accepted, without the name of the option.
  std::function<void(RunConfiguration& configuration, const std::string& text)> set{};
  /// Returns text that set() reads back to the same value; empty if the option is not set.
  std::function<std::optional<std::string>(const RunConfiguration& configuration)> text{};
  /// Restores the default.
  std::function<void(RunConfiguration& configuration)> reset{};
};

/// Whether the text of an option names a file.
[[nodiscard]] bool names_file(const RunOption& option, const std::string& text);

/// The text of an option as other runs and hosts need it: without paths if OnResume::by_hash. Empty
/// if it is not set.
[[nodiscard]] std::optional<std::string> bound_text(const RunOption& option,
                                                    const RunConfiguration& configuration);

/// Returns "--NAME was TEXT, is TEXT".
[[nodiscard]] std::string change_in_words(const RunOption& option, const RunConfiguration& before,
                                          const RunConfiguration& now);

/// The text of the option's default on this machine; empty if it is not set by default.
[[nodiscard]] std::optional<std::string> default_text(const RunOption& option);

/// All options, group by group. The same for the whole life of the process.
[[nodiscard]] std::span<const RunOption> run_options();

/// The options that affect one of the commands, in the same order.
[[nodiscard]] std::vector<const RunOption*> run_options(Commands commands);

/// The reason why the option has no effect in this run, and when it would have one; empty if it has
/// one.
[[nodiscard]] std::string why_idle(const RunOption& option, const RunConfiguration& run);
/// Throws Error for the first option that is given and would have no effect in this run.
void require_none_idle(const GivenOptions& given, const RunConfiguration& run);

/// The option of that name. Throws Error for an unknown one, naming the nearest.
[[nodiscard]] const RunOption& run_option(std::string_view name);

}  // namespace rubato
