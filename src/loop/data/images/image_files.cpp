// Two formats of labelled images are read here: IDX, which is that of MNIST and its relatives, and
// the binary version of CIFAR-10; picture.cpp has PNG and JPEG. read_idx_samples() and
// read_cifar10() map raw files, and the rows of their samples lie in the mapped bytes; read_idx()
// reads into memory, and read_idx_samples() falls back on it if one of two files is gzipped. The
// header of an IDX file is not trusted: its shape must be one that a file can have, and a file that
// is shorter or longer than it says is refused. A record of CIFAR-10 has its label before its
// pixels, so inputs and targets are two views of the same bytes whose stride is a record.

#include "image_files.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/images.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/input_file.hpp"

namespace rubato::detail {

namespace {

// A magic number is two zero bytes, the type of an element (8: unsigned byte) and the number of
// dimensions; the dimensions follow. All numbers are 32 bits, most significant byte first.
constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kLabelsMagic = 0x00000801;
constexpr std::size_t kWord = 4;

std::uint32_t magic_of(IdxKind kind) {
  return kind == IdxKind::images ? kImagesMagic : kLabelsMagic;
}

std::string_view name_of(IdxKind kind) {
  return kind == IdxKind::images ? "image" : "label";
}

std::string accepted(IdxKind kind) {
  return fmt::format("an IDX {} file (magic 0x{:08x}), raw or gzipped", name_of(kind),
                     magic_of(kind));
}

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
  std::uint32_t value = 0;
  for (const std::uint8_t byte : bytes.first(kWord)) value = value << 8U | byte;
  return value;
}

// Describes the shape for messages.
std::string describe(IdxKind kind, const std::array<std::uint32_t, 3>& shape) {
  if (kind == IdxKind::labels) return fmt::format("{} labels", shape[0]);
  return fmt::format("{} images of {} x {} pixels", shape[0], shape[1], shape[2]);
}

void check_magic(const std::filesystem::path& path, IdxKind kind, std::uint32_t found) {
  if (found == magic_of(kind)) return;
  const IdxKind other = kind == IdxKind::images ? IdxKind::labels : IdxKind::images;
  const std::string hint =
      found == magic_of(other)
          ? fmt::format(", which is an IDX {} file: are images and labels swapped?", name_of(other))
          : std::string();
  throw_error("{}: its magic is 0x{:08x}{}; accepted: {}", path.string(), found, hint,
              accepted(kind));
}

std::array<std::uint32_t, 3> read_shape(GzipFile& file, const std::filesystem::path& path,
                                        IdxKind kind) {
  const std::size_t dimensions = kind == IdxKind::images ? 3 : 1;
  const std::size_t header_size = kWord * (1 + dimensions);
  std::array<std::uint8_t, kWord * 4> header{};
  const std::size_t found = file.read(std::span(header).first(header_size));
  // The magic is checked first: for a short file of another kind, the kind is the better message.
  if (found >= kWord) check_magic(path, kind, big_endian(header));
  if (found < header_size) {
    throw_error("{}: truncated: {} bytes where the header alone takes {}; accepted: {}",
                path.string(), found, header_size, accepted(kind));
  }
  std::array<std::uint32_t, 3> shape{1, 1, 1};
  for (std::size_t d = 0; d < dimensions; ++d) {
    shape[d] = big_endian(std::span(header).subspan(kWord * (1 + d)));
  }
  return shape;
}

// Returns the bytes of a file of this shape after its header, or nothing if no file could hold
// them.
std::optional<std::uint64_t> payload_size(const std::array<std::uint32_t, 3>& shape) {
  const std::uint64_t image = std::uint64_t{shape[1]} * shape[2];
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (image > kMost / shape[0]) return std::nullopt;
  return image * shape[0];
}

// Returns the same; throws Error if a file cannot have the shape that its header claims.
std::uint64_t checked_payload_size(const std::filesystem::path& path, IdxKind kind,
                                   const std::array<std::uint32_t, 3>& shape) {
  if (std::ranges::find(shape, 0U) != shape.end()) {
    throw_error("{}: its header says {}; accepted: at least one {}", path.string(),
                describe(kind, shape), kind == IdxKind::images ? "image of one pixel" : "label");
  }
  const auto size = payload_size(shape);
  if (!size) {
    throw_error("{}: its header says {}, more than any file holds; accepted: {}", path.string(),
                describe(kind, shape), accepted(kind));
  }
  return *size;
}

[[noreturn]] void fail_truncated(const std::filesystem::path& path, std::uint64_t found,
                                 const std::string& claim, std::uint64_t size) {
  throw_error("{}: truncated: {} bytes of data where its header says {}; accepted: {}",
              path.string(), found, claim, size);
}
[[noreturn]] void fail_too_long(const std::filesystem::path& path, const std::string& claim,
                                std::uint64_t size) {
  throw_error("{}: longer than its header says, {}; accepted: {} bytes of data", path.string(),
              claim, size);
}

// Reads `size` bytes, or fewer if the file ends before; `packed` is the size of the file.
std::vector<std::uint8_t> read_payload(GzipFile& file, std::uint64_t size, std::uint64_t packed) {
  // The first room suffices for usual images. Then it doubles as data arrive, so a wrong header
  // costs no more memory than a small multiple of the data that really exist.
  const std::uint64_t first = std::max(std::uint64_t{1} << 20U, 8 * packed);
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < size) {
    const std::size_t before = bytes.size();
    const auto room = static_cast<std::size_t>(std::min(size, std::max(first, 2 * before)));
    bytes.reserve(room);  // exactly: resize alone may double the room past `size`
    bytes.resize(room);
    const std::size_t got = file.read(std::span(bytes).subspan(before));
    bytes.resize(before + got);
    if (bytes.size() < room) break;
  }
  return bytes;
}

}  // namespace

IdxFile read_idx_file(const std::filesystem::path& path, IdxKind kind) {
  GzipFile file(path, accepted(kind));
  IdxFile result{.shape = read_shape(file, path, kind), .bytes = {}};
  const std::string claim = describe(kind, result.shape);
  const std::uint64_t size = checked_payload_size(path, kind, result.shape);
  // A pipe has no size.
  std::error_code ignored;
  const std::uintmax_t packed = std::filesystem::file_size(path, ignored);
  result.bytes = read_payload(file, size, ignored ? 0 : packed);
  if (result.bytes.size() < size) fail_truncated(path, result.bytes.size(), claim, size);
  // This read also reaches the end of a gzip stream, and with it the checksum.
  std::array<std::uint8_t, 1> beyond{};
  if (file.read(beyond) != 0) fail_too_long(path, claim, size);
  return result;
}

std::optional<MappedIdx> map_idx_file(const std::filesystem::path& path, IdxKind kind) {
  constexpr std::string_view kGzip = "\x1F\x8B";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  MappedIdx result{.file = MappedFile::open(path, accepted(kind))};
  if (result.file->bytes().starts_with(kGzip)) return std::nullopt;
  {
    GzipFile file(path, accepted(kind));
    result.shape = read_shape(file, path, kind);
  }
  const std::uint64_t size = checked_payload_size(path, kind, result.shape);
  result.bytes = result.file->bytes().substr(kind == IdxKind::images ? 4 * kWord : 2 * kWord);
  const std::string claim = describe(kind, result.shape);
  if (result.bytes.size() < size) fail_truncated(path, result.bytes.size(), claim, size);
  if (result.bytes.size() > size) fail_too_long(path, claim, size);
  return result;
}

}  // namespace rubato::detail

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
  throw_error(
      "{}: has no {stem} file; accepted: {stem}-{type} or {stem}.{type}, each with or without .gz",
      folder.string(), fmt::arg("stem", stem), fmt::arg("type", type));
}

void require_as_many(const std::filesystem::path& images, std::size_t image_count,
                     const std::filesystem::path& labels, std::size_t label_count) {
  if (image_count == label_count) return;
  throw_error("{} holds {} images, but {} holds {} labels; accepted: as many of both",
              images.string(), image_count, labels.string(), label_count);
}

void require_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(folder, unreadable)) {
    require_readable_folder(folder);
    return;
  }
  const std::string reason = unreadable ? fmt::format(" ({})", unreadable.message()) : "";
  throw_error(
      "{}: is not a folder{}; accepted: a folder with the files train-images, train-labels, "
      "t10k-images and t10k-labels of MNIST",
      folder.string(), reason);
}

void require_one_size(const std::filesystem::path& folder, std::int64_t height, std::int64_t width,
                      std::int64_t test_height, std::int64_t test_width) {
  if (height == test_height && width == test_width) return;
  throw_error(
      "{}: training images of {} x {} pixels, test images of {} x {}; accepted: one size for both",
      folder.string(), height, width, test_height, test_width);
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
    throw_error("{}: {} bytes; accepted: {} for each of its images", path.string(),
                file->bytes().size(), kCifarRecord);
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
