// The kernels of lane_convolution.hpp, for one instruction set: included once in each of the two
// files that are compiled for one. Nothing of the standard library is used here, and all has
// internal linkage: an inline function that the linker took from such a file would run on every
// CPU.

#include <immintrin.h>

#include "lane_convolution.hpp"

namespace rubato::lane_convolution {
namespace {

using Index = std::ptrdiff_t;

// Lanes in which weight gradients are summed, for every instruction set.
constexpr Index kSumLanes = 16;

#ifdef __AVX512F__
using Vector = __m512;
constexpr Index kLanes = 16;
inline Vector load(const float* from) {
  return _mm512_load_ps(from);
}
inline void store(float* to, Vector vector) {
  _mm512_store_ps(to, vector);
}
inline Vector broadcast(float value) {
  return _mm512_set1_ps(value);
}
inline Vector add(Vector a, Vector b) {
  return _mm512_add_ps(a, b);
}
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
// How many vectors a block of `channels` has beside each other, so that their sums stay in
// registers.
constexpr int most_columns(int channels) {
  return channels == 5 ? 5 : 6;
}
#else
using Vector = __m256;
constexpr Index kLanes = 8;
inline Vector load(const float* from) {
  return _mm256_load_ps(from);
}
inline void store(float* to, Vector vector) {
  _mm256_store_ps(to, vector);
}
inline Vector broadcast(float value) {
  return _mm256_set1_ps(value);
}
inline Vector add(Vector a, Vector b) {
  return _mm256_add_ps(a, b);
}
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
constexpr int most_columns(int channels) {
  constexpr int kSums = 12;
  return channels <= 2 ? 6 : kSums / channels;
}
#endif

constexpr int kMostChannels = 5;
constexpr int kMostColumns = 6;

constexpr Index larger(Index a, Index b) {
  return a < b ? b : a;
}
constexpr Index quotient_up(Index a, Index b) {
  return (a + b - 1) / b;
}

// The part `i` of `whole` cut into `parts` as equal as can be, the larger ones first.
struct Part {
  Index begin;
  Index size;
};
inline Part part_of(Index whole, Index parts, Index i) {
  const Index small = whole / parts;
  const Index larger_ones = whole % parts;
  return {i * small + (i < larger_ones ? i : larger_ones), small + (i < larger_ones ? 1 : 0)};
}

// --- packing: between images and vectors of the same value of several images ---

inline __m256i first_lanes(Index count) {
  alignas(32) static constexpr int kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - count));
}

inline void transpose(__m256 (&r)[8]) {
  const __m256 a0 = _mm256_unpacklo_ps(r[0], r[1]);
  const __m256 a1 = _mm256_unpackhi_ps(r[0], r[1]);
  const __m256 a2 = _mm256_unpacklo_ps(r[2], r[3]);
  const __m256 a3 = _mm256_unpackhi_ps(r[2], r[3]);
  const __m256 a4 = _mm256_unpacklo_ps(r[4], r[5]);
  const __m256 a5 = _mm256_unpackhi_ps(r[4], r[5]);
  const __m256 a6 = _mm256_unpacklo_ps(r[6], r[7]);
  const __m256 a7 = _mm256_unpackhi_ps(r[6], r[7]);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44);
  const __m256 b1 = _mm256_shuffle_ps(a0, a2, 0xEE);
  const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44);
  const __m256 b3 = _mm256_shuffle_ps(a1, a3, 0xEE);
  const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44);
  const __m256 b5 = _mm256_shuffle_ps(a4, a6, 0xEE);
  const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44);
  const __m256 b7 = _mm256_shuffle_ps(a5, a7, 0xEE);
  r[0] = _mm256_permute2f128_ps(b0, b4, 0x20);
  r[1] = _mm256_permute2f128_ps(b1, b5, 0x20);
  r[2] = _mm256_permute2f128_ps(b2, b6, 0x20);
  r[3] = _mm256_permute2f128_ps(b3, b7, 0x20);
  r[4] = _mm256_permute2f128_ps(b0, b4, 0x31);
  r[5] = _mm256_permute2f128_ps(b1, b5, 0x31);
  r[6] = _mm256_permute2f128_ps(b2, b6, 0x31);
  r[7] = _mm256_permute2f128_ps(b3, b7, 0x31);
}

constexpr Index kTile = 8;

// `run` values of each image, `image` values apart, into as many vectors. Lanes of images that are
// not there become 0.
void pack_run(const float* from, Index image, Index images, Index run, float* to) {
  for (Index lane = 0; lane < kLanes; lane += kTile) {
    const float* const first = from + lane * image;
    const Index there = images - lane;
    for (Index begin = 0; begin < run; begin += kTile) {
      const Index count = run - begin < kTile ? run - begin : kTile;
      __m256 tile[kTile];
      if (count == kTile && there >= kTile) {
        for (Index i = 0; i < kTile; ++i) tile[i] = _mm256_loadu_ps(first + i * image + begin);
      } else {
        const __m256i mask = first_lanes(count);
        for (Index i = 0; i < kTile; ++i) {
          tile[i] =
              i < there ? _mm256_maskload_ps(first + i * image + begin, mask) : _mm256_setzero_ps();
        }
      }
      transpose(tile);
      for (Index i = 0; i < count; ++i) _mm256_store_ps(to + (begin + i) * kLanes + lane, tile[i]);
    }
  }
}

void unpack_run(const float* from, Index run, float* to, Index image, Index images) {
  for (Index lane = 0; lane < kLanes && lane < images; lane += kTile) {
    float* const first = to + lane * image;
    const Index there = images - lane;
    for (Index begin = 0; begin < run; begin += kTile) {
      const Index count = run - begin < kTile ? run - begin : kTile;
      __m256 tile[kTile];
      for (Index i = 0; i < kTile; ++i) {
        tile[i] =
            i < count ? _mm256_load_ps(from + (begin + i) * kLanes + lane) : _mm256_setzero_ps();
      }
      transpose(tile);
      if (count == kTile && there >= kTile) {
        for (Index i = 0; i < kTile; ++i) _mm256_storeu_ps(first + i * image + begin, tile[i]);
      } else {
        const __m256i mask = first_lanes(count);
        for (Index i = 0; i < kTile && i < there; ++i) {
          _mm256_maskstore_ps(first + i * image + begin, mask, tile[i]);
        }
      }
    }
  }
}

// Vectors of images with a border of zeros around each channel.
struct Packed {
  Index channels;
  Index rows;
  Index columns;
  Index top;
  Index bottom;
  Index left;
  Index right;
  bool channels_last;

  [[nodiscard]] Index full_rows() const { return top + rows + bottom; }
  [[nodiscard]] Index full_columns() const { return left + columns + right; }
  [[nodiscard]] Index floats() const { return channels * full_rows() * full_columns() * kLanes; }
  [[nodiscard]] bool has_border() const { return top + bottom + left + right > 0; }
  // In floats.
  [[nodiscard]] Layout strides() const {
    if (channels_last) {
      return {.channel = kLanes,
              .row = full_columns() * channels * kLanes,
              .column = channels * kLanes};
    }
    return {.channel = full_rows() * full_columns() * kLanes,
            .row = full_columns() * kLanes,
            .column = kLanes};
  }
  // Of the first value that is not border.
  [[nodiscard]] Index inside() const { return top * strides().row + left * strides().column; }
};

void pack(const float* from, Index images, const Packed& shape, float* to) {
  const Index image = shape.channels * shape.rows * shape.columns;
  if (!shape.has_border()) {
    pack_run(from, image, images, image, to);
    return;
  }
  const Layout strides = shape.strides();
  const Index planes = shape.channels_last ? 1 : shape.channels;
  const Index run = shape.channels_last ? shape.columns * shape.channels : shape.columns;
  for (Index plane = 0; plane < planes; ++plane) {
    for (Index row = 0; row < shape.rows; ++row) {
      pack_run(from + (plane * shape.rows + row) * run, image, images, run,
               to + shape.inside() + plane * strides.channel + row * strides.row);
    }
  }
}

void clear(float* values, Index count) {
  for (Index i = 0; i < count; ++i) values[i] = 0;
}

// --- sums over taps: outputs and input gradients ---

// A grid of sums. Sum (row, column) of channel c is over the row's taps t of
// weights[t * channels + c] * input[taps[t] + row * input_row + column * input_column].
struct Grid {
  Index rows;
  Index columns;
  // The taps are those of one kernel row after the other, as many of each; a row of the grid takes
  // those whose input is in the image: from_kernel_row[row] up to to_kernel_row[row].
  Index of_kernel_row;
  const Index* from_kernel_row;
  const Index* to_kernel_row;
  Index input_row;
  Index input_column;
  Index output_channel;
  Index output_row;
  Index output_column;
};

// Of `C` channels and `J` columns.
template <int C, int J>
inline void sum_block(const float* input, const Index* taps, Index count, const float* weights,
                      const float* bias, float* output, const Grid& grid) {
  Vector sums[C][J];
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const Vector first = bias == nullptr ? broadcast(0) : broadcast(bias[c]);
#pragma GCC unroll 8
    for (int j = 0; j < J; ++j) sums[c][j] = first;
  }
  for (Index t = 0; t < count; ++t) {
    const float* const from = input + taps[t];
    Vector values[J];
#pragma GCC unroll 8
    for (int j = 0; j < J; ++j) values[j] = load(from + j * grid.input_column);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const Vector weight = broadcast(weights[t * C + c]);
#pragma GCC unroll 8
      for (int j = 0; j < J; ++j) sums[c][j] = multiply_add(weight, values[j], sums[c][j]);
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int j = 0; j < J; ++j) {
      store(output + c * grid.output_channel + j * grid.output_column, sums[c][j]);
    }
  }
}

template <int C>
void sum_row(const float* input, const Index* taps, Index count, const float* weights,
             const float* bias, float* output, const Grid& grid) {
  const Index parts = quotient_up(grid.columns, most_columns(C));
  for (Index i = 0; i < parts; ++i) {
    const Part part = part_of(grid.columns, parts, i);
    const float* const from = input + part.begin * grid.input_column;
    float* const to = output + part.begin * grid.output_column;
    switch (part.size) {
      case 1:
        sum_block<C, 1>(from, taps, count, weights, bias, to, grid);
        break;
      case 2:
        sum_block<C, 2>(from, taps, count, weights, bias, to, grid);
        break;
      case 3:
        sum_block<C, most_columns(C) < 3 ? 1 : 3>(from, taps, count, weights, bias, to, grid);
        break;
      case 4:
        sum_block<C, most_columns(C) < 4 ? 1 : 4>(from, taps, count, weights, bias, to, grid);
        break;
      case 5:
        sum_block<C, most_columns(C) < 5 ? 1 : 5>(from, taps, count, weights, bias, to, grid);
        break;
      default:
        sum_block<C, most_columns(C) < 6 ? 1 : 6>(from, taps, count, weights, bias, to, grid);
        break;
    }
  }
}

// Channels in blocks of at most five; `weights`, of `count` taps, as pack_weights() has them.
void sum_taps(const float* input, const Index* taps, Index count, const float* weights,
              const float* bias, Index channels, float* output, const Grid& grid) {
  const Index parts = quotient_up(channels, kMostChannels);
  for (Index row = 0; row < grid.rows; ++row) {
    const Index first = grid.from_kernel_row[row] * grid.of_kernel_row;
    const Index some = grid.to_kernel_row[row] * grid.of_kernel_row - first;
    for (Index i = 0; i < parts; ++i) {
      const Part part = part_of(channels, parts, i);
      const float* const from = input + row * grid.input_row;
      const float* const of_part = weights + part.begin * count + first * part.size;
      const float* const bias_of_part = bias == nullptr ? nullptr : bias + part.begin;
      float* const to = output + row * grid.output_row + part.begin * grid.output_channel;
      switch (part.size) {
        case 1:
          sum_row<1>(from, taps + first, some, of_part, bias_of_part, to, grid);
          break;
        case 2:
          sum_row<2>(from, taps + first, some, of_part, bias_of_part, to, grid);
          break;
        case 3:
          sum_row<3>(from, taps + first, some, of_part, bias_of_part, to, grid);
          break;
        case 4:
          sum_row<4>(from, taps + first, some, of_part, bias_of_part, to, grid);
          break;
        default:
          sum_row<5>(from, taps + first, some, of_part, bias_of_part, to, grid);
          break;
      }
    }
  }
}

// weights[t * size + c] of each block of channels, one block behind the other. `of_tap` are the
// places of the taps' weights of channel 0, `channel` how far those of the next are away.
void pack_weights(const float* from, const Index* of_tap, Index count, Index channel,
                  Index channels, float* to) {
  const Index parts = quotient_up(channels, kMostChannels);
  for (Index i = 0; i < parts; ++i) {
    const Part part = part_of(channels, parts, i);
    for (Index t = 0; t < count; ++t) {
      const float* const first = from + of_tap[t] + part.begin * channel;
      for (Index c = 0; c < part.size; ++c) *to++ = first[c * channel];
    }
  }
}

// --- sums over pixels: weight and bias gradients ---

struct Pixels {
  Index rows;
  Index columns;
  Index gradient_channel;
  Index gradient_row;
  Index gradient_column;
  Index input_row;
  Index input_column;
};

// Adds to the lanes of sums[t * C + c], t < T, the gradient of channel c times the input at tap t.
template <int C, int T>
inline void multiply_block(const float* gradient, const float* input, const Index* taps,
                           float* sums, const Pixels& pixels) {
  Vector totals[T][C];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) totals[t][c] = load(sums + (t * C + c) * kSumLanes);
  }
  for (Index row = 0; row < pixels.rows; ++row) {
    const float* g = gradient + row * pixels.gradient_row;
    const float* x = input + row * pixels.input_row;
    for (Index column = 0; column < pixels.columns; ++column) {
      Vector gradients[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) gradients[c] = load(g + c * pixels.gradient_channel);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const Vector value = load(x + taps[t]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) totals[t][c] = multiply_add(gradients[c], value, totals[t][c]);
      }
      g += pixels.gradient_column;
      x += pixels.input_column;
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) store(sums + (t * C + c) * kSumLanes, totals[t][c]);
  }
}

template <int C>
void multiply_taps(const float* gradient, const float* input, const Index* taps, Index count,
                   float* sums, const Pixels& pixels) {
  const Index parts = quotient_up(count, most_columns(C));
  for (Index i = 0; i < parts; ++i) {
    const Part part = part_of(count, parts, i);
    const Index* const first = taps + part.begin;
    float* const to = sums + part.begin * C * kSumLanes;
    switch (part.size) {
      case 1:
        multiply_block<C, 1>(gradient, input, first, to, pixels);
        break;
      case 2:
        multiply_block<C, 2>(gradient, input, first, to, pixels);
        break;
      case 3:
        multiply_block<C, most_columns(C) < 3 ? 1 : 3>(gradient, input, first, to, pixels);
        break;
      case 4:
        multiply_block<C, most_columns(C) < 4 ? 1 : 4>(gradient, input, first, to, pixels);
        break;
      case 5:
        multiply_block<C, most_columns(C) < 5 ? 1 : 5>(gradient, input, first, to, pixels);
        break;
      default:
        multiply_block<C, most_columns(C) < 6 ? 1 : 6>(gradient, input, first, to, pixels);
        break;
    }
  }
}

// Rows of which the gradients of a block of channels stay in the first-level cache while all taps
// are multiplied with them.
Index rows_at_once(const Pixels& pixels) {
  constexpr Index kBytes = 16 * 1024;
  const Index of_row = kMostChannels * pixels.columns * kLanes * static_cast<Index>(sizeof(float));
  return larger(1, kBytes / of_row);
}

// sums: as pack_weights() has weights, with kSumLanes lanes for each.
void multiply_all(const float* gradient, Index channels, const float* input, const Index* taps,
                  Index count, float* sums, const Pixels& pixels) {
  const Index parts = quotient_up(channels, kMostChannels);
  const Index step = rows_at_once(pixels);
  for (Index i = 0; i < parts; ++i) {
    const Part part = part_of(channels, parts, i);
    float* const to = sums + part.begin * count * kSumLanes;
    for (Index row = 0; row < pixels.rows; row += step) {
      Pixels some = pixels;
      some.rows = pixels.rows - row < step ? pixels.rows - row : step;
      const float* const g =
          gradient + part.begin * pixels.gradient_channel + row * pixels.gradient_row;
      const float* const x = input + row * pixels.input_row;
      switch (part.size) {
        case 1:
          multiply_taps<1>(g, x, taps, count, to, some);
          break;
        case 2:
          multiply_taps<2>(g, x, taps, count, to, some);
          break;
        case 3:
          multiply_taps<3>(g, x, taps, count, to, some);
          break;
        case 4:
          multiply_taps<4>(g, x, taps, count, to, some);
          break;
        default:
          multiply_taps<5>(g, x, taps, count, to, some);
          break;
      }
    }
  }
}

void add_gradients(const float* gradient, Index channels, float* sums, const Pixels& pixels) {
  for (Index c = 0; c < channels; ++c) {
    Vector total = load(sums + c * kSumLanes);
    for (Index row = 0; row < pixels.rows; ++row) {
      const float* const g = gradient + c * pixels.gradient_channel + row * pixels.gradient_row;
      for (Index column = 0; column < pixels.columns; ++column) {
        total = add(total, load(g + column * pixels.gradient_column));
      }
    }
    store(sums + c * kSumLanes, total);
  }
}

float sum_of_lanes(float* lanes) {
  for (Index width = kSumLanes / 2; width > 0; width /= 2) {
    for (Index i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// --- the whole ---

Packed packed_input(const Shape& s) {
  // Below and to the right as far as the last tap of the last output reaches.
  const Index last_row = (s.output_rows - 1) * s.row_stride + (s.kernel_rows - 1) * s.row_dilation;
  const Index last_column =
      (s.output_columns - 1) * s.column_stride + (s.kernel_columns - 1) * s.column_dilation;
  return {.channels = s.input_channels,
          .rows = s.input_rows,
          .columns = s.input_columns,
          .top = s.row_padding,
          .bottom = larger(0, last_row - s.row_padding - (s.input_rows - 1)),
          .left = s.column_padding,
          .right = larger(0, last_column - s.column_padding - (s.input_columns - 1)),
          .channels_last = s.channels_last};
}

Packed packed_output(const Shape& s) {
  return {.channels = s.output_channels,
          .rows = s.output_rows,
          .columns = s.output_columns,
          .top = 0,
          .bottom = 0,
          .left = 0,
          .right = 0,
          .channels_last = s.channels_last};
}

// The gradient of the output with zeros wherever a tap reaches beyond its columns; taps beyond its
// rows are left out.
Packed packed_gradient(const Shape& s) {
  const auto before = [](Index kernel, Index dilation, Index padding, Index stride) {
    return larger(0, quotient_up((kernel - 1) * dilation - padding, stride));
  };
  const auto behind = [](Index inputs, Index padding, Index stride, Index outputs) {
    return larger(0, (inputs - 1 + padding) / stride - (outputs - 1));
  };
  Packed packed = packed_output(s);
  packed.left = before(s.kernel_columns, s.column_dilation, s.column_padding, s.column_stride);
  packed.right = behind(s.input_columns, s.column_padding, s.column_stride, s.output_columns);
  return packed;
}

Packed packed_input_gradient(const Shape& s) {
  Packed packed = packed_input(s);
  packed.top = packed.bottom = packed.left = packed.right = 0;
  return packed;
}

Index kernel_taps(const Shape& s) {
  return s.kernel_rows * s.kernel_columns;
}

// Where the taps of an output lie behind its first input, and their weights; over i, c, j.
void input_taps(const Shape& s, const Layout& strides, Index* taps, Index* of_weight) {
  for (Index i = 0; i < s.kernel_rows; ++i) {
    for (Index c = 0; c < s.input_channels; ++c) {
      for (Index j = 0; j < s.kernel_columns; ++j) {
        *taps++ = c * strides.channel + i * s.row_dilation * strides.row +
                  j * s.column_dilation * strides.column;
        *of_weight++ = c * s.weight_input + i * s.weight_row + j * s.weight_column;
      }
    }
  }
}

Sizes forward_sizes(const Shape& s) {
  const Index weights = s.input_channels * kernel_taps(s) * s.output_channels;
  const Index floats = packed_input(s).floats() + packed_output(s).floats() + weights;
  return {
      .floats = static_cast<std::size_t>(floats),
      .offsets = static_cast<std::size_t>(2 * (s.input_channels * kernel_taps(s) + s.output_rows))};
}

// Kernel rows whose input is in the image, for each row of outputs.
void find_kernel_rows(const Shape& s, Index* from, Index* to) {
  for (Index row = 0; row < s.output_rows; ++row) {
    const auto input_row = [&](Index i) {
      return row * s.row_stride + i * s.row_dilation - s.row_padding;
    };
    Index i = 0;
    while (i < s.kernel_rows && input_row(i) < 0) ++i;
    from[row] = i;
    while (i < s.kernel_rows && input_row(i) < s.input_rows) ++i;
    to[row] = i;
  }
}

void forward(const Shape& s, const ForwardCall& call, const Scratch& scratch) {
  const Packed in = packed_input(s);
  const Packed out = packed_output(s);
  const Layout from = in.strides();
  const Layout to = out.strides();
  const Index count = s.input_channels * kernel_taps(s);
  Index* const taps = scratch.offsets;
  Index* const of_weight = taps + count;
  float* const input = scratch.floats;
  float* const output = input + in.floats();
  float* const weights = output + out.floats();
  input_taps(s, from, taps, of_weight);
  Index* const from_kernel_row = of_weight + count;
  Index* const to_kernel_row = from_kernel_row + s.output_rows;
  find_kernel_rows(s, from_kernel_row, to_kernel_row);
  pack_weights(call.weight, of_weight, count, s.weight_output, s.output_channels, weights);
  if (in.has_border()) clear(input, in.floats());
  const Grid grid{.rows = s.output_rows,
                  .columns = s.output_columns,
                  .of_kernel_row = s.input_channels * s.kernel_columns,
                  .from_kernel_row = from_kernel_row,
                  .to_kernel_row = to_kernel_row,
                  .input_row = s.row_stride * from.row,
                  .input_column = s.column_stride * from.column,
                  .output_channel = to.channel,
                  .output_row = to.row,
                  .output_column = to.column};
  const Index input_image = s.input_channels * s.input_rows * s.input_columns;
  const Index output_image = s.output_channels * s.output_rows * s.output_columns;
  for (Index image = 0; image < s.images; image += kLanes) {
    pack(call.input + image * input_image, s.images - image, in, input);
    sum_taps(input, taps, count, weights, call.bias, s.output_channels, output, grid);
    unpack_run(output, output_image, call.output + image * output_image, output_image,
               s.images - image);
  }
}

// Input rows (or columns) first, first + stride, ... have the same taps: those kernel rows i with
// (first + padding - i dilation) divisible by the stride. Of such a one: which gradient row.
struct Reach {
  Index stride;
  Index padding;
  Index dilation;
  [[nodiscard]] bool meets(Index first, Index i) const {
    return (first + padding - i * dilation) % stride == 0;
  }
  [[nodiscard]] Index gradient(Index first, Index i) const {
    return (first + padding - i * dilation) / stride;
  }
};

// Input rows and columns are in as many classes as the strides' product, each with taps of its own.
class InputGradient {
 public:
  // Of `offsets`.
  static Index offsets(const Shape& s) {
    return 2 * s.output_channels * kernel_taps(s) + 2 * (s.input_rows + s.row_stride) +
           2 * s.row_stride * s.column_stride;
  }

  InputGradient(const Shape& shape, const float* weight, Index* offsets, float* packed,
                float* weights)
      : s_(shape),
        gradient_(packed_gradient(shape)),
        out_(packed_input_gradient(shape)),
        rows_{shape.row_stride, shape.row_padding, shape.row_dilation},
        columns_{shape.column_stride, shape.column_padding, shape.column_dilation},
        packed_(packed),
        weights_(weights) {
    const Index all = s_.output_channels * kernel_taps(s_);
    taps_ = offsets;
    Index* const of_weight = taps_ + all;
    from_kernel_row_ = of_weight + all;
    to_kernel_row_ = from_kernel_row_ + s_.input_rows + s_.row_stride;
    counts_ = to_kernel_row_ + s_.input_rows + s_.row_stride;
    of_kernel_row_ = counts_ + classes();
    Index* taps = taps_;
    float* to = weights_;
    for (Index i = 0; i < classes(); ++i) {
      find_taps(i, taps, of_weight);
      pack_weights(weight, of_weight, counts_[i], s_.weight_input, s_.input_channels, to);
      taps += counts_[i];
      to += counts_[i] * s_.input_channels;
    }
    for (Index row = 0; row < s_.row_stride; ++row) find_kernel_rows(row);
  }

  // Of one block of images, whose gradients are packed.
  void compute(const float* gradient, float* to, Index images) const {
    const Index* taps = taps_;
    const float* weights = weights_;
    for (Index i = 0; i < classes(); ++i) {
      compute_class(i, gradient, taps, weights);
      taps += counts_[i];
      weights += counts_[i] * s_.input_channels;
    }
    const Index image = s_.input_channels * s_.input_rows * s_.input_columns;
    unpack_run(packed_, image, to, image, images);
  }

 private:
  [[nodiscard]] Index classes() const { return s_.row_stride * s_.column_stride; }
  [[nodiscard]] Index row_of(Index i) const { return i / s_.column_stride; }
  [[nodiscard]] Index column_of(Index i) const { return i % s_.column_stride; }
  // Rows of input in a class.
  [[nodiscard]] Index rows(Index first) const {
    return quotient_up(s_.input_rows - first, s_.row_stride);
  }

  // Over i, o, j.
  void find_taps(Index of_class, Index* taps, Index* of_weight) {
    const Layout strides = gradient_.strides();
    const Index row = row_of(of_class);
    const Index column = column_of(of_class);
    Index count = 0;
    of_kernel_row_[of_class] = 0;
    for (Index i = 0; i < s_.kernel_rows; ++i) {
      if (!rows_.meets(row, i)) continue;
      const Index before = count;
      for (Index o = 0; o < s_.output_channels; ++o) {
        for (Index j = 0; j < s_.kernel_columns; ++j) {
          if (!columns_.meets(column, j)) continue;
          taps[count] = o * strides.channel + rows_.gradient(row, i) * strides.row +
                        columns_.gradient(column, j) * strides.column;
          of_weight[count] = o * s_.weight_output + i * s_.weight_row + j * s_.weight_column;
          ++count;
        }
      }
      of_kernel_row_[of_class] = count - before;
    }
    counts_[of_class] = count;
  }

  // Of the kernel rows that a class meets, those whose gradient is there, for each of its rows.
  void find_kernel_rows(Index first) {
    for (Index row = 0; row < rows(first); ++row) {
      Index met = 0;
      Index from = 0;
      Index to = 0;
      for (Index i = 0; i < s_.kernel_rows; ++i) {
        if (!rows_.meets(first, i)) continue;
        const Index gradient_row = row + rows_.gradient(first, i);
        // They fall as i rises.
        if (gradient_row >= s_.output_rows) from = met + 1;
        if (gradient_row >= 0) to = met + 1;
        ++met;
      }
      from_kernel_row_[place(first) + row] = from;
      to_kernel_row_[place(first) + row] = larger(from, to);
    }
  }
  // Where the rows of a class begin in the tables.
  [[nodiscard]] Index place(Index first) const {
    return first * quotient_up(s_.input_rows, s_.row_stride);
  }

  void compute_class(Index of_class, const float* gradient, const Index* taps,
                     const float* weights) const {
    const Index row = row_of(of_class);
    const Index column = column_of(of_class);
    if (row >= s_.input_rows || column >= s_.input_columns) return;
    const Layout from = gradient_.strides();
    const Layout to = out_.strides();
    const Grid grid{.rows = rows(row),
                    .columns = quotient_up(s_.input_columns - column, s_.column_stride),
                    .of_kernel_row = of_kernel_row_[of_class],
                    .from_kernel_row = from_kernel_row_ + place(row),
                    .to_kernel_row = to_kernel_row_ + place(row),
                    .input_row = from.row,
                    .input_column = from.column,
                    .output_channel = to.channel,
                    .output_row = s_.row_stride * to.row,
                    .output_column = s_.column_stride * to.column};
    sum_taps(gradient + gradient_.inside(), taps, counts_[of_class], weights, nullptr,
             s_.input_channels, packed_ + row * to.row + column * to.column, grid);
  }

  const Shape& s_;
  Packed gradient_;
  Packed out_;
  Reach rows_;
  Reach columns_;
  Index* taps_ = nullptr;
  Index* from_kernel_row_ = nullptr;
  Index* to_kernel_row_ = nullptr;
  // Of each class: its taps, and those of one kernel row.
  Index* counts_ = nullptr;
  Index* of_kernel_row_ = nullptr;
  float* packed_;
  float* weights_;
};

// From the lanes of the sums to the gradient of the weight.
void reduce_weights(const Shape& s, const Index* of_weight, Index count, float* sums, float* to) {
  const Index parts = quotient_up(s.output_channels, kMostChannels);
  for (Index i = 0; i < parts; ++i) {
    const Part part = part_of(s.output_channels, parts, i);
    for (Index t = 0; t < count; ++t) {
      for (Index c = 0; c < part.size; ++c) {
        to[of_weight[t] + (part.begin + c) * s.weight_output] = sum_of_lanes(sums);
        sums += kSumLanes;
      }
    }
  }
}

// The gradients of the weight and the bias, summed over blocks of images.
class WeightGradient {
 public:
  // `offsets` has 2 * input channels * kernel taps.
  WeightGradient(const Shape& shape, const BackwardCall& call, Index* offsets, float* packed,
                 float* sums)
      : s_(shape),
        call_(call),
        input_(packed_input(shape)),
        gradient_(packed_gradient(shape)),
        count_(shape.input_channels * kernel_taps(shape)),
        taps_(offsets),
        of_weight_(offsets + count_),
        packed_(packed),
        sums_(sums),
        bias_sums_(sums + count_ * shape.output_channels * kSumLanes) {
    const Layout of_input = input_.strides();
    const Layout of_gradient = gradient_.strides();
    input_taps(s_, of_input, taps_, of_weight_);
    pixels_ = {.rows = s_.output_rows,
               .columns = s_.output_columns,
               .gradient_channel = of_gradient.channel,
               .gradient_row = of_gradient.row,
               .gradient_column = of_gradient.column,
               .input_row = s_.row_stride * of_input.row,
               .input_column = s_.column_stride * of_input.column};
    clear(sums_, (count_ + 1) * s_.output_channels * kSumLanes);
    if (input_.has_border()) clear(packed_, input_.floats());
  }

  // Images from `image` on, whose gradients are packed.
  void add(const float* gradient, Index image) {
    const Index lane = image % kSumLanes;
    const float* const inside = gradient + gradient_.inside();
    if (call_.weight_gradient != nullptr) {
      const Index values = s_.input_channels * s_.input_rows * s_.input_columns;
      pack(call_.input + image * values, s_.images - image, input_, packed_);
      multiply_all(inside, s_.output_channels, packed_, taps_, count_, sums_ + lane, pixels_);
    }
    if (call_.bias_gradient != nullptr) {
      add_gradients(inside, s_.output_channels, bias_sums_ + lane, pixels_);
    }
  }

  void finish() {
    if (call_.weight_gradient != nullptr) {
      reduce_weights(s_, of_weight_, count_, sums_, call_.weight_gradient);
    }
    if (call_.bias_gradient == nullptr) return;
    for (Index o = 0; o < s_.output_channels; ++o) {
      call_.bias_gradient[o] = sum_of_lanes(bias_sums_ + o * kSumLanes);
    }
  }

 private:
  const Shape& s_;
  const BackwardCall& call_;
  Packed input_;
  Packed gradient_;
  Index count_;
  Index* taps_;
  Index* of_weight_;
  float* packed_;
  float* sums_;
  float* bias_sums_;
  Pixels pixels_{};
};

// What backward() cuts its scratch into; each begins where vectors may.
struct BackwardPlaces {
  Index input = 0;
  Index gradient = 0;
  Index input_gradient = 0;
  Index sums = 0;
  Index weights = 0;
  Index floats = 0;

  explicit BackwardPlaces(const Shape& s) {
    const Index values = s.input_channels * kernel_taps(s) * s.output_channels;
    gradient = input + packed_input(s).floats();
    input_gradient = gradient + packed_gradient(s).floats();
    sums = input_gradient + packed_input_gradient(s).floats();
    weights = sums + (values + s.output_channels) * kSumLanes;
    floats = weights + values;
  }
};

Sizes backward_sizes(const Shape& s) {
  return {.floats = static_cast<std::size_t>(BackwardPlaces(s).floats),
          .offsets = static_cast<std::size_t>(InputGradient::offsets(s) +
                                              2 * s.input_channels * kernel_taps(s))};
}

void backward(const Shape& s, const BackwardCall& call, const Scratch& scratch) {
  const BackwardPlaces places(s);
  const Packed packed = packed_gradient(s);
  float* const gradient = scratch.floats + places.gradient;
  const InputGradient inputs(s, call.weight, scratch.offsets,
                             scratch.floats + places.input_gradient,
                             scratch.floats + places.weights);
  WeightGradient weights(s, call, scratch.offsets + InputGradient::offsets(s),
                         scratch.floats + places.input, scratch.floats + places.sums);
  const Index image_in = s.input_channels * s.input_rows * s.input_columns;
  const Index image_out = s.output_channels * s.output_rows * s.output_columns;
  if (packed.has_border()) clear(gradient, packed.floats());
  for (Index image = 0; image < s.images; image += kLanes) {
    pack(call.gradient + image * image_out, s.images - image, packed, gradient);
    if (call.input_gradient != nullptr) {
      inputs.compute(gradient, call.input_gradient + image * image_in, s.images - image);
    }
    weights.add(gradient, image);
  }
  weights.finish();
}

}  // namespace
}  // namespace rubato::lane_convolution
