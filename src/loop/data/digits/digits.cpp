#include "digits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <rubato/base/machine.hpp>

#include "base/core/check.hpp"
#include "digit_glyphs.hpp"
#include "digit_raster.hpp"
#include "digit_stream.hpp"
#include "digit_strokes.hpp"

namespace rubato {

namespace {

using digits::DigitStream;

constexpr int kSide = 28;
constexpr std::int64_t kDigitCount = 10;

constexpr std::int64_t kTrainCount = 12'000;
constexpr std::int64_t kTestCount = 2'000;
constexpr std::uint64_t kTrainSeed = 0x7275'6261'746f'0001;  // "rubato", 1
constexpr std::uint64_t kTestSeed = 0x7275'6261'746f'0002;

// Every ten consecutive images show every digit once, in a random order: the classes are balanced,
// and yet the label of an image depends only on the seed and its index.
std::uint8_t label_of(std::int64_t i, std::uint64_t seed) {
  // The highest bit distinguishes the streams of the tens from those of the images.
  constexpr std::uint64_t kTens = std::uint64_t{1} << 63U;
  DigitStream random(seed, kTens | static_cast<std::uint64_t>(i / kDigitCount));
  std::array<std::uint8_t, kDigitCount> order{};
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  for (std::uint32_t left = kDigitCount; left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order[static_cast<std::size_t>(i % kDigitCount)];
}

// Rendering this many images takes as long as starting a few threads: some milliseconds.
constexpr std::size_t kWorthAThread = 500;

std::size_t threads_to_use() {
  return static_cast<std::size_t>(std::max(1, cpus().usable()));
}

void render(std::uint8_t label, DigitStream random, std::span<std::uint8_t> image) {
  const auto ways = digits::glyphs(label);
  const digits::Glyph glyph = ways[random.below(static_cast<std::uint32_t>(ways.size()))];
  const digits::Pen pen{.radius = random.uniform(0.7, 1.6),
                        .softness = random.uniform(0.6, 1.1),
                        .ink = random.uniform(190.0, 255.0),
                        .noise = random.uniform(0.0, 20.0)};
  const auto strokes = digits::handwritten(glyph, kSide, pen.radius + 0.5, random);
  digits::draw(strokes, pen, kSide, random, image);
}

}  // namespace

ImageSet render_digits(std::int64_t count, std::uint64_t seed) {
  RUBATO_CHECK(count >= 0, "a number of images");
  constexpr auto kPixels = static_cast<std::size_t>(kSide) * kSide;
  const auto size = static_cast<std::size_t>(count);
  ImageSet set{.count = count,
               .height = kSide,
               .width = kSide,
               .pixels = std::vector<std::uint8_t>(size * kPixels),
               .labels = std::vector<std::uint8_t>(size)};
  // Each image is a function of its index, so threads can render parts of them.
  const auto render_part = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      set.labels[i] = label_of(static_cast<std::int64_t>(i), seed);
      render(set.labels[i], DigitStream(seed, i),
             std::span(set.pixels).subspan(i * kPixels, kPixels));
    }
  };
  const std::size_t parts = std::min(size / kWorthAThread, threads_to_use() - 1) + 1;
  std::vector<std::jthread> others;
  for (std::size_t part = 1; part < parts; ++part) {
    others.emplace_back(render_part, size * part / parts, size * (part + 1) / parts);
  }
  render_part(0, size / parts);
  // The other threads must end before the set is moved from here.
  others.clear();
  return set;
}

TrainTestImages builtin_digits() {
  return {.train = render_digits(kTrainCount, kTrainSeed),
          .test = render_digits(kTestCount, kTestSeed)};
}

}  // namespace rubato
