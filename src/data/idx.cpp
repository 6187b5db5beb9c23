#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/data/idx.hpp>

#include "idx_file.hpp"

namespace rubato {

namespace {

constexpr std::uint8_t kLastLabel = 9;

// The file of `folder` that is called `stem` ("train-images") under any of its usual names. An
// unpacked file goes before a packed one. Folders do not count: some archives unpack to a folder
// called train-images-idx3-ubyte beside the file train-images.idx3-ubyte.
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

ImageSet read_part(const std::filesystem::path& folder, std::string_view part) {
  return read_idx(find_idx(folder, fmt::format("{}-images", part), "idx3-ubyte"),
                  find_idx(folder, fmt::format("{}-labels", part), "idx1-ubyte"));
}

}  // namespace

ImageSet read_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  auto image_file = detail::read_idx_file(images, detail::IdxKind::images);
  auto label_file = detail::read_idx_file(labels, detail::IdxKind::labels);
  if (image_file.shape[0] != label_file.shape[0]) {
    throw Error(fmt::format("{} holds {} images, but {} holds {} labels; accepted: as many of both",
                            images.string(), image_file.shape[0], labels.string(),
                            label_file.shape[0]));
  }
  const auto wrong =
      std::ranges::find_if(label_file.bytes, [](std::uint8_t label) { return label > kLastLabel; });
  if (wrong != label_file.bytes.end()) {
    throw Error(fmt::format("{}: label {} of image {}; accepted: 0 to {}", labels.string(), *wrong,
                            wrong - label_file.bytes.begin(), kLastLabel));
  }
  return {.count = image_file.shape[0],
          .height = image_file.shape[1],
          .width = image_file.shape[2],
          .pixels = std::move(image_file.bytes),
          .labels = std::move(label_file.bytes)};
}

TrainTestImages read_idx_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (!std::filesystem::is_directory(folder, unreadable)) {
    const std::string reason = unreadable ? fmt::format(" ({})", unreadable.message()) : "";
    throw Error(
        fmt::format("{}: is not a folder{}; accepted: a folder with the files train-images, "
                    "train-labels, t10k-images and t10k-labels of MNIST",
                    folder.string(), reason));
  }
  TrainTestImages sets{.train = read_part(folder, "train"), .test = read_part(folder, "t10k")};
  if (sets.train.height != sets.test.height || sets.train.width != sets.test.width) {
    throw Error(fmt::format(
        "{}: training images of {} x {} pixels, test images of {} x {}; "
        "accepted: one size for both",
        folder.string(), sets.train.height, sets.train.width, sets.test.height, sets.test.width));
  }
  return sets;
}

}  // namespace rubato
