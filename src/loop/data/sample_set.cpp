// SampleRows are views: they hold segments of memory, the distance between rows and shared
// ownership of the memory, so reshaping, copying and holding out samples copies no numbers. Rows of
// a mapped file may have any alignment, so numbers are copied with memcpy() and, if the caller
// wants another type, converted one by one, float16 and bfloat16 in software. A selection of
// samples is a sorted list of row numbers, which size(), input() and target() apply. The
// fingerprint hashes the bytes of the selected rows, and so does not depend on where or how they
// are stored. normalise() and InputReader are in normalise.cpp.

#include "sample_set.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/steps/random.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"

namespace rubato {

namespace {

// Converts IEEE 754's binary16.
float half_value(std::uint16_t bits) {
  const auto exponent = static_cast<int>(bits >> 10U & 0x1FU);
  const auto fraction = static_cast<int>(bits & 0x3FFU);
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  constexpr int kHidden = 0x400;
  if (exponent == 0x1F) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(kHidden + fraction), exponent - 25);
}

struct Half {
  std::uint16_t bits;
  explicit operator float() const { return half_value(bits); }
};
struct BFloat16 {
  std::uint16_t bits;
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }
};

template <class From, class To>
void convert(std::string_view bytes, To* to) {
  const std::size_t count = bytes.size() / sizeof(From);
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, bytes.data(), count * sizeof(From));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    From value{};
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    if constexpr (std::is_class_v<From>) {
      to[i] = static_cast<To>(static_cast<float>(value));
    } else {
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): a small number, no character
      to[i] = static_cast<To>(value);
    }
  }
}

// Every byte except 0 is true.
template <class To>
void convert_truths(std::string_view bytes, To* to) {
  for (std::size_t i = 0; i < bytes.size(); ++i) to[i] = static_cast<To>(bytes[i] != 0 ? 1 : 0);
}

std::string header_of(const SampleSet& samples, const SampleRows& rows) {
  return fmt::format("{} {}x{}\n", name_of(rows.type()), samples.size(),
                     fmt::join(rows.shape(), "x"));
}

// Returns whether the samples are grey images with labels in bytes, however they are stored.
bool is_grey(const SampleSet& samples) {
  return samples.inputs.type() == ElementType::u8 && samples.inputs.shape().size() == 3 &&
         samples.inputs.shape().front() == 1 && samples.targets.type() == ElementType::u8 &&
         samples.targets.shape().empty();
}

// Returns the index, in the array of all rows, of number `at` of row `row`.
std::vector<std::int64_t> index_of(const std::vector<std::int64_t>& shape, std::int64_t row,
                                   std::int64_t at) {
  std::vector<std::int64_t> index(shape.size() + 1, row);
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d + 1] = at % shape[d];
    at /= shape[d];
  }
  return index;
}

}  // namespace

SampleRows::SampleRows(ElementType type, std::vector<std::int64_t> shape, std::size_t stride,
                       std::vector<Segment> segments, std::shared_ptr<const void> owner)
    : type_(type),
      shape_(std::move(shape)),
      stride_(stride),
      segments_(std::move(segments)),
      owner_(std::move(owner)) {
  for (const std::int64_t length : shape_) elements_ *= length;
  for (const Segment& segment : segments_) count_ += segment.count;
}

SampleRows::SampleRows(const NumberArray& array)
    : SampleRows(array.type, {array.shape.begin() + 1, array.shape.end()},
                 array.shape.front() == 0
                     ? 0
                     : array.bytes.size() / static_cast<std::size_t>(array.shape.front()),
                 {{.begin = array.bytes.data(), .count = array.shape.front()}}, array.owner) {}

std::size_t SampleRows::row_bytes() const {
  return static_cast<std::size_t>(elements_) * size_of(type_);
}

std::string_view SampleRows::row(std::int64_t i) const {
  for (const Segment& segment : segments_) {
    if (i < segment.count) {
      return {segment.begin + static_cast<std::size_t>(i) * stride_, row_bytes()};
    }
    i -= segment.count;
  }
  RUBATO_CHECK(false, "the row is one of the rows");
  return {};
}

std::string_view SampleRows::dense() const {
  if (segments_.size() != 1 || stride_ != row_bytes()) return {};
  return {segments_.front().begin, static_cast<std::size_t>(count_) * stride_};
}

SampleRows SampleRows::reshaped(std::vector<std::int64_t> shape) const {
  SampleRows rows(type_, std::move(shape), stride_, segments_, owner_);
  RUBATO_CHECK(rows.elements_ == elements_, "another shape has as many numbers");
  return rows;
}

template <class To>
void read_numbers(ElementType type, std::string_view bytes, To* to) {
  switch (type) {
    case ElementType::f64:
      return convert<double>(bytes, to);
    case ElementType::f32:
      return convert<float>(bytes, to);
    case ElementType::f16:
      return convert<Half>(bytes, to);
    case ElementType::bf16:
      return convert<BFloat16>(bytes, to);
    case ElementType::i64:
      return convert<std::int64_t>(bytes, to);
    case ElementType::i32:
      return convert<std::int32_t>(bytes, to);
    case ElementType::i16:
      return convert<std::int16_t>(bytes, to);
    case ElementType::i8:
      return convert<std::int8_t>(bytes, to);
    case ElementType::u8:
      return convert<std::uint8_t>(bytes, to);
    case ElementType::boolean:
      return convert_truths(bytes, to);
  }
}
template void read_numbers(ElementType, std::string_view, float*);
template void read_numbers(ElementType, std::string_view, double*);
template void read_numbers(ElementType, std::string_view, std::int64_t*);

bool is_real(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 ||
         type == ElementType::bf16;
}

SampleRows zero_rows(ElementType type, std::vector<std::int64_t> shape, std::int64_t count) {
  std::size_t bytes = size_of(type);
  for (const std::int64_t length : shape) bytes *= static_cast<std::size_t>(length);
  const auto zeros = std::make_shared<const std::string>(bytes, '\0');
  return {type, std::move(shape), 0, {{.begin = zeros->data(), .count = count}}, zeros};
}

InputKind input_kind_of(ElementType type) {
  if (type == ElementType::u8) return InputKind::pixels;
  return is_real(type) || type == ElementType::boolean ? InputKind::reals : InputKind::tokens;
}

std::int64_t SampleSet::size() const {
  return chosen ? static_cast<std::int64_t>(chosen->size()) : inputs.count();
}

std::int64_t SampleSet::row_of(std::int64_t i) const {
  return chosen ? (*chosen)[static_cast<std::size_t>(i)] : i;
}

std::vector<std::string> SampleSet::sample_names() const {
  std::vector<std::string> all;
  for (std::int64_t i = 0; names && i < size(); ++i) {
    all.push_back((*names)[static_cast<std::size_t>(row_of(i))]);
  }
  return all;
}

std::string fingerprint_of(const SampleSet& samples) {
  Sha256 sha;
  if (is_grey(samples)) {
    const auto& shape = samples.inputs.shape();
    sha.add(fmt::format("{}x{}x{}\n", samples.size(), shape[1], shape[2]));
  } else {
    sha.add(header_of(samples, samples.inputs));
    sha.add(header_of(samples, samples.targets));
  }
  // Rows may be as short as a byte, so they are hashed in larger pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 16U;
  std::string piece;
  const auto add = [&](std::string_view row) {
    piece += row;
    if (piece.size() < kPiece) return;
    sha.add(piece);
    piece.clear();
  };
  for (std::int64_t i = 0; i < samples.size(); ++i) add(samples.input(i));
  for (std::int64_t i = 0; i < samples.size(); ++i) add(samples.target(i));
  sha.add(piece);
  return sha.hex();
}

void require_finite(const SampleRows& rows, std::string_view name) {
  if (!is_real(rows.type())) return;
  std::vector<float> values(static_cast<std::size_t>(rows.elements()));
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    read_numbers(rows.type(), rows.row(i), values.data());
    const auto odd =
        std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (odd == values.end()) continue;
    throw_error("{} has {} at [{}]; accepted: finite numbers that float32 holds", name, *odd,
                fmt::join(index_of(rows.shape(), i, odd - values.begin()), ", "));
  }
}

void require_probabilities(const SampleRows& rows, std::string_view name) {
  constexpr std::string_view kAccepted =
      "probabilities of the classes, at least 0 and with a sum of 1";
  std::vector<double> values(static_cast<std::size_t>(rows.elements()));
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    read_numbers(rows.type(), rows.row(i), values.data());
    double sum = 0;
    for (const double value : values) {
      if (value < 0) throw_error("{} at [{}] have {:.6g}; accepted: {}", name, i, value, kAccepted);
      sum += value;
    }
    if (std::abs(sum - 1) <= kSumTolerance) continue;
    throw_error("{} at [{}] sum to {:.6g}; accepted: {}", name, i, sum, kAccepted);
  }
}

std::int64_t count_classes(const SampleSet& samples, std::string_view name, std::int64_t most,
                           const IgnoredTargets& ignored) {
  std::vector<std::int64_t> targets(static_cast<std::size_t>(samples.targets.elements()));
  std::int64_t classes = 1;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    read_numbers(samples.targets.type(), samples.target(i), targets.data());
    for (const std::int64_t target : targets) {
      if (ignored.contains(target)) continue;
      if (target < 0 || target >= most) {
        throw_error("{}: sample {} is of class {}; accepted: 0 to {}{}", name, i + 1, target,
                    most - 1,
                    target < 0 ? fmt::format(", or --loss cross-entropy:ignore={}", target) : "");
      }
      classes = std::max(classes, target + 1);
    }
  }
  return classes;
}

void note_missing_classes(DataSets& data) {
  std::vector<bool> is_there(static_cast<std::size_t>(data.classes));
  std::vector<std::int64_t> targets(static_cast<std::size_t>(data.train.targets.elements()));
  for (std::int64_t i = 0; i < data.train.size(); ++i) {
    read_numbers(data.train.targets.type(), data.train.target(i), targets.data());
    for (const std::int64_t target : targets) {
      // Targets that a loss leaves out may lie on either side of the classes.
      if (target >= 0 && target < data.classes) is_there[static_cast<std::size_t>(target)] = true;
    }
  }
  const auto missing = std::ranges::count(is_there, false);
  if (missing == 0) return;
  const auto first = std::ranges::find(is_there, false) - is_there.begin();
  data.notes.push_back(
      missing == 1
          ? fmt::format("no training sample is of class {}{}", first,
                        first == 0 ? ", as if labels began at 1" : "")
          : fmt::format("{} of the classes have no training sample, such as {}", missing, first));
}

void note_single_class(DataSets& data) {
  std::optional<std::int64_t> only;
  for (std::int64_t i = 0; i < data.train.size(); ++i) {
    std::int64_t target = 0;
    read_numbers(data.train.targets.type(), data.train.target(i), &target);
    if (only && target != *only) return;
    only = target;
  }
  data.notes.emplace_back("all training samples are of one class");
}

std::int64_t count_tokens(const SampleSet& samples, std::int64_t most) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(samples.inputs.elements()));
  std::int64_t vocabulary = 1;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    read_numbers(samples.inputs.type(), samples.input(i), tokens.data());
    for (const std::int64_t token : tokens) {
      if (token < 0 || token >= most) return 0;
      vocabulary = std::max(vocabulary, token + 1);
    }
  }
  return vocabulary;
}

void hold_out(DataSets& data, double share, std::uint64_t seed) {
  const std::int64_t samples = data.train.size();
  const auto held = static_cast<std::int64_t>(std::llround(share * static_cast<double>(samples)));
  if (samples > kMaxDatasetSize) {
    throw_error("of {} samples none can be held out; accepted: up to {}", samples, kMaxDatasetSize);
  }
  if (held < 1 || held >= samples) {
    throw_error("{} of {} samples leaves none to {}; accepted: {}", share, samples,
                held < 1 ? "test on" : "train on",
                samples < 2
                    ? std::string("at least 2 samples")
                    : fmt::format("a share of at least 1 sample and at most {}", samples - 1));
  }
  RUBATO_CHECK(data.train.chosen == nullptr, "samples are held out once");
  std::vector<std::int64_t> order = random_permutation(samples, seed);
  const auto border = order.begin() + held;
  auto test = std::make_shared<std::vector<std::int64_t>>(order.begin(), border);
  auto train = std::make_shared<std::vector<std::int64_t>>(border, order.end());
  // Both are sorted so that a file is read from its beginning to its end.
  std::ranges::sort(*test);
  std::ranges::sort(*train);
  data.test = data.train;
  data.test->chosen = std::move(test);
  data.train.chosen = std::move(train);
}

SampleSet sample_set_of(ImageSet images) {
  const auto owner = std::make_shared<const ImageSet>(std::move(images));
  const auto* const pixels = reinterpret_cast<const char*>(owner->pixels.data());
  const auto* const labels = reinterpret_cast<const char*>(owner->labels.data());
  return {.inputs = SampleRows(ElementType::u8, {1, owner->height, owner->width},
                               static_cast<std::size_t>(owner->height * owner->width),
                               {{.begin = pixels, .count = owner->count}}, owner),
          .targets = SampleRows(ElementType::u8, {}, 1, {{.begin = labels, .count = owner->count}},
                                owner)};
}

}  // namespace rubato
