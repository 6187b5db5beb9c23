// This file has the statistics of rubato/loop/images.hpp, and normalise() and InputReader of
// sample_set.hpp. normalise() takes the statistics of the training samples, and InputReader applies
// them to every set. InputReader converts a row in one of three ways: pixels are looked up in a
// table of 256 normalised values for each channel, features that have statistics are transformed in
// double, in pieces on the stack, and all other numbers are only converted.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/loop/images.hpp>

#include "base/core/check.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/tables/table_encoding.hpp"
#include "sample_set.hpp"

namespace rubato {

namespace {

constexpr double kWhite = 255.0;

}  // namespace

PixelStatistics pixel_statistics(const ImageSet& images) {
  if (images.pixels.empty()) return {};
  // Both sums are exact for all pixels that fit into any memory, so the order of summation does not
  // matter.
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::uint8_t pixel : images.pixels) {
    const std::uint64_t value = pixel;
    sum += value;
    squares += value * value;
  }
  return pixel_statistics(images.pixels.size(), sum, squares);
}

PixelStatistics pixel_statistics(std::uint64_t pixels, std::uint64_t sum, std::uint64_t squares) {
  if (pixels == 0) return {};
  const auto count = static_cast<double>(pixels);
  const double mean = static_cast<double>(sum) / count;
  // Rounding can make the difference negative if all but a few pixels are equal.
  const double variance = std::max(0.0, static_cast<double>(squares) / count - mean * mean);
  return {.mean = mean / kWhite, .deviation = std::sqrt(variance) / kWhite};
}

std::array<float, 256> normalised_pixels(const PixelStatistics& statistics) {
  const double deviation = statistics.deviation > 0 ? statistics.deviation : 1;
  std::array<float, 256> normalised{};
  for (std::size_t value = 0; value < normalised.size(); ++value) {
    normalised[value] =
        static_cast<float>((static_cast<double>(value) / kWhite - statistics.mean) / deviation);
  }
  return normalised;
}

namespace {

constexpr std::size_t kPixelValues = 256;

std::size_t channels_of(const SampleRows& rows) {
  return rows.shape().size() == 3 ? static_cast<std::size_t>(rows.shape().front()) : 1;
}

// The mean and deviation of the pixels of all samples, for each channel. The sums are whole
// numbers, and so exact in any order.
std::vector<PixelStatistics> channel_statistics(const SampleSet& samples) {
  const std::size_t channels = channels_of(samples.inputs);
  const std::size_t of_channel = samples.inputs.row_bytes() / std::max<std::size_t>(channels, 1);
  // The squares of so many pixels fit into 32 bits, of which a vector holds more than of 64.
  constexpr std::size_t kPiece = std::size_t{1} << 16U;
  std::vector<std::uint64_t> sums(channels);
  std::vector<std::uint64_t> squares(channels);
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    const std::string_view row = samples.input(i);
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t begin = 0; begin < of_channel; begin += kPiece) {
        std::uint32_t sum = 0;
        std::uint32_t square = 0;
        const std::size_t size = std::min(kPiece, of_channel - begin);
        for (const char pixel : row.substr(c * of_channel + begin, size)) {
          const std::uint32_t value = static_cast<unsigned char>(pixel);
          sum += value;
          square += value * value;
        }
        sums[c] += sum;
        squares[c] += square;
      }
    }
  }
  const std::uint64_t pixels = static_cast<std::uint64_t>(samples.size()) * of_channel;
  std::vector<PixelStatistics> statistics;
  for (std::size_t c = 0; c < channels; ++c) {
    statistics.push_back(pixel_statistics(pixels, sums[c], squares[c]));
  }
  return statistics;
}

// The name of a feature, for messages.
std::string name_of_feature(const DataSets& data, std::size_t feature) {
  if (!data.table) return fmt::format("feature {}", feature + 1);
  return fmt::format(
      "column {}",
      detail::excerpt(data.table->columns[data.table->columns_of_features()[feature]].name));
}

// Missing values count as the mean of the others. There are two passes, because a difference of
// large sums would lose all digits. Sums are those of differences from the first value: they are
// exactly 0 if a feature is constant, and keep what differs in large numbers, such as times.
std::vector<FeatureStatistics> feature_statistics(const DataSets& data) {
  const SampleSet& samples = data.train;
  const auto size = static_cast<std::size_t>(samples.inputs.elements());
  std::vector<double> row(size);
  std::vector<double> firsts(size);
  std::vector<double> sums(size);
  std::vector<double> counts(size);
  std::vector<double> squares(size);
  const auto for_each_value = [&](const auto& add) {
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      read_numbers(samples.inputs.type(), samples.input(i), row.data());
      for (std::size_t f = 0; f < size; ++f) {
        if (!std::isnan(row[f])) add(f);
      }
    }
  };
  for_each_value([&](std::size_t f) {
    if (counts[f]++ == 0) firsts[f] = row[f];
    sums[f] += row[f] - firsts[f];
  });
  for_each_value([&](std::size_t f) {
    const double off = row[f] - firsts[f] - sums[f] / counts[f];
    squares[f] += off * off;
  });
  std::vector<FeatureStatistics> statistics(size);
  for (std::size_t f = 0; f < size; ++f) {
    if (counts[f] == 0) {
      throw_error(
          "{} has no value in any of the samples that are trained on; accepted: data without it",
          name_of_feature(data, f));
    }
    const double mean = firsts[f] + sums[f] / counts[f];
    statistics[f].missing = mean;
    const auto& standardised = data.standardised;
    if (!standardised || (!standardised->except.empty() && standardised->except[f])) continue;
    const double deviation = std::sqrt(squares[f] / static_cast<double>(samples.size()));
    statistics[f].mean = mean;
    // Values that differ by rounding only, as 0.1 + 0.2 and 0.3 do, are constant.
    constexpr double kRounding = 64 * std::numeric_limits<double>::epsilon();
    if (deviation > kRounding * std::abs(mean)) statistics[f].deviation = deviation;
  }
  return statistics;
}

}  // namespace

void normalise(DataSets& data) {
  if (!data.channels.empty() || !data.features.empty()) return;
  if (data.inputs == InputKind::pixels) data.channels = channel_statistics(data.train);
  if (!data.standardised && !data.means_for_missing) return;
  if (data.inputs != InputKind::reals || data.train.inputs.shape().size() != 1) {
    throw_error(
        "standardise: samples of shape [{}] have no features to standardise; accepted: real "
        "numbers in one dimension",
        fmt::join(data.train.inputs.shape(), ", "));
  }
  data.features = feature_statistics(data);
}

InputReader::InputReader(const DataSets& data)
    : type_(data.train.inputs.type()), features_(data.features) {
  if (data.inputs != InputKind::pixels) return;
  RUBATO_CHECK(type_ == ElementType::u8 && !data.channels.empty(), "pixels are bytes");
  of_channel_ = data.train.inputs.row_bytes() / data.channels.size();
  for (const PixelStatistics& channel : data.channels) {
    const auto values = normalised_pixels(channel);
    tables_.insert(tables_.end(), values.begin(), values.end());
  }
}

namespace {

// Throws Error if a whole number may have been rounded: identifiers that differ would be the same.
template <class T>
void require_exact(std::span<const T> numbers) {
  constexpr auto kMost = static_cast<T>(std::int64_t{1} << std::numeric_limits<T>::digits);
  const auto found =
      std::ranges::find_if(numbers, [](T number) { return std::abs(number) >= kMost; });
  if (found == numbers.end()) return;
  throw_error(
      "a token is {:.0f}, and the model takes tokens as numbers of {} bits, which hold whole "
      "numbers "
      "below {:.0f}; accepted: smaller tokens, or a model of TorchScript, which takes int64",
      *found, 8 * sizeof(T), kMost);
}

}  // namespace

template <class To>
void InputReader::read_features(std::string_view row, To* to) const {
  constexpr std::size_t kPiece = 64;
  std::array<double, kPiece> piece{};
  const std::size_t size = size_of(type_);
  for (std::size_t begin = 0; begin < features_.size(); begin += kPiece) {
    read_numbers(type_, row.substr(begin * size, kPiece * size), piece.data());
    const std::size_t end = std::min(begin + kPiece, features_.size());
    for (std::size_t f = begin; f < end; ++f) {
      const FeatureStatistics& feature = features_[f];
      const double read = piece[f - begin];
      const double value = std::isnan(read) ? feature.missing : read;
      to[f] = static_cast<To>((value - feature.mean) / feature.deviation);
    }
  }
}

template <class To>
void InputReader::read(std::string_view row, To* to) const {
  if (!features_.empty()) return read_features(row, to);
  if (tables_.empty()) {
    read_numbers(type_, row, to);
    if constexpr (std::is_floating_point_v<To>) {
      const bool is_whole = type_ == ElementType::i64 || type_ == ElementType::i32;
      if (is_whole) require_exact(std::span<const To>(to, row.size() / size_of(type_)));
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

}  // namespace rubato
