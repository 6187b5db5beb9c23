#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace rubato {

/// Labelled images of one size in memory, one byte per pixel.
struct ImageSet {
  std::int64_t count = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// count x height x width, row by row, 0 is background.
  std::vector<std::uint8_t> pixels;
  /// count labels, which are classes from 0 on.
  std::vector<std::uint8_t> labels;

  /// The pixels of image i, 0 <= i < count.
  [[nodiscard]] std::span<const std::uint8_t> image(std::int64_t i) const {
    const auto size = static_cast<std::size_t>(height * width);
    return std::span(pixels).subspan(static_cast<std::size_t>(i) * size, size);
  }
};

/// Mean and standard deviation (of the population) of all pixels, scaled to [0, 1]. The deviation
/// is 0 if all pixels are equal; a set without pixels has the default values.
struct PixelStatistics {
  double mean = 0;
  double deviation = 1;
};
[[nodiscard]] PixelStatistics pixel_statistics(const ImageSet& images);
/// The statistics of `pixels` values from 0 to 255, given their sum and the sum of their squares.
[[nodiscard]] PixelStatistics pixel_statistics(std::uint64_t pixels, std::uint64_t sum,
                                               std::uint64_t squares);

/// Maps each pixel value, 0 to 255, to its normalised value: scaled to [0, 1], less the mean and
/// divided by the deviation, or by 1 if that is 0. Computed in double.
[[nodiscard]] std::array<float, 256> normalised_pixels(const PixelStatistics& statistics);

/// A data set as a trainer needs it.
struct TrainTestImages {
  ImageSet train;
  ImageSet test;
};

/// A user's own data set, in memory.
struct OwnData {
  struct Samples {
    /// The samples one after the other, each with as many numbers as `shape` says; finite.
    std::vector<float> inputs;
    /// The class of each sample, 0 <= class < classes; empty if targets are real numbers.
    std::vector<std::int64_t> labels{};
    /// The real targets of one sample after the other, equally many for each; finite. Empty if
    /// targets are classes.
    std::vector<float> targets{};
  };
  /// The shape of a sample: {features}, {height, width} or {channels, height, width}.
  std::vector<std::int64_t> shape;
  /// The number of classes; 0 if targets are real numbers.
  std::int64_t classes = 0;
  Samples train;
  /// Evaluated after each epoch.
  std::optional<Samples> test{};
};

/// The data set behind a name of --data, made or read only when it is needed.
struct OwnDataSource {
  /// Must return the same samples in the same order on every call, because a resume compares them.
  /// An exception ends the command.
  std::function<OwnData()> load;
};

/// Reads an IDX image file (magic 0x00000803) and its label file (0x00000801), each raw or gzipped
/// (recognised by content, not by name). Throws Error with the file and the cause: unreadable,
/// truncated, damaged, longer than its header says, another magic, no images, images without
/// pixels, counts that disagree. Allocations grow with the data that the file really holds,
/// whatever its header claims.
[[nodiscard]] ImageSet read_idx(const std::filesystem::path& images,
                                const std::filesystem::path& labels);

/// Reads the training and the test set of a folder that holds the four files of MNIST,
/// Fashion-MNIST or KMNIST under any of their usual names: train-images-idx3-ubyte,
/// train-images.idx3-ubyte, t10k-..., each with or without .gz. Throws Error naming the file that
/// is missing and the names that would be accepted, or both sizes when training and test images
/// differ in theirs.
[[nodiscard]] TrainTestImages read_idx_folder(const std::filesystem::path& folder);

}  // namespace rubato
