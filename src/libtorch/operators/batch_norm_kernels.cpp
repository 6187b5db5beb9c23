// The loops of forward exist twice, those of backward for channels last only. Contiguous images are
// summed channel by channel, in 16 lanes along the values of a channel; with channels last
// (functions named pixel_...), neighbouring channels share a vector and sums run over pixels. The
// loops are always inlined into with_vectors(), which compiles them for each instruction set; the
// lanes and blocks are constants rather than the width of the vectors, so the order of the sums is
// the same everywhere. The variance is the mean of squared distances, in a second pass, because a
// difference of sums of squares would cancel.

#include "batch_norm_kernels.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/machine/instruction_set.hpp"

namespace rubato::batch_norm {

namespace {

using Index = std::ptrdiff_t;

constexpr Index kLanes = 16;
constexpr Index kBlock = 1024;
// Number of pixels in a block, with channels last.
constexpr Index kPixels = 128;

double sum_of(const std::array<float, kLanes>& lanes) {
  double sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

// The sum of value(k) over at most kBlock k.
template <class Value>
[[gnu::always_inline]] inline double block_sum(Index count, const Value& value) {
  std::array<float, kLanes> lanes{};
  const Index whole = count / kLanes * kLanes;
  for (Index k = 0; k < whole; k += kLanes) {
    for (Index lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<std::size_t>(lane)] += value(k + lane);
    }
  }
  for (Index k = whole; k < count; ++k) lanes[static_cast<std::size_t>(k - whole)] += value(k);
  return sum_of(lanes);
}

// The sum of value(place) over all places of a channel.
template <class Value>
[[gnu::always_inline]] inline double channel_sum(const Shape& s, Index channel,
                                                 const Value& value) {
  double sum = 0;
  for (Index n = 0; n < s.outer; ++n) {
    const Index first = (n * s.channels + channel) * s.inner;
    for (Index begin = 0; begin < s.inner; begin += kBlock) {
      sum += block_sum(
          std::min(kBlock, s.inner - begin), [&](Index k) __attribute__((always_inline)) {
            return value(first + begin + k);
          });
    }
  }
  return sum;
}

// Adds value(place, c) of every pixel of a block to partial[c], with channels last. It takes four
// pixels at a time, because a sum in memory waits for the one before it.
template <class Value>
[[gnu::always_inline]] inline void add_pixels(Index begin, Index end, Index channels,
                                              float* __restrict partial, const Value& value) {
  constexpr Index kAtOnce = 4;
  Index pixel = begin;
  for (; pixel + kAtOnce <= end; pixel += kAtOnce) {
    const Index first = pixel * channels;
    for (Index c = 0; c < channels; ++c) {
      const Index at = first + c;
      partial[c] += (value(at, c) + value(at + channels, c)) +
                    (value(at + 2 * channels, c) + value(at + 3 * channels, c));
    }
  }
  for (; pixel < end; ++pixel) {
    for (Index c = 0; c < channels; ++c) partial[c] += value(pixel * channels + c, c);
  }
}

// Sets to[c] to the sum of value(place, c) over all places of channel c, with channels last.
// `partial` has one float for each channel.
template <class Value>
[[gnu::always_inline]] inline void pixel_sums(const Shape& s, float* __restrict partial, double* to,
                                              const Value& value) {
  const Index pixels = s.of_channel();
  std::fill_n(to, s.channels, 0.0);
  for (Index begin = 0; begin < pixels; begin += kPixels) {
    std::fill_n(partial, s.channels, 0.0F);
    add_pixels(begin, std::min(begin + kPixels, pixels), s.channels, partial, value);
    for (Index c = 0; c < s.channels; ++c) to[c] += partial[c];
  }
}

[[gnu::always_inline]] inline void sums(const Shape& s, const float* x, double* to) {
  for (Index c = 0; c < s.channels; ++c) {
    to[c] = channel_sum(
        s, c, [&](Index at) __attribute__((always_inline)) { return x[at]; });
  }
}

[[gnu::always_inline]] inline void squares(const Shape& s, const float* x, const float* mean,
                                           double* to) {
  for (Index c = 0; c < s.channels; ++c) {
    const float middle = mean[c];
    to[c] = channel_sum(
        s, c, [&](Index at) __attribute__((always_inline)) {
          const float distance = x[at] - middle;
          return distance * distance;
        });
  }
}

[[gnu::always_inline]] inline void pixel_sums(const Shape& s, const float* x, float* partial,
                                              double* to) {
  pixel_sums(
      s, partial, to, [&](Index at, Index) __attribute__((always_inline)) { return x[at]; });
}

[[gnu::always_inline]] inline void pixel_squares(const Shape& s, const float* x, const float* mean,
                                                 float* partial, double* to) {
  pixel_sums(
      s, partial, to, [&](Index at, Index c) __attribute__((always_inline)) {
        const float distance = x[at] - mean[c];
        return distance * distance;
      });
}

[[gnu::always_inline]] inline void scale(const Shape& s, const float* __restrict x,
                                         const float* alpha, const float* beta,
                                         float* __restrict to) {
  for (Index n = 0; n < s.outer; ++n) {
    for (Index c = 0; c < s.channels; ++c) {
      const Index first = (n * s.channels + c) * s.inner;
      const float a = alpha[c];
      const float b = beta[c];
      for (Index k = 0; k < s.inner; ++k) to[first + k] = x[first + k] * a + b;
    }
  }
}

[[gnu::always_inline]] inline void pixel_scale(const Shape& s, const float* __restrict x,
                                               const float* __restrict alpha,
                                               const float* __restrict beta, float* __restrict to) {
  for (Index pixel = 0; pixel < s.of_channel(); ++pixel) {
    const Index first = pixel * s.channels;
    for (Index c = 0; c < s.channels; ++c) to[first + c] = x[first + c] * alpha[c] + beta[c];
  }
}

[[gnu::always_inline]] inline void pixel_dots(const Shape& s, const float* g, const float* x,
                                              const float* mean, float* partial, double* sum,
                                              double* dot) {
  const Index pixels = s.of_channel();
  std::fill_n(sum, s.channels, 0.0);
  std::fill_n(dot, s.channels, 0.0);
  for (Index begin = 0; begin < pixels; begin += kPixels) {
    const Index end = std::min(begin + kPixels, pixels);
    std::fill_n(partial, s.channels, 0.0F);
    add_pixels(
        begin, end, s.channels,
        partial, [&](Index at, Index) __attribute__((always_inline)) { return g[at]; });
    for (Index c = 0; c < s.channels; ++c) sum[c] += partial[c];
    std::fill_n(partial, s.channels, 0.0F);
    add_pixels(
        begin, end, s.channels, partial, [&](Index at, Index c) __attribute__((always_inline)) {
          return g[at] * (x[at] - mean[c]);
        });
    for (Index c = 0; c < s.channels; ++c) dot[c] += partial[c];
  }
}

[[gnu::always_inline]] inline void pixel_gradient(const Shape& s, const float* __restrict g,
                                                  const float* __restrict x,
                                                  const GradientFactors& f, float* __restrict to) {
  const float* __restrict const shift = f.shift;
  const float* __restrict const mean = f.mean;
  const float* __restrict const slope = f.slope;
  const float* __restrict const alpha = f.alpha;
  for (Index pixel = 0; pixel < s.of_channel(); ++pixel) {
    const Index first = pixel * s.channels;
    for (Index c = 0; c < s.channels; ++c) {
      to[first + c] = ((g[first + c] - shift[c]) - (x[first + c] - mean[c]) * slope[c]) * alpha[c];
    }
  }
}

// Does what with_vectors() does, for loops over pixels. The compiler knows the number of channels
// if it is a frequent one, since a loop over few channels would take longer to begin than to run.
template <class Body>
void with_pixels(const Shape& shape, const Body& body) {
  with_vectors([&]() __attribute__((always_inline)) {
    Shape known = shape;
    if (shape.channels == 16) return known.channels = 16, body(known);
    if (shape.channels == 32) return known.channels = 32, body(known);
    if (shape.channels == 64) return known.channels = 64, body(known);
    body(shape);
  });
}

}  // namespace

void mean_and_variance(const Shape& shape, const float* x, double* mean, double* variance) {
  const auto count = static_cast<double>(shape.of_channel());
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<float> partial(channels);
  std::vector<float> middle(channels);
  with_pixels(
      shape, [&](const Shape& s) __attribute__((always_inline)) {
        s.channels_last ? pixel_sums(s, x, partial.data(), mean) : sums(s, x, mean);
      });
  for (std::size_t c = 0; c < channels; ++c) {
    mean[c] /= count;
    middle[c] = static_cast<float>(mean[c]);
  }
  with_pixels(
      shape, [&](const Shape& s) __attribute__((always_inline)) {
        s.channels_last ? pixel_squares(s, x, middle.data(), partial.data(), variance)
                        : squares(s, x, middle.data(), variance);
      });
  for (std::size_t c = 0; c < channels; ++c) variance[c] /= count;
}

void scale_and_shift(const Shape& shape, const float* x, const float* alpha, const float* beta,
                     float* output) {
  with_pixels(
      shape, [&](const Shape& s) __attribute__((always_inline)) {
        s.channels_last ? pixel_scale(s, x, alpha, beta, output) : scale(s, x, alpha, beta, output);
      });
}

void gradient_sums(const Shape& shape, const float* g, const float* x, const float* mean,
                   double* sum, double* dot) {
  std::vector<float> partial(static_cast<std::size_t>(shape.channels));
  with_pixels(
      shape, [&](const Shape& s) __attribute__((always_inline)) {
        pixel_dots(s, g, x, mean, partial.data(), sum, dot);
      });
}

void input_gradient(const Shape& shape, const float* g, const float* x,
                    const GradientFactors& factors, float* to) {
  with_pixels(
      shape, [&](const Shape& s)
                 __attribute__((always_inline)) { pixel_gradient(s, g, x, factors, to); });
}

}  // namespace rubato::batch_norm
