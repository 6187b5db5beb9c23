// Arrays come from files that may be damaged or malicious, so a size is checked before it is used:
// count_elements() excludes overflow, and an array must lie within the bytes that are there before
// memory is allocated for a copy. dense() is the last step for .npy files and for tensors of
// torch.save(): it returns a view if the memory is in row-major order, and otherwise copies element
// by element. The header of a .npy file is the text of a Python dictionary; Header parses the three
// keys that NumPy writes (numpy.lib.format), and nothing else of Python.

#include "number_array.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

// The stride of a dimension with one element does not matter.
bool is_dense(const StridedArray& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.shape.size(); i-- > 0;) {
    if (array.shape[i] > 1 && array.strides[i] != expected) return false;
    expected *= array.shape[i];
  }
  return true;
}

std::shared_ptr<const std::string> copy_of(const StridedArray& array, std::uint64_t elements) {
  const std::size_t size = size_of(array.type);
  auto copy = std::make_shared<std::string>(static_cast<std::size_t>(elements) * size, '\0');
  std::vector<std::int64_t> index(array.shape.size(), 0);
  std::int64_t from = 0;
  for (std::uint64_t to = 0; to < elements; ++to) {
    std::memcpy(copy->data() + to * size,
                array.bytes.data() + from * static_cast<std::int64_t>(size), size);
    // The index advances in the last dimension first.
    for (std::size_t i = index.size(); i-- > 0;) {
      from += array.strides[i];
      if (++index[i] < array.shape[i]) break;
      from -= index[i] * array.strides[i];
      index[i] = 0;
    }
  }
  return copy;
}

}  // namespace

bool count_elements(const std::vector<std::int64_t>& shape, std::uint64_t& elements) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 16;
  bool empty = false;
  elements = 1;
  for (const std::int64_t length : shape) {
    if (length < 0) return false;
    if (length == 0) empty = true;
    const auto factor = static_cast<std::uint64_t>(length);
    if (factor > 0 && elements > kMost / factor) return false;
    if (factor > 0) elements *= factor;
  }
  if (empty) elements = 0;
  return true;
}

long double end_of_strided(const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& strides) {
  long double last = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    last += static_cast<long double>(shape[i] - 1) * static_cast<long double>(strides[i]);
  }
  return last;
}

NumberArray dense(const StridedArray& array, const std::shared_ptr<const void>& owner,
                  std::string_view name) {
  std::uint64_t elements = 0;
  if (!count_elements(array.shape, elements)) {
    throw_error("{} has a shape that no memory can hold; accepted: fewer elements", name);
  }
  NumberArray result{.type = array.type, .shape = array.shape};
  if (elements == 0) return result;
  const std::size_t held = array.bytes.size() / size_of(array.type);
  if (end_of_strided(array.shape, array.strides) > static_cast<long double>(held)) {
    throw_error("{} reaches beyond its data in the file; accepted: a whole file", name);
  }
  // Expanded tensors are refused, so that no small file needs much memory.
  if (elements > held) {
    throw_error(
        "{} is expanded: it has more elements than the file holds; accepted: a tensor that was "
        "saved as .contiguous()",
        name);
  }
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(array.type);
  if (is_dense(array)) {
    result.bytes = array.bytes.substr(0, bytes);
    result.owner = owner;
    return result;
  }
  require_memory(static_cast<double>(bytes),
                 fmt::format("{}, copied into row-major order, needs", name),
                 "an array that is saved in that order is not copied");
  const auto copy = copy_of(array, elements);
  result.bytes = *copy;
  result.owner = copy;
  return result;
}

namespace {

struct NumpyType {
  std::string_view name;
  ElementType type;
};
constexpr std::array<NumpyType, 9> kTypes{{{"<f8", ElementType::f64},
                                           {"<f4", ElementType::f32},
                                           {"<f2", ElementType::f16},
                                           {"<i8", ElementType::i64},
                                           {"<i4", ElementType::i32},
                                           {"<i2", ElementType::i16},
                                           {"|i1", ElementType::i8},
                                           {"|u1", ElementType::u8},
                                           {"|b1", ElementType::boolean}}};

// The dictionary at the beginning of a .npy file, as Python writes it:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
class Header {
 public:
  Header(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // Reads type, order and shape.
  void read(StridedArray& array, bool& column_major) {
    bool typed = false;
    bool ordered = false;
    bool shaped = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !typed) {
        array.type = type();
        typed = true;
      } else if (key == "fortran_order" && !ordered) {
        column_major = truth();
        ordered = true;
      } else if (key == "shape" && !shaped) {
        array.shape = numbers();
        shaped = true;
      } else {
        damaged();
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!typed || !ordered || !shaped) damaged();
  }

 private:
  [[noreturn]] void damaged() const {
    throw_error("{} has a damaged header; accepted: an array that numpy.save() wrote", name_);
  }

  void skip_blanks() {
    const std::size_t next = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(next, text_.size()));
  }
  bool take(char wanted) {
    skip_blanks();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) damaged();
  }
  std::string_view quoted() {
    expect('\'');
    const std::size_t end = text_.find('\'');
    if (end == std::string_view::npos) damaged();
    const std::string_view inside = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return inside;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool truth() {
    if (take_word("True")) return true;
    if (!take_word("False")) damaged();
    return false;
  }
  ElementType type() {
    skip_blanks();
    const bool plain = text_.starts_with('\'');
    const std::string_view asked = plain ? quoted() : std::string_view();
    for (const NumpyType& row : kTypes) {
      if (row.name == asked) return row.type;
    }
    throw_error(
        "{} {}; accepted: float16, float32, float64, int8, int16, int32, int64, uint8 and bool, "
        "little-endian",
        name_,
        plain ? fmt::format("is of type '{}'", asked) : std::string("is an array of records"));
  }
  std::vector<std::int64_t> numbers() {
    constexpr std::size_t kMostDimensions = 64;
    std::vector<std::int64_t> shape;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0 || shape.size() == kMostDimensions) damaged();
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      shape.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::string_view text_;
  const std::string& name_;
};

// The strides in elements.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape, bool column_major) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  if (column_major) {
    for (std::size_t i = 1; i < shape.size(); ++i) strides[i] = strides[i - 1] * shape[i - 1];
  } else {
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  }
  return strides;
}

[[noreturn]] void fail_cut_off(const std::string& name) {
  throw_error("{} is cut off; accepted: a whole array", name);
}

// The parsed beginning of a file.
struct Beginning {
  // The type and shape; strides and bytes are not set yet.
  StridedArray array{};
  bool column_major = false;
  // The offset of the numbers.
  std::size_t end = 0;
  std::uint64_t elements = 0;
};

Beginning read_beginning(std::string_view bytes, const std::string& name) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!bytes.starts_with(kMagic)) {
    throw_error("{} is not a numpy array; accepted: an array that numpy.save() wrote", name);
  }
  constexpr std::size_t kVersionEnd = 8;
  if (bytes.size() < kVersionEnd) fail_cut_off(name);
  // The length of the header has two bytes in version 1, and four in later ones.
  const std::size_t digits = bytes[kMagic.size()] == 1 ? 2 : 4;
  const std::size_t begin = kVersionEnd + digits;
  if (bytes.size() < begin) fail_cut_off(name);
  std::size_t length = 0;
  for (std::size_t i = digits; i-- > 0;) {
    length = length << 8U | static_cast<unsigned char>(bytes[kVersionEnd + i]);
  }
  if (length > bytes.size() - begin) fail_cut_off(name);
  Beginning found{.end = begin + length};
  Header(bytes.substr(begin, length), name).read(found.array, found.column_major);
  if (!count_elements(found.array.shape, found.elements)) fail_cut_off(name);
  return found;
}

}  // namespace

NumberArray parse_npy(std::string_view bytes, const std::shared_ptr<const void>& owner,
                      const std::string& name) {
  Beginning found = read_beginning(bytes, name);
  StridedArray& array = found.array;
  array.bytes = bytes.substr(found.end);
  // The size is checked before computing strides, which could overflow.
  if (found.elements > array.bytes.size() / size_of(array.type)) fail_cut_off(name);
  array.strides = strides_of(array.shape, found.column_major);
  return dense(array, owner, name);
}

std::uint64_t npy_size(std::string_view beginning, const std::string& name) {
  const Beginning found = read_beginning(beginning, name);
  return found.end + found.elements * size_of(found.array.type);
}

}  // namespace rubato
