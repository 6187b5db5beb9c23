#include "sample_set.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>
#include <rubato/plan/shuffle.hpp>

#include "core/check.hpp"
#include "state/sha256.hpp"

namespace rubato {

namespace {

constexpr std::size_t kPixelValues = 256;

// IEEE 754's binary16.
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

// Whatever is not 0 is true.
template <class To>
void convert_truths(std::string_view bytes, To* to) {
  for (std::size_t i = 0; i < bytes.size(); ++i) to[i] = static_cast<To>(bytes[i] != 0 ? 1 : 0);
}

std::size_t channels_of(const SampleRows& rows) {
  return rows.shape().size() == 3 ? static_cast<std::size_t>(rows.shape().front()) : 1;
}

std::string header_of(const SampleSet& samples, const SampleRows& rows) {
  return fmt::format("{} {}x{}\n", name_of(rows.type()), samples.size(),
                     fmt::join(rows.shape(), "x"));
}

// Images in grey with labels in bytes, however they are stored.
bool is_grey(const SampleSet& samples) {
  return samples.inputs.type() == ElementType::u8 && samples.inputs.shape().size() == 3 &&
         samples.inputs.shape().front() == 1 && samples.targets.type() == ElementType::u8 &&
         samples.targets.shape().empty();
}

// Mean and deviation of the pixels of all samples, for each channel.
std::vector<PixelStatistics> channel_statistics(const SampleSet& samples) {
  const std::size_t channels = channels_of(samples.inputs);
  const std::size_t of_channel = samples.inputs.row_bytes() / std::max<std::size_t>(channels, 1);
  // How often each value is there: all that follows from it is exact in any order.
  std::vector<std::uint64_t> counts(channels * kPixelValues);
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    const std::string_view row = samples.input(i);
    for (std::size_t c = 0; c < channels; ++c) {
      for (const char pixel : row.substr(c * of_channel, of_channel)) {
        ++counts[c * kPixelValues + static_cast<unsigned char>(pixel)];
      }
    }
  }
  std::vector<PixelStatistics> statistics;
  for (std::size_t c = 0; c < channels; ++c) {
    std::uint64_t pixels = 0;
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (std::size_t value = 0; value < kPixelValues; ++value) {
      const std::uint64_t count = counts[c * kPixelValues + value];
      pixels += count;
      sum += count * value;
      squares += count * value * value;
    }
    statistics.push_back(pixel_statistics(pixels, sum, squares));
  }
  return statistics;
}

// In two passes, as a difference of large sums would lose all digits.
std::vector<FeatureStatistics> feature_statistics(const SampleSet& samples,
                                                  const std::vector<bool>& except) {
  const auto count = static_cast<double>(samples.size());
  const auto size = static_cast<std::size_t>(samples.inputs.elements());
  std::vector<double> row(size);
  std::vector<double> sums(size);
  std::vector<double> squares(size);
  const auto for_each_row = [&](const auto& add) {
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      read_numbers(samples.inputs.type(), samples.input(i), row.data());
      for (std::size_t f = 0; f < size; ++f) add(f);
    }
  };
  for_each_row([&](std::size_t f) { sums[f] += row[f]; });
  for_each_row([&](std::size_t f) {
    const double off = row[f] - sums[f] / count;
    squares[f] += off * off;
  });
  std::vector<FeatureStatistics> statistics(size);
  for (std::size_t f = 0; f < size; ++f) {
    if (!except.empty() && except[f]) continue;
    statistics[f] = {.mean = sums[f] / count,
                     .deviation = squares[f] > 0 ? std::sqrt(squares[f] / count) : 1};
  }
  return statistics;
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

std::int64_t SampleSet::size() const {
  return chosen ? static_cast<std::int64_t>(chosen->size()) : inputs.count();
}

std::int64_t SampleSet::row_of(std::int64_t i) const {
  return chosen ? (*chosen)[static_cast<std::size_t>(i)] : i;
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
  // Rows may be as short as a byte.
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

std::int64_t count_classes(const SampleSet& samples, std::string_view name, std::int64_t most) {
  std::vector<std::int64_t> targets(static_cast<std::size_t>(samples.targets.elements()));
  std::int64_t classes = 1;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    read_numbers(samples.targets.type(), samples.target(i), targets.data());
    for (const std::int64_t target : targets) {
      if (target < 0 || target >= most) {
        throw Error(fmt::format("{}: sample {} is of class {}; accepted: 0 to {}", name, i + 1,
                                target, most - 1));
      }
      classes = std::max(classes, target + 1);
    }
  }
  return classes;
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

void normalise(DataSets& data) {
  if (data.inputs == InputKind::pixels) data.channels = channel_statistics(data.train);
  if (!data.standardised) return;
  if (data.inputs != InputKind::reals || data.train.inputs.shape().size() != 1) {
    throw Error(
        fmt::format("standardise: samples of shape [{}] have no features to standardise; accepted: "
                    "real numbers in one dimension",
                    fmt::join(data.train.inputs.shape(), ", ")));
  }
  data.features = feature_statistics(data.train, data.standardised->except);
}

void hold_out(DataSets& data, double share, std::uint64_t seed) {
  const std::int64_t samples = data.train.size();
  const auto held = static_cast<std::int64_t>(std::llround(share * static_cast<double>(samples)));
  if (held < 1 || held >= samples || samples > kMaxDatasetSize) {
    throw Error(
        fmt::format("{} of {} samples leaves none to train or to test on; accepted: a share "
                    "that leaves some of up to {} samples",
                    share, samples, kMaxDatasetSize));
  }
  RUBATO_CHECK(data.train.chosen == nullptr, "samples are held out once");
  std::vector<std::int64_t> order = random_permutation(samples, seed);
  const auto border = order.begin() + held;
  auto test = std::make_shared<std::vector<std::int64_t>>(order.begin(), border);
  auto train = std::make_shared<std::vector<std::int64_t>>(border, order.end());
  // So that a file is read from its beginning to its end.
  std::ranges::sort(*test);
  std::ranges::sort(*train);
  data.test = data.train;
  data.test->chosen = std::move(test);
  data.train.chosen = std::move(train);
}

InputReader::InputReader(const DataSets& data)
    : type_(data.train.inputs.type()), features_(data.features) {
  if (data.inputs != InputKind::pixels) return;
  RUBATO_CHECK(type_ == ElementType::u8 && !data.channels.empty(), "pixels are bytes");
  of_channel_ = data.train.inputs.row_bytes() / data.channels.size();
  for (const PixelStatistics& channel : data.channels) {
    const double deviation = channel.deviation > 0 ? channel.deviation : 1;
    for (std::size_t value = 0; value < kPixelValues; ++value) {
      tables_.push_back(
          static_cast<float>((static_cast<double>(value) / 255.0 - channel.mean) / deviation));
    }
  }
}

template <class To>
void InputReader::read(std::string_view row, To* to) const {
  if (tables_.empty()) {
    read_numbers(type_, row, to);
    for (std::size_t f = 0; f < features_.size(); ++f) {
      const auto value = static_cast<double>(to[f]);
      to[f] =
          static_cast<To>(static_cast<float>((value - features_[f].mean) / features_[f].deviation));
    }
    return;
  }
  const float* table = tables_.data();
  for (std::size_t begin = 0; begin < row.size(); begin += of_channel_, table += kPixelValues) {
    for (std::size_t i = begin; i < begin + of_channel_; ++i) {
      to[i] = static_cast<To>(table[static_cast<unsigned char>(row[i])]);
    }
  }
}
template void InputReader::read(std::string_view, float*) const;
template void InputReader::read(std::string_view, double*) const;
template void InputReader::read(std::string_view, std::int64_t*) const;

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
