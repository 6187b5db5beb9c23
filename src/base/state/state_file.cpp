// The writer streams: the header needs only types, shapes and sizes, so the arrays follow it
// without being copied together, and the SHA-256 is computed while the bytes pass. The parser
// trusts nothing. It checks the digest before it parses anything, bounds the header's length,
// requires that the arrays tile the data without gaps, and checks that they claim no more bytes
// than there are before it copies them. Safetensors files of other programs have no digest;
// parse_arrays() reads them with the remaining checks, and a file whose header names a digest with
// all of them.

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/state.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "safetensors.hpp"
#include "sha256.hpp"

namespace rubato {

static_assert(std::endian::native == std::endian::little,
              "arrays are written as they lie in memory");

namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
// The limit is far above any model's, and bounds the memory of the parsed JSON.
constexpr std::uint64_t kMaxHeader = 10'000'000;
// The header is padded to a multiple of this, so that mapped arrays are aligned.
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kDigestBytes = std::tuple_size_v<Sha256::Digest>;
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kKind = "rubato.kind";
constexpr std::string_view kKindValue = "state";
constexpr std::string_view kVersion = "rubato.version";
constexpr std::string_view kDigest = "rubato.sha256";

Json entry(const StateArray& array, std::size_t begin) {
  return {{"dtype", name_of(array.type)},
          {"shape", array.shape},
          {"data_offsets", {begin, begin + array.bytes.size()}}};
}

std::string length_bytes(std::size_t length) {
  std::string bytes(kLengthBytes, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(length & 0xFF);
    length >>= 8;
  }
  return bytes;
}

std::uint64_t read_length(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<std::uint8_t>(bytes[i]);
  }
  return length;
}

class Parser {
 public:
  Parser(std::string_view bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  State state() {
    check_digest();
    const Json header = read_header();
    State state;
    read_texts(header, state);
    read_arrays(header, state);
    return state;
  }

  // A file of rubato that is damaged is not one of other programs: its header names the checksum.
  State state_of_any() {
    kind_ = "a safetensors file";
    if (bytes_.size() < kLengthBytes) fail(fmt::format("it has only {} bytes", bytes_.size()));
    const Json header = read_header();
    if (header.contains(kDigest)) return Parser(bytes_, source_).state();
    State state;
    read_arrays(header, state);
    return state;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw_error("{}: damaged or not {}: {}", source_, kind_, what);
  }

  Json read_header() {
    const std::uint64_t length = read_length(bytes_);
    if (length > kMaxHeader || length > bytes_.size() - kLengthBytes) {
      fail("its header is longer than the file");
    }
    data_ = bytes_.substr(kLengthBytes + length);
    Json header = Json::parse(bytes_.substr(kLengthBytes, length), nullptr, false);
    if (!header.is_object()) fail("its header is not a JSON object");
    return header;
  }

  void read_arrays(const Json& header, State& state) {
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata) continue;
      StateArray array = array_of(name, value);
      if (name != kDigest) state.put_array(name, std::move(array));
    }
    require_tiling();
  }

  // This check is the first, so that a damaged file is never reported as anything else.
  void check_digest() const {
    if (bytes_.size() < kLengthBytes + kDigestBytes) {
      fail(fmt::format("it has only {} bytes", bytes_.size()));
    }
    const Sha256::Digest digest = Sha256::digest_of(bytes_.substr(0, bytes_.size() - kDigestBytes));
    if (!std::equal(digest.begin(), digest.end(), bytes_.end() - kDigestBytes,
                    [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); })) {
      fail("its checksum is wrong");
    }
  }

  void read_texts(const Json& header, State& state) const {
    const auto texts = header.find(kMetadata);
    if (texts == header.end() || !texts->is_object()) fail("it has no metadata");
    std::string kind;
    std::string version;
    for (const auto& [name, value] : texts->items()) {
      if (!value.is_string()) fail(fmt::format("its text '{}' is not a string", name));
      const auto& text = value.get_ref<const std::string&>();
      if (name == kKind) {
        kind = text;
      } else if (name == kVersion) {
        version = text;
      } else {
        state.put_text(name, text);
      }
    }
    if (kind != kKindValue) fail("its metadata are not rubato's");
    const bool number = !version.empty() && version.size() < 10 &&
                        version.find_first_not_of("0123456789") == std::string::npos;
    if (!number || std::stoll(version) < 1) fail("its version is not a number");
    if (std::stoll(version) > kStateVersion) {
      throw NewerVersion(fmt::format(
          "{}: is of version {}, which a newer rubato has written; this one reads up to {}",
          source_, version, kStateVersion));
    }
  }

  // Throws unless every byte belongs to exactly one array.
  void require_tiling() {
    std::sort(ranges_.begin(), ranges_.end());
    std::uint64_t end = 0;
    for (const auto& [first, last] : ranges_) {
      if (first != end) fail("its arrays do not follow one another");
      end = last;
    }
    if (end != data_.size()) fail("it holds more than its arrays");
  }

  [[nodiscard]] StateArray array_of(const std::string& name, const Json& value) {
    const auto damaged = [&] { fail(fmt::format("its array '{}' is malformed", name)); };
    if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string()) damaged();
    const auto& dtype = value["dtype"].get_ref<const std::string&>();
    const auto* const type =
        std::find_if(kElementTypes.begin(), kElementTypes.end(),
                     [&](const ElementTypeName& known) { return known.name == dtype; });
    if (type == kElementTypes.end()) {
      fail(fmt::format("its array '{}' is of type {}, not of one such as F32", name, dtype));
    }
    const std::vector<std::uint64_t> shape = numbers_of(value, "shape");
    const std::vector<std::uint64_t> offsets = numbers_of(value, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size()) damaged();
    ranges_.emplace_back(offsets[0], offsets[1]);
    // Overlapping arrays could claim any amount of memory.
    claimed_ += offsets[1] - offsets[0];
    if (claimed_ > data_.size()) damaged();
    // The product must be the length; the division avoids an overflow.
    const std::uint64_t length = offsets[1] - offsets[0];
    const bool empty = std::find(shape.begin(), shape.end(), 0U) != shape.end();
    std::uint64_t bytes = empty ? 0 : type->bytes;
    for (const std::uint64_t extent : shape) {
      if (extent != 0 && bytes > length / extent) damaged();
      bytes *= extent;
    }
    if (bytes != length) damaged();
    StateArray array{.type = type->type, .shape = {}, .bytes = {}};
    for (const std::uint64_t extent : shape) {
      if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) damaged();
      array.shape.push_back(static_cast<std::int64_t>(extent));
    }
    array.bytes = data_.substr(offsets[0], length);
    return array;
  }

  [[nodiscard]] std::vector<std::uint64_t> numbers_of(const Json& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end() || !found->is_array()) fail(fmt::format("there is no '{}'", key));
    std::vector<std::uint64_t> numbers;
    for (const Json& number : *found) {
      if (!number.is_number_unsigned()) fail(fmt::format("a '{}' is not a number", key));
      numbers.push_back(number.get<std::uint64_t>());
    }
    return numbers;
  }

  std::string_view bytes_;
  std::string_view source_;
  std::string_view kind_ = "a checkpoint";
  std::string_view data_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  std::uint64_t claimed_ = 0;
};

}  // namespace

std::string state_bytes(const State& state) {
  std::size_t size = 0;
  for (const auto& [name, array] : state.arrays()) size += array.bytes.size();
  std::string bytes;
  bytes.reserve(size);
  stream_state(state, [&bytes](std::string_view next) { bytes += next; });
  return bytes;
}

void stream_state(const State& state, const ByteSink& sink) {
  Json header = Json::object();
  header[kMetadata] = {{kKind, kKindValue}, {kVersion, fmt::to_string(kStateVersion)}};
  for (const auto& [name, text] : state.texts()) header[kMetadata][name] = text;
  // Arrays are in order of descending element size, so that each is aligned to its elements.
  std::vector<const State::Arrays::value_type*> arrays;
  for (const auto& named : state.arrays()) arrays.push_back(&named);
  std::stable_sort(arrays.begin(), arrays.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.type) > size_of(b->second.type);
  });
  std::size_t size = 0;
  for (const auto* named : arrays) {
    header[named->first] = entry(named->second, size);
    size += named->second.bytes.size();
  }
  header[kDigest] = {
      {"dtype", "U8"}, {"shape", {kDigestBytes}}, {"data_offsets", {size, size + kDigestBytes}}};
  std::string text = json_text(header);
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');

  Sha256 sha;
  const auto give = [&](std::string_view bytes) {
    sha.add(bytes);
    sink(bytes);
  };
  give(length_bytes(text.size()));
  give(text);
  for (const auto* named : arrays) give(named->second.bytes);
  const Sha256::Digest digest = sha.digest();
  sink({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

State parse_state(std::string_view bytes, std::string_view source) {
  return Parser(bytes, source).state();
}

State parse_arrays(std::string_view bytes, std::string_view source) {
  return Parser(bytes, source).state_of_any();
}

void write_state(const std::filesystem::path& path, const State& state) {
  write_file(path, [&state](const ByteSink& sink) { stream_state(state, sink); });
}

State read_state(const std::filesystem::path& path) {
  return parse_state(read_file(path), path.string());
}

}  // namespace rubato
