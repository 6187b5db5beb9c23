#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/machine.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/training_options.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

struct OwnDataSource;         // loop/images.hpp
struct OwnGradientTransform;  // loop/gradient_transform.hpp
struct OwnMetric;             // loop/observer.hpp
struct OwnReducer;            // loop/trainer.hpp

/// The names that options take besides the built-in ones, and what they stand for: parts of the
/// user's own. A RunConfiguration has one, by which its texts are read; so they reach whatever is
/// done with a configuration, and have its run folders, resumes and comparisons:
///
///     rubato::RunConfiguration configuration;
///     configuration.extensions.rules.add(
///         "log2", [](const rubato::RuleInput& step) { return std::log2(1 + step.scale()); });
///     configuration.rule = "log2";
///     rubato::Run run(configuration, rubato::dense_workload(configuration),
///                     rubato::RunLocation::create("runs/first"));
///
/// Run folders and states know a part by its name and arguments alone. Those of a plug-in
/// (docs/extending.md) are bound by the SHA-256 of its file besides.
struct Extensions {
  Extensions();

  /// --rule.
  RuleRegistry rules{};
  /// --schedule.
  OwnSchedules schedules;
  /// --optimizer. What belongs into one is an argument of its own: --momentum, --nesterov and
  /// --weight-decay are of the built-in ones.
  Additions<OwnOptimizer> optimizers;
  /// --transform, one after the other.
  Additions<OwnGradientTransform> transforms;
  /// --sampler.
  OwnSamplers samplers;
  /// --reduce.
  Additions<OwnReducer> reducers;
  /// --metric. The values of one that trains are in metrics.jsonl.
  Additions<OwnMetric> metrics;
  /// --batch.
  OwnBatchPolicies batch_policies;
  /// --data.
  Additions<OwnDataSource> data;

  /// Whether both have the same names.
  friend bool operator==(const Extensions& a, const Extensions& b);
};

/// Every built-in strategy that an option of a run takes by name, family by family: models, losses,
/// data, samplers, traces, generators and policies of availability, rules, schedules, optimizers,
/// transforms, initializers, precisions, reducers and
/// all-reduce algorithms. Traces and generators are of one option, as are reducers and algorithms.
/// The same for the whole life of the process.
[[nodiscard]] std::span<const Family> families();
/// The same and, behind those, the user's own.
[[nodiscard]] std::vector<Family> families(const Extensions& extensions);

/// The family of that name, or of its singular: "rules", "rule". Throws Error for an unknown one,
/// naming the nearest.
[[nodiscard]] const Family& family(std::string_view name,
                                   std::span<const Family> among = families());

/// What a plug-in and the program that loads it have to have in common. Itself the same in all
/// versions.
struct PluginAbi {
  /// The version of rubato and a digest of its public headers.
  const char* rubato;
  /// __GXX_ABI_VERSION and _GLIBCXX_USE_CXX11_ABI.
  int compiler;
  int library;
};

/// Defines the entry point of a plug-in, a shared library that is linked with rubato::plugin: a
/// function that adds what it has to `extensions`, whose body stands behind it in braces
/// (examples/plugin/your_parts.cpp). It is called once for each configuration that names the
/// plug-in; the message of what it throws is an answer to the user.
// NOLINTBEGIN(bugprone-macro-parentheses): the name of a parameter.
#define RUBATO_PLUGIN(extensions)                                                     \
  extern "C" [[gnu::visibility("default")]] ::rubato::PluginAbi rubato_plugin_abi() { \
    return {RUBATO_PLUGIN_ABI, __GXX_ABI_VERSION, _GLIBCXX_USE_CXX11_ABI};            \
  }                                                                                   \
  extern "C" [[gnu::visibility("default")]] void rubato_plugin(::rubato::Extensions& extensions)
// NOLINTEND(bugprone-macro-parentheses)

struct DataSource;          // runs/config/values/data_source.hpp
struct Fault;               // loop/faults.hpp
struct FaultOptions;        // loop/faults.hpp
struct InitializerOptions;  // loop/model_options.hpp
struct LossChoice;          // runs/config/values/loss.hpp
struct ModelChoice;         // runs/config/values/engine.hpp
struct Straggler;           // loop/faults.hpp
struct TimelineSteps;       // runs/config/values/timeline_steps.hpp
struct TraceChoice;         // runs/config/values/trace_source.hpp

/// What an option says, with the text that says it. It is parsed once, when it is made of text, and
/// never changes:
///
///     RunConfiguration run;
///     run.model = "mlp:hidden=64";  // throws Error for what is no model
///     run.model.text();             // "mlp:hidden=64"
///
/// Copies share what it says and are cheap.
template <class T>
class Parsed {
 public:
  /// Of empty text: the option is not set.
  Parsed() : Parsed(std::string_view()) {}
  /// Throws Error for text that is not accepted: what is wrong with it, and what would be accepted.
  template <std::convertible_to<std::string_view> Text>
  Parsed(const Text& text) : Parsed(text, Extensions()) {}
  /// The same with names of the user's own.
  template <std::convertible_to<std::string_view> Text>
  Parsed(const Text& text, const Extensions& own)
      : text_(std::string_view(text)), value_(parse(text_, own)) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  /// Whether they are written alike.
  friend bool operator==(const Parsed& a, const Parsed& b) { return a.text_ == b.text_; }

 private:
  [[nodiscard]] static std::shared_ptr<const T> parse(const std::string& text,
                                                      const Extensions& own);

  std::string text_;
  std::shared_ptr<const T> value_;
};

// Each is defined where what it parses is.
#define RUBATO_PARSED(...)                                                               \
  template <>                                                                            \
  std::shared_ptr<const __VA_ARGS__> Parsed<__VA_ARGS__>::parse(const std::string& text, \
                                                                const Extensions& own);
RUBATO_PARSED(ClusterModel)
RUBATO_PARSED(DataSource)
RUBATO_PARSED(FaultOptions)
RUBATO_PARSED(InitializerOptions)
RUBATO_PARSED(LossChoice)
RUBATO_PARSED(ModelChoice)
RUBATO_PARSED(ReplacedOperators)
RUBATO_PARSED(PrecisionOptions)
RUBATO_PARSED(TimelineSteps)
RUBATO_PARSED(TraceChoice)
RUBATO_PARSED(std::optional<CheckpointInterval>)
RUBATO_PARSED(std::vector<AugmentationOptions>)
RUBATO_PARSED(std::vector<Fault>)
RUBATO_PARSED(std::vector<Straggler>)
#undef RUBATO_PARSED

/// Hardware threads that this process may use, by its affinity and its control groups; at least 1.
[[nodiscard]] std::int64_t hardware_threads();

/// Who computes a model.
enum class Engine {
  automatic,  ///< Eigen where it can, which starts at once and is faster there; else libtorch
  eigen,
  libtorch,
};
inline constexpr std::array<Choice<Engine>, 3> kEngines{
    {{Engine::automatic, "auto"}, {Engine::eigen, "eigen"}, {Engine::libtorch, "libtorch"}}};

/// Whose time steps take.
enum class Clock {
  real,      ///< this machine's
  modelled,  ///< that of a ClusterModel
};
inline constexpr std::array<Choice<Clock>, 2> kClocks{
    {{Clock::real, "real"}, {Clock::modelled, "virtual"}}};

/// The test accuracy that a run has to reach.
struct AccuracyTarget {
  /// Above 0, up to 100.
  double percent = 100;
  /// Whether any epoch may reach it; otherwise the last one has to.
  bool best = false;

  friend bool operator==(const AccuracyTarget&, const AccuracyTarget&) = default;
};

/// A part of the training set that a run is tested on.
struct HeldOut {
  /// Above 0, below 1.
  double share = 0;
  /// Of the choice of the samples.
  std::uint64_t seed = 0;

  friend bool operator==(const HeldOut&, const HeldOut&) = default;
};

/// RunConfiguration::model, data and rule of a run whose model, data or rule are a program's own,
/// and have no name: no command of `rubato` has them.
inline constexpr std::string_view kOwn = "own";

/// What a run is configured by, as a value. The members, their types and defaults, and what they
/// mean, are the rows of run_options.def; run_option.hpp has the table at run time.
///
/// What is Parsed is valid from the beginning. The names of rules, schedules, optimizers, reducers,
/// metrics and policies, of which a trainer makes its own parts, and patterns are kept as their
/// text. Text that is empty stands for an option that is not set. The functions that read a
/// configuration leave every value in its range; require_valid() checks one that was made by hand.
struct RunConfiguration {
#define RUBATO_OPTION(type, member, fallback, ...) type member = fallback;
#include <rubato/runs/run_options.def>

  /// What names mean besides the built-in ones. Text is read by what is here then.
  Extensions extensions{};

  friend bool operator==(const RunConfiguration&, const RunConfiguration&) = default;
};

/// Loads the plug-ins that a configuration names, whose parts come to its extensions, and puts the
/// SHA-256 of each into RunConfiguration::plugin. What is loaded stays so as long as the process.
/// Throws Error for a file that is no plug-in of this version of rubato, that is not of the SHA-256
/// that is said there, or whose entry point throws. A plug-in's code runs with all rights that the
/// process has.
void load_plugins(RunConfiguration& configuration);

/// The optimizer of a configuration, with all that belongs to it; of one of the user's own only
/// that it has no momentum. Throws Error as parse_optimizer() does.
[[nodiscard]] OptimizerOptions optimizer_options(const RunConfiguration& configuration);

/// What a configuration's training may come to within its epochs.
[[nodiscard]] Budget budget_of(const RunConfiguration& configuration);

/// What it measures on the test set, by --metric and --top-k.
[[nodiscard]] TestMetrics test_metrics_of(const RunConfiguration& configuration);

/// Throws Error for a value out of its range, and for values that contradict each other, this
/// machine or the file system: the message names the option as the command line has it. Does not
/// look into the data or the trace.
void require_valid(const RunConfiguration& configuration);

/// The second half of require_valid(), for a configuration whose values are in their ranges.
void require_consistent(const RunConfiguration& configuration);

// A configuration file is TOML: a line `name = value` for each option that differs from its
// default. Numbers and true and false stand as they are, everything else in quotes; a whole number
// beyond TOML's, of 64 bits with a sign, may stand in quotes, too.

/// Reads a configuration file. Relative paths in it are relative to its folder. Throws Error with
/// file and line for what is no TOML, an unknown option, a value of the wrong type or out of its
/// range, and for an option that stands there twice. Names among `arguments_only` get an answer of
/// their own: a program takes them, but not from a file.
///
/// Names are read by the extensions of `around`, to which come those of the plug-ins that the file
/// names: these are loaded, as load_plugins() does. Where `around` has plug-ins, they stand in the
/// place of the file's.
[[nodiscard]] RunConfiguration read_configuration(
    const std::filesystem::path& file, std::span<const std::string_view> arguments_only = {},
    const RunConfiguration& around = {});

/// The same for text at hand; `source` stands for the file's name in messages. Paths are left as
/// they are, and nothing is loaded.
[[nodiscard]] RunConfiguration parse_configuration(
    std::string_view text, const std::string& source,
    std::span<const std::string_view> arguments_only = {}, const Extensions& extensions = {});

/// The configuration with its paths as a file in `folder` should have them, so that the folder may
/// be moved: relative to it for what is inside, absolute for everything else.
[[nodiscard]] RunConfiguration with_paths_from(const std::filesystem::path& folder,
                                               RunConfiguration configuration);

/// The text of a configuration file with all options that are set: parse_configuration() reads it
/// back to the same values. Throws Error for text that TOML cannot hold, which is UTF-8.
[[nodiscard]] std::string to_toml(const RunConfiguration& configuration);

}  // namespace rubato
