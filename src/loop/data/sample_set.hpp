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

/// Rows of numbers, where they lie: in a mapped file or in memory. Copies share them. May be read
/// by any number of threads.
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
  /// Numbers in a row.
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  /// Bytes of a row.
  [[nodiscard]] std::size_t row_bytes() const;
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The bytes of row i, 0 <= i < count(), aligned to nothing.
  [[nodiscard]] std::string_view row(std::int64_t i) const;
  /// All rows one after the other; empty where they do not lie so.
  [[nodiscard]] std::string_view dense() const;
  /// What they lie in.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }
  /// The same rows with another shape of as many numbers.
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

/// Converts the numbers of a row, f16 and bf16 included. To is float, double or std::int64_t; a
/// number with a fraction is not asked for as std::int64_t.
template <class To>
void read_numbers(ElementType type, std::string_view bytes, To* to);
extern template void read_numbers(ElementType, std::string_view, float*);
extern template void read_numbers(ElementType, std::string_view, double*);
extern template void read_numbers(ElementType, std::string_view, std::int64_t*);

[[nodiscard]] bool is_real(ElementType type);

/// Rows that all are 0, and lie in each other.
[[nodiscard]] SampleRows zero_rows(ElementType type, std::vector<std::int64_t> shape,
                                   std::int64_t count);

/// Samples: inputs and what a model is to make of them. All rows, or some of them.
struct SampleSet {
  SampleRows inputs;
  SampleRows targets;
  /// The numbers of the rows that are meant, in ascending order; null for all of them.
  std::shared_ptr<const std::vector<std::int64_t>> chosen{};

  [[nodiscard]] std::int64_t size() const;
  /// Of sample i, 0 <= i < size().
  [[nodiscard]] std::string_view input(std::int64_t i) const { return inputs.row(row_of(i)); }
  [[nodiscard]] std::string_view target(std::int64_t i) const { return targets.row(row_of(i)); }

 private:
  [[nodiscard]] std::int64_t row_of(std::int64_t i) const;
};

/// SHA-256 of type, shape and bytes of all samples.
[[nodiscard]] std::string fingerprint_of(const SampleSet& samples);

/// What the numbers of inputs are.
enum class InputKind {
  pixels,  ///< uint8: scaled to [0, 1], and then by the training set's mean and deviation
  reals,   ///< numbers as they are
  tokens,  ///< whole numbers that stand for something else
};

/// What numbers of a type are as inputs.
[[nodiscard]] InputKind input_kind_of(ElementType type);

/// Rows of one dimension whose features become of mean 0 and deviation 1.
struct Standardised {
  /// Features that stay as they are; empty is none.
  std::vector<bool> except{};
};

/// What a feature becomes: less the mean, and divided by the deviation (of the population; 1 for
/// 0), where it is standardised.
struct FeatureStatistics {
  double mean = 0;
  double deviation = 1;
  /// What stands for a value that is missing.
  double missing = 0;
};

/// What a configuration's --data names.
struct DataSets {
  SampleSet train;
  std::optional<SampleSet> test{};
  InputKind inputs = InputKind::reals;
  /// Targets are classes, 0 <= class < classes; 0 where they are real numbers.
  std::int64_t classes = 0;
  /// Of sequences of tokens, each of which has a class: tokens are from 0 to below this. 0 of all
  /// other data.
  std::int64_t vocabulary = 0;
  /// Whether rows lie in memory that they may be used in as they are, and not in a mapped file.
  bool in_memory = false;
  /// What a sample is, in the plural, for people.
  std::string_view noun = "samples";
  std::optional<Standardised> standardised{};
  /// Whether NaN stands for a value that is missing, for which the mean is taken.
  bool means_for_missing = false;
  /// Of a text: its characters in the order of their tokens, in UTF-8.
  std::string alphabet{};
  /// Of a table.
  std::shared_ptr<const TableEncoding> table{};
  /// The classes of a folder of images have these names.
  std::vector<std::string> class_names{};
  /// Rows of tables that were left out, as they lack a value.
  std::int64_t left_out = 0;
  /// Each note tells users another fact about the data, in a few words.
  std::vector<std::string> notes{};

  // By what inputs are normalised: of the training set, once normalise() has been called.

  /// Of pixels, for each channel (the first of three dimensions).
  std::vector<PixelStatistics> channels{};
  /// Of inputs that are standardised, or whose missing values have become means.
  std::vector<FeatureStatistics> features{};
};

/// Sets DataSets::channels and features, unless they are set. Throws Error where inputs that are to
/// be standardised have no features, and where no sample that is trained on has a value of one.
void normalise(DataSets& data);

/// Throws Error where a number is not finite as float32 has it, with its index in the array of all
/// rows; `name` says whose they are.
void require_finite(const SampleRows& rows, std::string_view name);

/// The classes of targets of whole numbers: one more than the largest. Throws Error for a negative
/// one, but for -100, which is no class, and for more than `most`; `name` says whose they are.
[[nodiscard]] std::int64_t count_classes(const SampleSet& samples, std::string_view name,
                                         std::int64_t most);

/// Adds a note where classes have no training sample: labels may begin at 1, or have gaps. Requires
/// one class for each sample.
void note_missing_classes(DataSets& data);

/// The vocabulary of inputs that are tokens: one more than the largest; 0 where one is negative,
/// or `most` or more.
[[nodiscard]] std::int64_t count_tokens(const SampleSet& samples, std::int64_t most);

/// Takes a share of the training set, 0 < share < 1, rounded, away from it as the test set, in
/// place of the one that there was. Which samples follows from `seed` and their number alone.
/// Throws Error where there would be none in one of them.
void hold_out(DataSets& data, double share, std::uint64_t seed);

/// Makes inputs of the rows of data sets, which are normalised, as a model sees them. Usable by
/// several threads at once.
class InputReader {
 public:
  explicit InputReader(const DataSets& data);

  /// The numbers of a row, as many as it has. To is float, double or, of what is not normalised,
  /// std::int64_t.
  template <class To>
  void read(std::string_view row, To* to) const;

 private:
  ElementType type_;
  // Of pixels: what each of the 256 values becomes, for each channel.
  std::vector<float> tables_;
  std::size_t of_channel_ = 0;
  std::vector<FeatureStatistics> features_;
};
extern template void InputReader::read(std::string_view, float*) const;
extern template void InputReader::read(std::string_view, double*) const;
extern template void InputReader::read(std::string_view, std::int64_t*) const;

/// Images of one channel, which are moved into it.
[[nodiscard]] SampleSet sample_set_of(ImageSet images);

}  // namespace rubato
