#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <rubato/base/parse.hpp>

#include "loop/data/sample_set.hpp"
#include "loop/data/tables/csv_options.hpp"

namespace rubato {

struct DataRecord;  // data_record.hpp

// Data sets in files. All throw Error with the file, the place in it, what is wrong and what would
// be accepted; what is allocated grows with what the files really hold. DataSets::channels is not
// set yet.

/// The training and the test set of a folder of IDX files, as read_idx_folder() has them
/// (rubato/loop/images.hpp), in ten classes or as many as the labels have; raw files are mapped.
[[nodiscard]] DataSets read_idx_samples(const std::filesystem::path& folder);

/// In which order the dimensions of an image are: channels first or last.
enum class ImageLayout { chw, hwc };

inline constexpr std::array<Choice<ImageLayout>, 2> kImageLayouts{
    {{ImageLayout::chw, "chw"}, {ImageLayout::hwc, "hwc"}}};

/// These arrays of a file are inputs and targets. An empty name stands for one of the usual names.
struct TensorOptions {
  std::string x{};
  std::string y{};
  std::string x_test{};
  std::string y_test{};
  ImageLayout layout = ImageLayout::chw;
};

/// The arrays x and y, and x_test and y_test where they are there, of a file of torch.save() or
/// numpy.savez(); also by other names that are usual. Inputs of uint8 are pixels, other whole
/// numbers tokens, and all else real numbers; images of uint8 in two dimensions get a third, of one
/// channel. Targets of whole numbers are classes, in one dimension or in as many as there are
/// tokens; targets of floating-point type are real numbers.
[[nodiscard]] DataSets read_tensor_samples(const std::filesystem::path& file,
                                           const TensorOptions& options = {});

/// The same of arrays in memory; `source` stands for the file in messages.
[[nodiscard]] DataSets tensor_samples(const std::map<std::string, NumberArray>& arrays,
                                      const std::string& source);

/// A folder with a sub-folder of PNG and JPEG files for each class, in the order of their names, as
/// torchvision's ImageFolder has them; or one with `train`, and `test` or `val`, which are such
/// folders. All images have one size; they are in grey where all are stored so, otherwise in red,
/// green and blue. Pixels.
[[nodiscard]] DataSets read_image_folder(const std::filesystem::path& folder);

/// The binary version of CIFAR-10: data_batch_1.bin to data_batch_5.bin and test_batch.bin in a
/// folder, mapped. Pixels of 3 x 32 x 32, in ten classes.
[[nodiscard]] DataSets read_cifar10(const std::filesystem::path& folder);

/// A table with a header, and lines of as many fields: number columns are features of real numbers,
/// other columns as many features of 0 and 1 as they have different texts.
[[nodiscard]] DataSets read_csv_samples(const std::filesystem::path& file,
                                        const CsvOptions& options);

/// A text in UTF-8, cut into pieces of `length` >= 1 characters: tokens are the places of its
/// characters in its alphabet, in the order of their code points, and targets those of the
/// characters that follow. What fills no piece at the end is left out.
[[nodiscard]] DataSets read_text_samples(const std::filesystem::path& file, std::int64_t length);

// The samples of other data for a model that was trained on those of a record. With `labels` they
// have their targets; without, targets are 0, and need not be there.

/// Of x_test where the file has it, otherwise of x.
[[nodiscard]] SampleSet read_new_tensor_samples(const std::filesystem::path& file,
                                                const DataRecord& record, bool labels,
                                                const TensorOptions& options = {});

/// Of a table with the same columns in any order.
[[nodiscard]] SampleSet read_new_csv_samples(const std::filesystem::path& file,
                                             const DataRecord& record, bool labels);

/// Reads the folders of the same classes, in `test` or `val` if there is one. Without labels it
/// reads folders with any names, or images that lie in the folder itself.
[[nodiscard]] SampleSet read_new_images(const std::filesystem::path& folder,
                                        const DataRecord& record, bool labels);

/// Of a text of the same characters.
[[nodiscard]] SampleSet read_new_text_samples(const std::filesystem::path& file,
                                              const DataRecord& record);

}  // namespace rubato
