#include "tensor_file.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include <rubato/core/error.hpp>

#include "core/memory.hpp"
#include "data/mapped_file.hpp"
#include "numpy_array.hpp"
#include "pickle_value.hpp"
#include "zip_records.hpp"

namespace rubato {

namespace {

using Arrays = std::map<std::string, NumberArray>;
using Records = std::map<std::string, ZipRecord>;
using Kind = PickleValue::Kind;

constexpr std::string_view kAccepted =
    "torch.save({'x': x, 'y': y}, FILE) or numpy.savez(FILE, x=x, y=y)";

struct StorageType {
  std::string_view name;
  ElementType type;
};
constexpr std::array<StorageType, 10> kStorageTypes{{{"torch.FloatStorage", ElementType::f32},
                                                     {"torch.DoubleStorage", ElementType::f64},
                                                     {"torch.HalfStorage", ElementType::f16},
                                                     {"torch.BFloat16Storage", ElementType::bf16},
                                                     {"torch.LongStorage", ElementType::i64},
                                                     {"torch.IntStorage", ElementType::i32},
                                                     {"torch.ShortStorage", ElementType::i16},
                                                     {"torch.CharStorage", ElementType::i8},
                                                     {"torch.ByteStorage", ElementType::u8},
                                                     {"torch.BoolStorage", ElementType::boolean}}};

// Of what the pickle of a dictionary of tensors says.
class TensorReader {
 public:
  TensorReader(const Records& records, std::shared_ptr<const MappedFile> file,
               const std::string& source)
      : records_(records), file_(std::move(file)), source_(source) {}

  [[nodiscard]] NumberArray read(const std::string& key, const PickleValue& value) const {
    const std::string name = fmt::format("{}: '{}'", source_, key);
    if (value.kind != Kind::call || value.items[0]->kind != Kind::global) {
      fail(name, "is no tensor");
    }
    const std::string& function = value.items[0]->text;
    const auto& arguments = value.items[1]->items;
    if (function != "torch._utils._rebuild_tensor_v2" || arguments.size() < 4) {
      fail(name, "is no dense tensor");
    }
    StridedArray array{.shape = numbers(name, *arguments[2]),
                       .strides = numbers(name, *arguments[3])};
    if (array.shape.size() != array.strides.size()) fail(name, "has sizes that are none");
    array.bytes = storage(name, *arguments[0], array.type);
    const std::int64_t offset = number(name, *arguments[1]);
    const auto held = static_cast<std::int64_t>(array.bytes.size() / size_of(array.type));
    if (offset > held) fail(name, "reaches beyond what the file holds of it");
    array.bytes.remove_prefix(static_cast<std::size_t>(offset) * size_of(array.type));
    return dense(array, file_, name);
  }

 private:
  [[noreturn]] static void fail(const std::string& name, std::string_view why) {
    throw Error(fmt::format("{} {}; accepted: dense tensors, as {} saves them", name, why,
                            "torch.save({'x': x, 'y': y}, FILE)"));
  }

  // What the tensor is a view of.
  std::string_view storage(const std::string& name, const PickleValue& value,
                           ElementType& type) const {
    const bool persistent = value.kind == Kind::persistent && value.items[0]->kind == Kind::tuple;
    if (!persistent || value.items[0]->items.size() != 5) fail(name, "has no storage");
    const auto& id = value.items[0]->items;
    const auto* const row =
        std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                     [&](const auto& known) { return known.name == id[1]->text; });
    if (row == kStorageTypes.end()) fail(name, "is of a type that no data are of");
    type = row->type;
    const auto record = records_.find("data/" + id[2]->text);
    if (record == records_.end()) fail(name, "has no record in the file");
    if (record->second.deflated) fail(name, "is compressed");
    return record->second.bytes;
  }

  static std::int64_t number(const std::string& name, const PickleValue& value) {
    if (value.kind != Kind::integer || value.integer < 0) fail(name, "has sizes that are none");
    return value.integer;
  }
  static std::vector<std::int64_t> numbers(const std::string& name, const PickleValue& value) {
    constexpr std::size_t kMostDimensions = 64;
    if (value.kind != Kind::tuple || value.items.size() > kMostDimensions) {
      fail(name, "has sizes that are none");
    }
    std::vector<std::int64_t> numbers;
    for (const PickleValue* const item : value.items) numbers.push_back(number(name, *item));
    return numbers;
  }

  const Records& records_;
  std::shared_ptr<const MappedFile> file_;
  const std::string& source_;
};

Arrays saved_by_torch(const Records& records, const std::shared_ptr<const MappedFile>& file,
                      const std::string& source) {
  const auto fail = [&source](const std::string& why) {
    throw Error(fmt::format("{}: {}; accepted: {}", source, why, kAccepted));
  };
  if (records.contains("constants.pkl")) fail("it is TorchScript, not data");
  if (const auto order = records.find("byteorder");
      order != records.end() && order->second.bytes != "little") {
    fail(fmt::format("its numbers are {}-endian", order->second.bytes));
  }
  const ZipRecord& pickle = records.at("data.pkl");
  if (pickle.deflated) fail("its data.pkl is compressed");
  const Pickle pickled(pickle.bytes, source, kAccepted);
  if (pickled.value().kind != Kind::dict) fail("it holds no dictionary");
  const TensorReader reader(records, file, source);
  Arrays arrays;
  for (const auto& [key, value] : pickled.value().entries) {
    if (key->kind != Kind::text) fail("it holds a key that is no text");
    arrays.insert_or_assign(key->text, reader.read(key->text, *value));
  }
  return arrays;
}

// The inflated bytes of a record. What is allocated grows as they come, whatever the directory
// says.
std::shared_ptr<const std::string> inflated(const ZipRecord& record, const std::string& name) {
  const auto fail = [&name](std::string_view why) {
    throw Error(fmt::format("{} {}; accepted: numpy.savez_compressed(FILE, x=x, y=y)", name, why));
  };
  require_memory(static_cast<double>(record.size), fmt::format("{}, unpacked, needs", name),
                 "numpy.savez() writes what is read where it lies");
  z_stream stream{};
  // Raw deflate: a zip archive has the checksum in its directory.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const auto end = [](z_stream* used) { inflateEnd(used); };
  const std::unique_ptr<z_stream, decltype(end)> guard(&stream, end);
  constexpr std::size_t kFirstRoom = std::size_t{1} << 16U;
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;
  auto bytes = std::make_shared<std::string>();
  std::string_view packed = record.bytes;
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0 && !packed.empty()) {
      const std::size_t next = std::min(packed.size(), kMostAtOnce);
      // zlib only reads.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(next);
      packed.remove_prefix(next);
    }
    const std::size_t before = bytes->size();
    if (before > record.size) break;
    // One byte more than there should be, so that a stream that is too long is seen.
    const std::size_t room =
        std::min({std::max(before, kFirstRoom), static_cast<std::size_t>(record.size) + 1 - before,
                  kMostAtOnce});
    if (room == 0) break;
    bytes->reserve(before + room);
    bytes->resize(before + room);
    stream.next_out = reinterpret_cast<Bytef*>(bytes->data() + before);
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    bytes->resize(before + room - stream.avail_out);
  }
  if (state != Z_STREAM_END || bytes->size() != record.size) fail("is damaged");
  uLong checksum = crc32(0, nullptr, 0);
  for (std::string_view rest = *bytes; !rest.empty();) {
    const std::size_t next = std::min(rest.size(), kMostAtOnce);
    checksum =
        crc32(checksum, reinterpret_cast<const Bytef*>(rest.data()), static_cast<uInt>(next));
    rest.remove_prefix(next);
  }
  if (checksum != record.checksum) fail("fails its checksum");
  return bytes;
}

Arrays saved_by_numpy(const Records& records, const std::shared_ptr<const MappedFile>& file,
                      const std::string& source) {
  constexpr std::string_view kNpy = ".npy";
  Arrays arrays;
  for (const auto& [file_name, record] : records) {
    if (!file_name.ends_with(kNpy)) continue;
    const std::string key = file_name.substr(0, file_name.size() - kNpy.size());
    const std::string name = fmt::format("{}: '{}'", source, key);
    if (record.deflated) {
      const auto bytes = inflated(record, name);
      arrays.insert_or_assign(key, parse_npy(*bytes, bytes, name));
    } else {
      arrays.insert_or_assign(key, parse_npy(record.bytes, file, name));
    }
  }
  return arrays;
}

}  // namespace

std::map<std::string, NumberArray> read_tensor_file(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, kAccepted);
  const std::string source = path.string();
  // Python's number for the format of before 1.6, in a pickle of its own.
  constexpr std::string_view kOldFormat("\x80\x02\x8a\x0a\x6c\xfc", 6);
  if (file->bytes().starts_with(kOldFormat)) {
    throw Error(
        fmt::format("{}: it is in the format of PyTorch before 1.6; accepted: a file that a newer "
                    "one has written by torch.save()",
                    source));
  }
  const Records records = zip_directory(file->bytes(), source, kAccepted);
  if (records.contains("data.pkl")) return saved_by_torch(records, file, source);
  return saved_by_numpy(records, file, source);
}

}  // namespace rubato
