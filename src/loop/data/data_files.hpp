#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>

#include "loop/data/tables/table_encoding.hpp"
#include "loop/data/texts/sentences.hpp"
#include "loop/data/texts/text_encoding.hpp"
#include "sample_set.hpp"

namespace rubato {

/// The properties of the data on which a model was trained, as needed to use the model on other
/// data. A run keeps them in its folder, as JSON.
struct DataRecord {
  /// The kind of --data: "csv".
  std::string kind{};
  InputKind inputs = InputKind::reals;
  /// The shape of an input, and that of a target.
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> target_shape{};
  /// The following are the same as in DataSets.
  std::int64_t classes = 0;
  std::int64_t vocabulary = 0;
  std::vector<PixelStatistics> channels{};
  std::vector<FeatureStatistics> features{};
  /// The encoding, if the data are a text.
  std::shared_ptr<const TextEncoding> text{};
  /// The names of the classes of a folder of images.
  std::vector<std::string> class_names{};
  /// The encoding, if the data are a table.
  std::shared_ptr<const TableEncoding> table{};
};

/// Describes normalised data sets; `kind` is that of --data.
[[nodiscard]] DataRecord record_of(const DataSets& data, std::string_view kind);

[[nodiscard]] std::string to_json(const DataRecord& record);
/// Messages name the file as `source`. Throws Error for any other text.
[[nodiscard]] DataRecord parse_data_record(std::string_view json, const std::string& source);

// Data sets in files. All functions throw Error with the file, the place in it, the cause and what
// would be accepted; allocations grow with what the files really hold. DataSets::channels is not
// set yet.

/// Reads the training and the test set of a folder of IDX files, like read_idx_folder()
/// (rubato/loop/images.hpp), with ten classes or as many as the labels have; raw files are mapped.
[[nodiscard]] DataSets read_idx_samples(const std::filesystem::path& folder);

/// The order of an image's dimensions: channels first or last.
enum class ImageLayout { chw, hwc };

inline constexpr std::array<Choice<ImageLayout>, 2> kImageLayouts{
    {{ImageLayout::chw, "chw"}, {ImageLayout::hwc, "hwc"}}};

/// The names of the arrays with inputs and targets. An empty name stands for one of the usual
/// names.
struct TensorOptions {
  std::string x{};
  std::string y{};
  std::string x_test{};
  std::string y_test{};
  /// The array with a weight for each sample of x; empty for none.
  std::string weights{};
  ImageLayout layout = ImageLayout::chw;
  IgnoredTargets ignored{};
};

/// Reads the arrays x and y, and x_test and y_test if they exist, from a file of torch.save() or
/// numpy.savez(); other usual names are recognised, too. Inputs of uint8 are pixels, other whole
/// numbers are tokens, and all others are real numbers; images of uint8 in two dimensions get a
/// third, of one channel. Targets of whole numbers are classes, in one dimension or in as many as
/// there are tokens; targets of floating-point type are real numbers.
[[nodiscard]] DataSets read_tensor_samples(const std::filesystem::path& file,
                                           const TensorOptions& options = {});

/// Reads the same from arrays in memory; messages name the file as `source`.
[[nodiscard]] DataSets tensor_samples(const std::map<std::string, NumberArray>& arrays,
                                      const std::string& source,
                                      const IgnoredTargets& ignored = {});

/// Reads a folder with a sub-folder of PNG and JPEG files for each class, in the order of their
/// names, like torchvision's ImageFolder; or one with `train`, and `test` or `val`, which are such
/// folders. All images must have the same size; they are grey if all are stored in grey, otherwise
/// red, green and blue. Inputs are pixels.
[[nodiscard]] DataSets read_image_folder(const std::filesystem::path& folder);

/// Reads the binary version of CIFAR-10: data_batch_1.bin to data_batch_5.bin and test_batch.bin in
/// a folder, which are mapped. Inputs are pixels of 3 x 32 x 32, in ten classes.
[[nodiscard]] DataSets read_cifar10(const std::filesystem::path& folder);

/// Reads a table with a header, whose lines have equally many fields: number columns are features
/// of real numbers, other columns as many features of 0 and 1 as they have different texts.
[[nodiscard]] DataSets read_csv_samples(const std::filesystem::path& file,
                                        const CsvOptions& options);

/// Reads a text, cut into pieces of TextOptions::length tokens, and makes its encoding. Targets are
/// the tokens that follow. An incomplete piece at the end is left out. Characters must be in UTF-8.
[[nodiscard]] DataSets read_text_samples(const std::filesystem::path& file,
                                         const TextOptions& options);

/// The same of sentences() and their test text, with the encoding of the training text.
[[nodiscard]] DataSets make_sentence_samples(const SentenceOptions& sentences,
                                             const TextOptions& options);

/// The mean size in bytes of the targets of samples of a text.
[[nodiscard]] double bytes_per_target(const SampleSet& samples, const TextEncoding& encoding);

// The following functions read other data for a model that was trained on the data of a record.
// With `labels` the samples have their targets; without, targets are 0, and the files need not have
// any.

/// Reads x_test if the file has it or if the options name a test set, otherwise x.
[[nodiscard]] SampleSet read_new_tensor_samples(const std::filesystem::path& file,
                                                const DataRecord& record, bool labels,
                                                const TensorOptions& options = {});

/// Reads a table with the same columns in any order. It is written as the training table, except
/// that the separator, the comment and the words for missing values of `options` take precedence.
/// A category that training did not have is an error. If `unseen` is not null, such a category in a
/// feature's column has features of 0 instead, and `*unseen` becomes the number of rows with one.
[[nodiscard]] SampleSet read_new_csv_samples(const std::filesystem::path& file,
                                             const DataRecord& record, bool labels,
                                             const CsvOptions& options = {},
                                             std::int64_t* unseen = nullptr);

/// Reads the folders of the same classes, in `test` or `val` if there is one. Without labels it
/// reads folders with any names, or images that lie in the folder itself.
[[nodiscard]] SampleSet read_new_images(const std::filesystem::path& folder,
                                        const DataRecord& record, bool labels);

/// Reads a text by the encoding of the record, whose alphabet must have all of its characters.
[[nodiscard]] SampleSet read_new_text_samples(const std::filesystem::path& file,
                                              const DataRecord& record);

/// The test text of sentences, by the encoding of the record.
[[nodiscard]] SampleSet make_new_sentence_samples(const SentenceOptions& sentences,
                                                  const DataRecord& record);

}  // namespace rubato
