// A vector has one value from each of eight neighbouring windows of a row. forward() walks through
// the elements of the window and keeps, in each lane, the largest value and its place; NaN always
// replaces what is there, so that the last one stays, as in libtorch. Lanes whose column lies
// outside of the image are masked and never read. Adjoining windows of two by two, which most
// networks have, are computed from whole vectors of two rows, with masks at the end of a row only.
// backward() writes every element of the input gradient once, because there each input is in
// exactly one window. This file is compiled for AVX2: it uses nothing from the standard library,
// and everything but the two functions has internal linkage, since an inline function that the
// linker took from here would run on every CPU.

#include "max_pool_kernels.hpp"

#ifdef __x86_64__

#include <immintrin.h>

namespace rubato::max_pool {

namespace {

using Index = std::ptrdiff_t;
using operators::Axis;

constexpr Index kLanes = 8;

constexpr Index smaller(Index a, Index b) {
  return b < a ? b : a;
}
constexpr Index larger(Index a, Index b) {
  return a < b ? b : a;
}

// A mask with all ones in the lanes from `begin` to `end` - 1.
inline __m256i lanes_between(Index begin, Index end) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i from = _mm256_set1_epi32(static_cast<int>(larger(begin, 0)) - 1);
  const __m256i to = _mm256_set1_epi32(static_cast<int>(smaller(larger(end, 0), kLanes)));
  return _mm256_and_si256(_mm256_cmpgt_epi32(lane, from), _mm256_cmpgt_epi32(to, lane));
}

// The largest values so far in eight windows, and their places.
struct Largest {
  __m256 values;
  __m256i indices;

  inline void consider(__m256 more, __m256i their_indices) {
    const __m256 taken = _mm256_or_ps(_mm256_cmp_ps(more, values, _CMP_GT_OQ),
                                      _mm256_cmp_ps(more, more, _CMP_UNORD_Q));
    take(more, their_indices, taken);
  }
  inline void consider(__m256 more, __m256i their_indices, __m256i there) {
    const __m256 taken = _mm256_or_ps(_mm256_cmp_ps(more, values, _CMP_GT_OQ),
                                      _mm256_cmp_ps(more, more, _CMP_UNORD_Q));
    take(more, their_indices, _mm256_and_ps(taken, _mm256_castsi256_ps(there)));
  }
  inline void take(__m256 more, __m256i their_indices, __m256 taken) {
    values = _mm256_blendv_ps(values, more, taken);
    indices = _mm256_blendv_epi8(indices, their_indices, _mm256_castps_si256(taken));
  }

  // Stores the first `count` lanes.
  inline void store(float* to, std::int64_t* to_indices, Index count) const {
    constexpr Index kHalf = kLanes / 2;
    const __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(indices));
    const __m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(indices, 1));
    if (count == kLanes) {
      _mm256_storeu_ps(to, values);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_indices), low);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_indices + kHalf), high);
      return;
    }
    const __m256i wanted = lanes_between(0, count);
    _mm256_maskstore_ps(to, wanted, values);
    // Lanes of 32 bits become lanes of 64 bits, in which AVX2 masks the indices.
    const __m256i wanted_low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(wanted));
    const __m256i wanted_high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(wanted, 1));
    auto* const whole = reinterpret_cast<long long*>(to_indices);
    _mm256_maskstore_epi64(whole, wanted_low, low);
    _mm256_maskstore_epi64(whole + kHalf, wanted_high, high);
  }
};

// Kernel rows (or columns) from `begin` to `end` - 1 are in the image.
struct Range {
  Index begin;
  Index end;
};
inline Range places(Index output, const Axis& a) {
  const Index first = output * a.stride - a.padding;
  const Index begin = first >= 0 ? 0 : (-first + a.dilation - 1) / a.dilation;
  const Index end =
      first >= a.input ? 0 : smaller(a.kernel, (a.input - 1 - first) / a.dilation + 1);
  return {begin, larger(begin, end)};
}

inline __m256i lane_multiples(Index step) {
  return _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                            _mm256_set1_epi32(static_cast<int>(step)));
}

inline __m256i broadcast(Index value) {
  return _mm256_set1_epi32(static_cast<int>(value));
}

// The values with even indices of sixteen values.
inline __m256 even_of(__m256 low, __m256 high) {
  constexpr int kEven = 0x88;
  constexpr int kLowHighOfEach = 0xD8;
  const __m256 even = _mm256_shuffle_ps(low, high, kEven);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), kLowHighOfEach));
}

inline __m256 odd_of(__m256 low, __m256 high) {
  constexpr int kOdd = 0xDD;
  constexpr int kLowHighOfEach = 0xD8;
  const __m256 odd = _mm256_shuffle_ps(low, high, kOdd);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(odd), kLowHighOfEach));
}

// Loads from[lane * stride] in the lanes from `begin` to `end` - 1, and reads nothing else; the
// other lanes are 0.
inline __m256 load(const float* from, Index stride, Index begin, Index end) {
  if (stride == 1) return _mm256_maskload_ps(from, lanes_between(begin, end));
  if (stride == 2) {
    const Index last = 2 * end - 1;
    return even_of(
        _mm256_maskload_ps(from, lanes_between(2 * begin, last)),
        _mm256_maskload_ps(from + kLanes, lanes_between(2 * begin - kLanes, last - kLanes)));
  }
  return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), from, lane_multiples(stride),
                                  _mm256_castsi256_ps(lanes_between(begin, end)), sizeof(float));
}

inline __m256 load_all(const float* from, Index stride) {
  if (stride == 1) return _mm256_loadu_ps(from);
  if (stride != 2) return load(from, stride, 0, kLanes);
  return even_of(_mm256_loadu_ps(from),
                 _mm256_maskload_ps(from + kLanes, lanes_between(0, kLanes - 1)));
}

// The first column in the image, for each of eight windows.
inline __m256i first_columns(const Shape& s, Index column, __m256i steps) {
  const Index first = column * s.columns.stride - s.columns.padding;
  const __m256i begin = _mm256_add_epi32(broadcast(first), steps);
  if (first >= 0) return begin;
  alignas(32) int columns[kLanes];
  for (Index k = 0; k < kLanes; ++k) {
    Index at = first + k * s.columns.stride;
    while (at < 0) at += s.columns.dilation;
    columns[k] = static_cast<int>(at);
  }
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(columns));
}

inline Largest columns_of(const Shape& s, const float* plane, Index row, const Range& rows,
                          Index column, Index count) {
  const Index first_row = row * s.rows.stride - s.rows.padding;
  const Index first_column = column * s.columns.stride - s.columns.padding;
  const __m256i steps = lane_multiples(s.columns.stride);
  // Windows in which nothing is larger than minus infinity get their first place in the image.
  const Index top = (first_row + rows.begin * s.rows.dilation) * s.columns.input;
  Largest largest{_mm256_set1_ps(-__builtin_inff()),
                  _mm256_add_epi32(broadcast(top), first_columns(s, column, steps))};
  for (Index i = rows.begin; i < rows.end; ++i) {
    const Index line = (first_row + i * s.rows.dilation) * s.columns.input;
    for (Index j = 0; j < s.columns.kernel; ++j) {
      const Index begin = first_column + j * s.columns.dilation;
      // Lanes from `before` to `end` - 1 have a column in the image, and a window that is wanted.
      Index before = 0;
      while (begin + before * s.columns.stride < 0) ++before;
      Index end = count;
      while (end > before && begin + (end - 1) * s.columns.stride >= s.columns.input) --end;
      if (before >= end) continue;
      const float* const from = plane + line + begin;
      const __m256i indices = _mm256_add_epi32(broadcast(line + begin), steps);
      if (before == 0 && end == kLanes) {
        largest.consider(load_all(from, s.columns.stride), indices);
      } else {
        largest.consider(load(from, s.columns.stride, before, end), indices,
                         lanes_between(before, end));
      }
    }
  }
  return largest;
}

// The larger of two values, with its place: the first of equal ones, or the last NaN.
inline Largest larger_of(const Largest& first, const Largest& second) {
  Largest largest = first;
  largest.consider(second.values, second.indices);
  return largest;
}

// The largest values of eight windows of two by two.
inline Largest squares(__m256 upper_low, __m256 upper_high, __m256 lower_low, __m256 lower_high,
                       __m256i first, __m256i below) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i under = _mm256_add_epi32(first, below);
  return larger_of(larger_of({even_of(upper_low, upper_high), first},
                             {odd_of(upper_low, upper_high), _mm256_add_epi32(first, one)}),
                   larger_of({even_of(lower_low, lower_high), under},
                             {odd_of(lower_low, lower_high), _mm256_add_epi32(under, one)}));
}

// Pools adjoining windows of two by two.
void forward_squares(const Shape& s, const float* input, float* output, std::int64_t* indices) {
  const __m256i steps = lane_multiples(2);
  const __m256i below = broadcast(s.columns.input);
  for (Index plane = 0; plane < s.planes; ++plane) {
    for (Index row = 0; row < s.rows.output; ++row) {
      const Index place = 2 * row * s.columns.input;
      const float* upper = input + plane * s.rows.input * s.columns.input + place;
      const float* lower = upper + s.columns.input;
      __m256i first = _mm256_add_epi32(broadcast(place), steps);
      Index left = s.columns.output;
      for (; left >= kLanes; left -= kLanes) {
        squares(_mm256_loadu_ps(upper), _mm256_loadu_ps(upper + kLanes), _mm256_loadu_ps(lower),
                _mm256_loadu_ps(lower + kLanes), first, below)
            .store(output, indices, kLanes);
        first = _mm256_add_epi32(first, _mm256_set1_epi32(2 * kLanes));
        upper += 2 * kLanes;
        lower += 2 * kLanes;
        output += kLanes;
        indices += kLanes;
      }
      if (left == 0) continue;
      const __m256i low = lanes_between(0, 2 * left);
      const __m256i high = lanes_between(0, 2 * left - kLanes);
      squares(_mm256_maskload_ps(upper, low), _mm256_maskload_ps(upper + kLanes, high),
              _mm256_maskload_ps(lower, low), _mm256_maskload_ps(lower + kLanes, high), first,
              below)
          .store(output, indices, left);
      output += left;
      indices += left;
    }
  }
}

void forward_any(const Shape& s, const float* input, float* output, std::int64_t* indices) {
  for (Index plane = 0; plane < s.planes; ++plane) {
    const float* const from = input + plane * s.rows.input * s.columns.input;
    for (Index row = 0; row < s.rows.output; ++row) {
      const Index to = (plane * s.rows.output + row) * s.columns.output;
      const Range rows = places(row, s.rows);
      for (Index column = 0; column < s.columns.output; column += kLanes) {
        const Index count = smaller(kLanes, s.columns.output - column);
        columns_of(s, from, row, rows, column, count)
            .store(output + to + column, indices + to + column, count);
      }
    }
  }
}

// --- the gradient ---

inline __m256i narrow(__m256i low, __m256i high) {
  constexpr int kEven = 0x88;
  constexpr int kLowHighOfEach = 0xD8;
  const __m256 even = _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), kEven);
  return _mm256_permute4x64_epi64(_mm256_castps_si256(even), kLowHighOfEach);
}

// Pairs of gradients for eight windows: a gradient is the first of its pair if the largest value
// has offset 0, and the second if it has offset 1; the rest is 0.
struct Spread {
  __m256 low;
  __m256 high;
};
inline Spread spread(__m256 gradients, __m256i offsets) {
  const __m256 first = _mm256_and_ps(
      gradients, _mm256_castsi256_ps(_mm256_cmpeq_epi32(offsets, _mm256_setzero_si256())));
  const __m256 second = _mm256_and_ps(
      gradients, _mm256_castsi256_ps(_mm256_cmpeq_epi32(offsets, _mm256_set1_epi32(1))));
  const __m256 low = _mm256_unpacklo_ps(first, second);
  const __m256 high = _mm256_unpackhi_ps(first, second);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}

// Computes one row of the windows, whose first column is at `line` in the plane.
void spread_row(const float* gradient, const std::int64_t* indices, Index columns, Index line,
                float* to) {
  constexpr Index kHalf = kLanes / 2;
  __m256i first = _mm256_add_epi32(broadcast(line), lane_multiples(2));
  for (Index k = 0; k < columns; k += kLanes) {
    const Index count = smaller(kLanes, columns - k);
    const auto* const from = reinterpret_cast<const long long*>(indices + k);
    if (count == kLanes) {
      const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + kHalf));
      const Spread both =
          spread(_mm256_loadu_ps(gradient + k), _mm256_sub_epi32(narrow(low, high), first));
      _mm256_storeu_ps(to + 2 * k, both.low);
      _mm256_storeu_ps(to + 2 * k + kLanes, both.high);
    } else {
      const __m256i there = lanes_between(0, count);
      const __m256i low =
          _mm256_maskload_epi64(from, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(there)));
      const __m256i high = _mm256_maskload_epi64(
          from + kHalf, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(there, 1)));
      const Spread both = spread(_mm256_maskload_ps(gradient + k, there),
                                 _mm256_sub_epi32(narrow(low, high), first));
      _mm256_maskstore_ps(to + 2 * k, lanes_between(0, 2 * count), both.low);
      _mm256_maskstore_ps(to + 2 * k + kLanes, lanes_between(0, 2 * count - kLanes), both.high);
    }
    first = _mm256_add_epi32(first, _mm256_set1_epi32(2 * kLanes));
  }
}

// True for adjoining windows of two.
inline bool is_halved(const Axis& a) {
  return a.kernel == 2 && a.stride == 2 && a.padding == 0 && a.dilation == 1 &&
         2 * a.output <= a.input;
}

}  // namespace

void forward(const Shape& shape, const float* input, float* output, std::int64_t* indices) {
  const bool are_squares = is_halved(shape.rows) && is_halved(shape.columns);
  (are_squares ? forward_squares : forward_any)(shape, input, output, indices);
}

void backward(const Shape& s, const float* gradient, const std::int64_t* indices,
              float* input_gradient) {
  for (Index plane = 0; plane < s.planes; ++plane) {
    float* const to = input_gradient + plane * s.rows.input * s.columns.input;
    for (Index row = 0; row < s.rows.output; ++row) {
      const Index from = (plane * s.rows.output + row) * s.columns.output;
      for (Index i = 0; i < s.rows.kernel; ++i) {
        const Index line = (row * s.rows.stride + i) * s.columns.input;
        spread_row(gradient + from, indices + from, s.columns.output, line, to + line);
      }
    }
  }
}

}  // namespace rubato::max_pool

#else

// Never called if cpu_instruction_set() says that there are no such vectors.
void rubato::max_pool::forward(const Shape&, const float*, float*, std::int64_t*) {}
void rubato::max_pool::backward(const Shape&, const float*, const std::int64_t*, float*) {}

#endif
