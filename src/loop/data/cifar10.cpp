#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "loop/data/files/data_files.hpp"
#include "loop/data/files/mapped_file.hpp"

namespace rubato {

namespace {

// A record is a byte for the class, and 32 x 32 bytes for each of red, green and blue.
constexpr std::int64_t kCifarSide = 32;
constexpr std::int64_t kCifarChannels = 3;
constexpr std::size_t kCifarPixels = kCifarChannels * kCifarSide * kCifarSide;
constexpr std::size_t kCifarRecord = 1 + kCifarPixels;
constexpr std::int64_t kCifarClasses = 10;

using CifarFiles = std::vector<std::shared_ptr<const MappedFile>>;

std::shared_ptr<const MappedFile> open_cifar(const std::filesystem::path& folder,
                                             const std::string& name) {
  const std::filesystem::path path = folder / name;
  auto file = MappedFile::open(path,
                               "the files of the binary version of CIFAR-10, "
                               "data_batch_1.bin to data_batch_5.bin and test_batch.bin");
  if (file->bytes().empty() || file->bytes().size() % kCifarRecord != 0) {
    throw Error(fmt::format("{}: {} bytes; accepted: {} for each of its images", path.string(),
                            file->bytes().size(), kCifarRecord));
  }
  return file;
}

SampleSet samples_of(CifarFiles files) {
  std::vector<SampleRows::Segment> labels;
  std::vector<SampleRows::Segment> pixels;
  for (const auto& file : files) {
    const std::string_view bytes = file->bytes();
    const auto count = static_cast<std::int64_t>(bytes.size() / kCifarRecord);
    labels.push_back({.begin = bytes.data(), .count = count});
    pixels.push_back({.begin = bytes.data() + 1, .count = count});
  }
  const auto owner = std::make_shared<const CifarFiles>(std::move(files));
  return {.inputs = SampleRows(ElementType::u8, {kCifarChannels, kCifarSide, kCifarSide},
                               kCifarRecord, std::move(pixels), owner),
          .targets = SampleRows(ElementType::u8, {}, kCifarRecord, std::move(labels), owner)};
}

}  // namespace

DataSets read_cifar10(const std::filesystem::path& folder) {
  constexpr int kBatches = 5;
  CifarFiles train;
  for (int i = 1; i <= kBatches; ++i) {
    train.push_back(open_cifar(folder, fmt::format("data_batch_{}.bin", i)));
  }
  DataSets data{.train = samples_of(std::move(train)),
                .test = samples_of({open_cifar(folder, "test_batch.bin")}),
                .inputs = InputKind::pixels,
                .classes = kCifarClasses,
                .noun = "images"};
  const auto check = [&](const SampleSet& set, std::string_view part) {
    static_cast<void>(
        count_classes(set, fmt::format("{}: {} images", folder.string(), part), kCifarClasses));
  };
  check(data.train, "training");
  check(*data.test, "test");
  return data;
}

}  // namespace rubato
