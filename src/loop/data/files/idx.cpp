#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/images.hpp>

#include "data_files.hpp"
#include "idx_file.hpp"

namespace rubato {

namespace {

// MNIST and similar sets have ten classes; a subset of the images may lack some.
constexpr std::int64_t kFewestClasses = 10;
constexpr std::int64_t kMostIdxClasses = 256;

// Finds the file of `folder` with the name `stem` ("train-images") in any of its usual forms. An
// unpacked file takes precedence over a packed one. Folders are ignored: some archives unpack to a
// folder called train-images-idx3-ubyte beside the file train-images.idx3-ubyte.
std::filesystem::path find_idx(const std::filesystem::path& folder, std::string_view stem,
                               std::string_view type) {
  for (const std::string_view ending : {"", ".gz"}) {
    for (const char separator : {'-', '.'}) {
      auto path = folder / fmt::format("{}{}{}{}", stem, separator, type, ending);
      std::error_code unreadable;
      const auto status = std::filesystem::status(path, unreadable);
      if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) return path;
    }
  }
  throw Error(
      fmt::format("{}: has no {stem} file; accepted: {stem}-{type} or {stem}.{type}, each "
                  "with or without .gz",
                  folder.string(), fmt::arg("stem", stem), fmt::arg("type", type)));
}

void require_as_many(const std::filesystem::path& images, std::size_t image_count,
                     const std::filesystem::path& labels, std::size_t label_count) {
  if (image_count == label_count) return;
  throw Error(fmt::format("{} holds {} images, but {} holds {} labels; accepted: as many of both",
                          images.string(), image_count, labels.string(), label_count));
}

void require_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(folder, unreadable)) return;
  const std::string reason = unreadable ? fmt::format(" ({})", unreadable.message()) : "";
  throw Error(
      fmt::format("{}: is not a folder{}; accepted: a folder with the files train-images, "
                  "train-labels, t10k-images and t10k-labels of MNIST",
                  folder.string(), reason));
}

void require_one_size(const std::filesystem::path& folder, std::int64_t height, std::int64_t width,
                      std::int64_t test_height, std::int64_t test_width) {
  if (height == test_height && width == test_width) return;
  throw Error(
      fmt::format("{}: training images of {} x {} pixels, test images of {} x {}; "
                  "accepted: one size for both",
                  folder.string(), height, width, test_height, test_width));
}

// Maps raw files; gzipped ones are read into memory.
SampleSet map_part(const std::filesystem::path& folder, std::string_view part) {
  const auto images = find_idx(folder, fmt::format("{}-images", part), "idx3-ubyte");
  const auto labels = find_idx(folder, fmt::format("{}-labels", part), "idx1-ubyte");
  const auto image_file = detail::map_idx_file(images, detail::IdxKind::images);
  const auto label_file = detail::map_idx_file(labels, detail::IdxKind::labels);
  if (!image_file || !label_file) return sample_set_of(read_idx(images, labels));
  const std::uint32_t count = image_file->shape[0];
  require_as_many(images, count, labels, label_file->bytes.size());
  const std::int64_t height = image_file->shape[1];
  const std::int64_t width = image_file->shape[2];
  return {.inputs = SampleRows(
              ElementType::u8, {1, height, width}, static_cast<std::size_t>(height * width),
              {{.begin = image_file->bytes.data(), .count = count}}, image_file->file),
          .targets =
              SampleRows(ElementType::u8, {}, 1,
                         {{.begin = label_file->bytes.data(), .count = count}}, label_file->file)};
}

ImageSet read_part(const std::filesystem::path& folder, std::string_view part) {
  return read_idx(find_idx(folder, fmt::format("{}-images", part), "idx3-ubyte"),
                  find_idx(folder, fmt::format("{}-labels", part), "idx1-ubyte"));
}

}  // namespace

ImageSet read_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  auto image_file = detail::read_idx_file(images, detail::IdxKind::images);
  auto label_file = detail::read_idx_file(labels, detail::IdxKind::labels);
  require_as_many(images, image_file.shape[0], labels, label_file.bytes.size());
  return {.count = image_file.shape[0],
          .height = image_file.shape[1],
          .width = image_file.shape[2],
          .pixels = std::move(image_file.bytes),
          .labels = std::move(label_file.bytes)};
}

TrainTestImages read_idx_folder(const std::filesystem::path& folder) {
  require_folder(folder);
  TrainTestImages sets{.train = read_part(folder, "train"), .test = read_part(folder, "t10k")};
  require_one_size(folder, sets.train.height, sets.train.width, sets.test.height, sets.test.width);
  return sets;
}

DataSets read_idx_samples(const std::filesystem::path& folder) {
  require_folder(folder);
  DataSets data{.train = map_part(folder, "train"),
                .test = map_part(folder, "t10k"),
                .inputs = InputKind::pixels,
                .classes = kFewestClasses,
                .noun = "images"};
  for (const SampleSet* const set : {&data.train, &*data.test}) {
    data.classes = std::max(data.classes, count_classes(*set, folder.string(), kMostIdxClasses));
  }
  const auto& train = data.train.inputs.shape();
  const auto& test = data.test->inputs.shape();
  require_one_size(folder, train[1], train[2], test[1], test[2]);
  note_missing_classes(data);
  return data;
}

}  // namespace rubato
