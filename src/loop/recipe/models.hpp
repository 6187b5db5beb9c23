#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <rubato/loop/model_options.hpp>

namespace rubato {

class Spec;

/// The properties of data on which a model depends; by default those of the built-in digits.
struct DataShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  /// Number of classes, or of real targets in a sample.
  std::int64_t outputs = 10;
  /// If samples are sequences of `width` token ids, each with a class: the ids are from 0 to below
  /// this. 0 for all other data.
  std::int64_t vocabulary = 0;
  bool real_targets = false;

  /// The number of numbers in a sample.
  [[nodiscard]] std::int64_t features() const { return channels * height * width; }
};

/// The arguments of a model; std::monostate for a model without arguments.
using ModelOptions = std::variant<std::monostate, PerceptronOptions, ResidualOptions,
                                  TransformerOptions, QuadraticOptions>;

/// A model that users know by name: all that is known of it without the library that computes it.
struct ModelEntry {
  std::string_view name;
  /// A description in one line.
  std::string_view help;
  bool in_eigen = false;
  bool in_libtorch = false;
  /// True for a classifier that trains on --data; other models have samples of their own.
  bool classifies = true;
  /// True if it takes real targets, and sequences of tokens that each have a class.
  bool takes_real_targets = false;
  bool takes_tokens = false;
  /// The images that it takes, for messages, and whether those of some data are such; all images if
  /// null.
  std::string_view images = "images";
  bool (*takes_images)(const DataShape& data) = nullptr;
  /// The number of trained parameters. Null if it is not known before the model is loaded.
  std::int64_t (*parameters)(const ModelOptions& options, const DataShape& data) = nullptr;
  /// Reads its arguments; null if it has none.
  ModelOptions (*read)(Spec& spec) = nullptr;

  [[nodiscard]] bool takes(const DataShape& data) const;
};

/// All built-in models; the last one is "script:FILE". The same for the whole life of the process.
[[nodiscard]] std::span<const ModelEntry> models();

/// A model with its arguments.
struct ParsedModel {
  const ModelEntry& entry;
  ModelOptions options{};
};
/// Parses "NAME:KEY=VALUE". Throws Error for an unknown model, naming the nearest, and for
/// arguments that it does not have.
[[nodiscard]] ParsedModel parse_model(std::string_view text);

}  // namespace rubato
