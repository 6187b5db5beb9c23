#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/images.hpp>

#include "loop/data/tensors/number_array.hpp"

namespace rubato {

struct TableEncoding;  // table_encoding.hpp
struct TextEncoding;   // text_encoding.hpp

/// Rows of numbers, in a mapped file or in memory. Copies share them. May be read by any number of
/// threads.
class SampleRows {
 public:
  /// Rows that lie one after the other.
  struct Segment {
    const char* begin = nullptr;
    std::int64_t count = 0;
  };

  SampleRows() = default;
  /// `shape` is that of a row, empty for a single number; rows begin `stride` bytes apart.
  SampleRows(ElementType type, std::vector<std::int64_t> shape, std::size_t stride,
             std::vector<Segment> segments, std::shared_ptr<const void> owner);
  /// One row for each index of the array's first dimension; requires that there is one.
  explicit SampleRows(const NumberArray& array);

  [[nodiscard]] ElementType type() const { return type_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const { return shape_; }
  /// The number of numbers in a row.
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  /// The size of a row in bytes.
  [[nodiscard]] std::size_t row_bytes() const;
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The bytes of row i, 0 <= i < count(), without alignment.
  [[nodiscard]] std::string_view row(std::int64_t i) const;
  /// All rows one after the other; empty if they do not lie so.
  [[nodiscard]] std::string_view dense() const;
  /// The owner of the memory.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }
  /// The same rows with another shape of equally many numbers.
  [[nodiscard]] SampleRows reshaped(std::vector<std::int64_t> shape) const;

 private:
  ElementType type_ = ElementType::f32;
  std::vector<std::int64_t> shape_;
  std::int64_t elements_ = 1;
  std::size_t stride_ = 0;
  std::vector<Segment> segments_;
  std::int64_t count_ = 0;
  std::shared_ptr<const void> owner_;
};

/// Converts the numbers of a row, f16 and bf16 included. To is float, double or std::int64_t;
/// numbers with a fraction must not be converted to std::int64_t.
template <class To>
void read_numbers(ElementType type, std::string_view bytes, To* to);
extern template void read_numbers(ElementType, std::string_view, float*);
extern template void read_numbers(ElementType, std::string_view, double*);
extern template void read_numbers(ElementType, std::string_view, std::int64_t*);

[[nodiscard]] bool is_real(ElementType type);

/// Makes rows of zeros, which share their memory.
[[nodiscard]] SampleRows zero_rows(ElementType type, std::vector<std::int64_t> shape,
                                   std::int64_t count);

/// Samples: inputs and the targets that a model should predict. All rows, or some of them.
struct SampleSet {
  SampleRows inputs;
  SampleRows targets;
  /// The indices of the selected rows, in ascending order; null for all of them.
  std::shared_ptr<const std::vector<std::int64_t>> chosen{};
  /// The names of all rows, such as those of files; null if they have none.
  std::shared_ptr<const std::vector<std::string>> names{};
  /// The weights of all rows by which training draws them; null if the data have none.
  std::shared_ptr<const std::vector<double>> weights{};

  [[nodiscard]] std::int64_t size() const;
  /// The bytes of sample i, 0 <= i < size().
  [[nodiscard]] std::string_view input(std::int64_t i) const { return inputs.row(row_of(i)); }
  [[nodiscard]] std::string_view target(std::int64_t i) const { return targets.row(row_of(i)); }
  /// The names of the samples; empty if they have none.
  [[nodiscard]] std::vector<std::string> sample_names() const;

 private:
  [[nodiscard]] std::int64_t row_of(std::int64_t i) const;
};

/// SHA-256 of type, shape and bytes of all samples.
[[nodiscard]] std::string fingerprint_of(const SampleSet& samples);

/// The meaning of the inputs' numbers.
enum class InputKind {
  pixels,  ///< uint8: scaled to [0, 1], and then by the training set's mean and deviation
  reals,   ///< numbers as they are
  tokens,  ///< whole numbers that stand for something else
};

/// The meaning of numbers of that type as inputs.
[[nodiscard]] InputKind input_kind_of(ElementType type);

/// Rows of one dimension whose features are transformed to mean 0 and deviation 1.
struct Standardised {
  /// Features that stay unchanged; empty for none.
  std::vector<bool> except{};
};

/// The transformation of a standardised feature: less the mean, and divided by the deviation (of
/// the population; 1 for a constant).
struct FeatureStatistics {
  double mean = 0;
  double deviation = 1;
  /// The replacement of a missing value.
  double missing = 0;
};

/// The data sets that a configuration's --data names.
struct DataSets {
  SampleSet train;
  std::optional<SampleSet> test{};
  InputKind inputs = InputKind::reals;
  /// Targets are classes, 0 <= class < classes; 0 if they are real numbers.
  std::int64_t classes = 0;
  /// True if real targets are the probabilities of as many classes, for the loss of a run.
  bool probabilities = false;
  /// True if targets only stand in for missing ones, of samples to predict.
  bool unlabelled = false;
  /// The number of tokens, which are from 0 to below this, if samples are sequences of tokens that
  /// each have a class; 0 for all other data.
  std::int64_t vocabulary = 0;
  /// True if rows lie in memory in which they may be used as they are, and not in a mapped file.
  bool in_memory = false;
  /// The plural name of samples, for people.
  std::string_view noun = "samples";
  std::optional<Standardised> standardised{};
  /// True if NaN stands for a missing value, which is replaced by the mean.
  bool means_for_missing = false;
  /// The encoding, if the data are a text.
  std::shared_ptr<const TextEncoding> text{};
  /// The encoding, if the data are a table.
  std::shared_ptr<const TableEncoding> table{};
  /// The names of the classes of a folder of images.
  std::vector<std::string> class_names{};
  /// The number of rows of tables that were left out because they lack a value.
  std::int64_t left_out = 0;
  /// Short notes for users about the data, one fact each.
  std::vector<std::string> notes{};

  // The statistics that normalise inputs; those of the training set, once normalise() has been
  // called.

  /// The statistics of pixels, for each channel (the first of three dimensions).
  std::vector<PixelStatistics> channels{};
  /// The statistics of features that are standardised, or whose missing values are replaced by
  /// means.
  std::vector<FeatureStatistics> features{};
};

/// Sets DataSets::channels and features, unless they are set. Throws Error if inputs to be
/// standardised have no features, and if no training sample has a value of one.
void normalise(DataSets& data);

/// Throws Error if a number is not finite as a float32, with its index in the array of all rows;
/// the message names the rows as `name`.
void require_finite(const SampleRows& rows, std::string_view name);

/// The sum of probabilities may differ from 1 by this, as float32 has it.
inline constexpr double kSumTolerance = 1e-4;

/// Throws Error unless every row is one of probabilities, at least 0 and with a sum of 1, with the
/// number of the row, from 0; the message names the rows as `name`.
void require_probabilities(const SampleRows& rows, std::string_view name);

/// Targets that a loss leaves out, and that are not classes.
struct IgnoredTargets {
  std::optional<std::int64_t> one{};
  /// True for a loss that may leave out any negative target.
  bool negative = false;

  /// -100 marks samples without a class in PyTorch; a loss that does not leave them out refuses
  /// them.
  [[nodiscard]] bool contains(std::int64_t target) const {
    constexpr std::int64_t kNoClass = -100;
    return target == kNoClass || target == one || (negative && target < 0);
  }
};

/// Counts the classes of targets of whole numbers: one more than the largest. Throws Error for a
/// negative one, unless it is ignored, and for more than `most`; the message names the samples as
/// `name`.
[[nodiscard]] std::int64_t count_classes(const SampleSet& samples, std::string_view name,
                                         std::int64_t most, const IgnoredTargets& ignored = {});

/// Adds a note if classes have no training sample: labels may begin at 1, or have gaps. Requires
/// one class for each sample.
void note_missing_classes(DataSets& data);

/// Adds a note if all training samples are of one class. Requires one class for each sample.
void note_single_class(DataSets& data);

/// Counts the vocabulary of inputs that are tokens: one more than the largest; 0 if one is
/// negative, or not below `most`.
[[nodiscard]] std::int64_t count_tokens(const SampleSet& samples, std::int64_t most);

/// Moves a share of the training set, 0 < share < 1, rounded, to the test set, which replaces the
/// previous one. The selection depends only on `seed` and the number of samples. Throws Error if
/// either set would be empty.
void hold_out(DataSets& data, double share, std::uint64_t seed);

/// Converts the rows of normalised data sets to inputs as a model sees them. Several threads may
/// use it at once.
class InputReader {
 public:
  explicit InputReader(const DataSets& data);

  /// Reads the numbers of a row. To is float or double; std::int64_t is allowed, too, if nothing is
  /// normalised.
  template <class To>
  void read(std::string_view row, To* to) const;

 private:
  // Subtracts means in double, before anything is rounded to the type of the result.
  template <class To>
  void read_features(std::string_view row, To* to) const;

  ElementType type_;
  // The normalised values of pixels: 256 for each channel.
  std::vector<float> tables_;
  std::size_t of_channel_ = 0;
  std::vector<FeatureStatistics> features_;
};
extern template void InputReader::read(std::string_view, float*) const;
extern template void InputReader::read(std::string_view, double*) const;
extern template void InputReader::read(std::string_view, std::int64_t*) const;

/// Takes images of one channel; their memory is moved into the result.
[[nodiscard]] SampleSet sample_set_of(ImageSet images);

}  // namespace rubato
