// A vector has one value from each of eight neighbouring windows of a row. forward() walks through
// the elements of the window and keeps, in each lane, the largest value and its place; NaN always
// replaces what is there, so that the last one stays, as in libtorch. Lanes whose column lies
// outside of the image are masked and never read. Adjoining windows of two by two, which most
// networks have, are computed from whole vectors of two rows of the image; at the end of a row, a
// vector has two groups of four windows, from one row or from two. backward() does the same: there
// each input is in exactly one window, so that nothing has to be cleared or added. Stores are
// masked only in the gradient of rows shorter than four windows, because a masked one takes 4 ns on
// an AMD EPYC (Zen 4). This file is compiled for AVX2: it uses nothing from the standard library,
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
constexpr Index kHalf = kLanes / 2;

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

// Stores the first `count` of four values and of their indices.
inline void store_four(__m128 values, __m128i indices, float* to, std::int64_t* to_indices,
                       Index count) {
  if (count >= kHalf) {
    _mm_storeu_ps(to, values);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_indices), _mm256_cvtepi32_epi64(indices));
    return;
  }
  if (count >= 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), values);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to_indices), _mm_cvtepi32_epi64(indices));
    values = _mm_movehl_ps(values, values);
    indices = _mm_unpackhi_epi64(indices, indices);
    to += 2;
    to_indices += 2;
    count -= 2;
  }
  if (count == 1) {
    _mm_store_ss(to, values);
    *to_indices = _mm_cvtsi128_si32(indices);
  }
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

  // The low and the high four lanes.
  inline __m128 low_values() const { return _mm256_castps256_ps128(values); }
  inline __m128 high_values() const { return _mm256_extractf128_ps(values, 1); }
  inline __m128i low_indices() const { return _mm256_castsi256_si128(indices); }
  inline __m128i high_indices() const { return _mm256_extracti128_si256(indices, 1); }

  // Stores the first `count` lanes.
  inline void store(float* to, std::int64_t* to_indices, Index count) const {
    if (count < kLanes) return store_part(values, indices, to, to_indices, count);
    auto* const whole = reinterpret_cast<__m256i*>(to_indices);
    _mm256_storeu_ps(to, values);
    _mm256_storeu_si256(whole, _mm256_cvtepi32_epi64(low_indices()));
    _mm256_storeu_si256(whole + 1, _mm256_cvtepi32_epi64(high_indices()));
  }
  // The loop of forward_any() takes about 10 % longer with these branches inlined.
  [[gnu::noinline]] static void store_part(__m256 values, __m256i indices, float* to,
                                           std::int64_t* to_indices, Index count) {
    const Largest all{values, indices};
    store_four(all.low_values(), all.low_indices(), to, to_indices, count);
    store_four(all.high_values(), all.high_indices(), to + kHalf, to_indices + kHalf,
               count - kHalf);
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

// AVX2 shuffles the halves of two vectors separately, which leaves eight windows in the order
// 0 1 4 5 2 3 6 7. Puts them in their usual order, or back in that one.
inline __m256i reorder(__m256i values) {
  constexpr int kMiddleExchanged = 0xD8;
  return _mm256_permute4x64_epi64(values, kMiddleExchanged);
}
inline __m256 reorder(__m256 values) {
  return _mm256_castsi256_ps(reorder(_mm256_castps_si256(values)));
}

// The values with even and odd indices of sixteen values, before reorder().
inline __m256 even_of(__m256 low, __m256 high) {
  constexpr int kEven = 0x88;
  return _mm256_shuffle_ps(low, high, kEven);
}
inline __m256 odd_of(__m256 low, __m256 high) {
  constexpr int kOdd = 0xDD;
  return _mm256_shuffle_ps(low, high, kOdd);
}

// Loads from[lane * stride] in the lanes from `begin` to `end` - 1, and reads nothing else; the
// other lanes are 0.
inline __m256 load(const float* from, Index stride, Index begin, Index end) {
  if (stride == 1) return _mm256_maskload_ps(from, lanes_between(begin, end));
  if (stride == 2) {
    const Index last = 2 * end - 1;
    return reorder(even_of(
        _mm256_maskload_ps(from, lanes_between(2 * begin, last)),
        _mm256_maskload_ps(from + kLanes, lanes_between(2 * begin - kLanes, last - kLanes))));
  }
  return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), from, lane_multiples(stride),
                                  _mm256_castsi256_ps(lanes_between(begin, end)), sizeof(float));
}

inline __m256 load_all(const float* from, Index stride) {
  if (stride == 1) return _mm256_loadu_ps(from);
  if (stride != 2) return load(from, stride, 0, kLanes);
  return reorder(even_of(_mm256_loadu_ps(from),
                         _mm256_maskload_ps(from + kLanes, lanes_between(0, kLanes - 1))));
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

// The largest values of eight windows of two by two; `first` has their first places before
// reorder().
inline Largest squares(__m256 upper_low, __m256 upper_high, __m256 lower_low, __m256 lower_high,
                       __m256i first, __m256i below) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i under = _mm256_add_epi32(first, below);
  const Largest largest =
      larger_of(larger_of({even_of(upper_low, upper_high), first},
                          {odd_of(upper_low, upper_high), _mm256_add_epi32(first, one)}),
                larger_of({even_of(lower_low, lower_high), under},
                          {odd_of(lower_low, lower_high), _mm256_add_epi32(under, one)}));
  return {reorder(largest.values), reorder(largest.indices)};
}

// Calls eight(row, column) for each whole vector of eight windows, and then, where windows are
// left, fours(row, column, other_row, other_column) for two times four: both in one row if more
// than four are left, in two rows otherwise. The last four windows of a row always end where it
// ends: some are computed twice if fewer are left, and they are fewer only if the row is shorter.
template <class Eight, class Fours>
inline void for_each_vector(Index rows, Index columns, const Eight& eight, const Fours& fours) {
  for (Index row = 0; row < rows; ++row) {
    for (Index column = 0; column + kLanes <= columns; column += kLanes) eight(row, column);
  }
  const Index left = columns % kLanes;
  if (left == 0) return;
  const Index last = larger(columns - kHalf, 0);
  const Index step = left > kHalf ? 1 : 2;
  const Index first = left > kHalf ? columns - left : last;
  for (Index row = 0; row < rows; row += step) {
    fours(row, first, smaller(row + step, rows) - 1, last);
  }
}

// The first places of four windows of two columns from each of two places, before reorder().
inline __m256i places_of(Index first, Index second) {
  constexpr int kOfSecond = 0xCC;
  const __m256i both = _mm256_blend_epi32(broadcast(first), broadcast(second), kOfSecond);
  return _mm256_add_epi32(both, _mm256_setr_epi32(0, 2, 0, 2, 4, 6, 4, 6));
}

// Pools adjoining windows of two by two.
void forward_squares(const Shape& s, const float* input, float* output, std::int64_t* indices) {
  const Index line = s.columns.input;
  const Index columns = s.columns.output;
  const Index count = smaller(columns, kHalf);
  const __m256i wanted = lanes_between(0, 2 * count);
  for (Index plane = 0; plane < s.planes; ++plane) {
    const auto eight = [&](Index row, Index column) {
      const Index from = 2 * (row * line + column);
      const Index to = row * columns + column;
      const float* const upper = input + from;
      const float* const lower = upper + line;
      squares(_mm256_loadu_ps(upper), _mm256_loadu_ps(upper + kLanes), _mm256_loadu_ps(lower),
              _mm256_loadu_ps(lower + kLanes),
              _mm256_add_epi32(broadcast(from), _mm256_setr_epi32(0, 2, 8, 10, 4, 6, 12, 14)),
              broadcast(line))
          .store(output + to, indices + to, kLanes);
    };
    const auto fours = [&](Index row, Index column, Index other_row, Index other_column) {
      const Index from = 2 * (row * line + column);
      const Index other_from = 2 * (other_row * line + other_column);
      const Index to = row * columns + column;
      const Index other_to = other_row * columns + other_column;
      const Largest largest = squares(_mm256_maskload_ps(input + from, wanted),
                                      _mm256_maskload_ps(input + other_from, wanted),
                                      _mm256_maskload_ps(input + from + line, wanted),
                                      _mm256_maskload_ps(input + other_from + line, wanted),
                                      places_of(from, other_from), broadcast(line));
      store_four(largest.low_values(), largest.low_indices(), output + to, indices + to, count);
      store_four(largest.high_values(), largest.high_indices(), output + other_to,
                 indices + other_to, count);
    };
    for_each_vector(s.rows.output, columns, eight, fours);
    input += s.rows.input * line;
    output += s.rows.output * columns;
    indices += s.rows.output * columns;
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

// Lanes of 64 bits become lanes of 32 bits, before reorder().
inline __m256i narrow(__m256i low, __m256i high) {
  return _mm256_castps_si256(even_of(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)));
}

// Pairs of gradients for eight windows, which come before reorder() and leave in order: a gradient
// is the first of its pair if the largest value has offset 0, and the second if it has offset 1;
// the rest is 0.
struct Spread {
  __m256 low;
  __m256 high;
};
inline Spread spread(__m256 gradients, __m256i offsets) {
  const __m256 first = _mm256_and_ps(
      gradients, _mm256_castsi256_ps(_mm256_cmpeq_epi32(offsets, _mm256_setzero_si256())));
  const __m256 second = _mm256_and_ps(
      gradients, _mm256_castsi256_ps(_mm256_cmpeq_epi32(offsets, _mm256_set1_epi32(1))));
  return {_mm256_unpacklo_ps(first, second), _mm256_unpackhi_ps(first, second)};
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
  const Index line = s.columns.input;
  const Index columns = s.columns.output;
  const Index kernel = s.rows.kernel;
  const Index count = smaller(columns, kHalf);
  const __m128i there = _mm256_castsi256_si128(lanes_between(0, count));
  const __m256i wide = _mm256_cvtepi32_epi64(there);
  const __m256i wanted = lanes_between(0, 2 * count);
  const auto store = [&](float* to, __m256 values) {
    if (count == kHalf) return _mm256_storeu_ps(to, values);
    _mm256_maskstore_ps(to, wanted, values);
  };
  for (Index plane = 0; plane < s.planes; ++plane) {
    const auto spread_rows = [&](__m256 gradients, __m256i places, Index to, Index other_to) {
      gradients = reorder(gradients);
      __m256i offsets = _mm256_sub_epi32(places, places_of(to, other_to));
      for (Index i = 0; i < kernel; ++i) {
        const Spread both = spread(gradients, offsets);
        store(input_gradient + to, both.low);
        store(input_gradient + other_to, both.high);
        offsets = _mm256_sub_epi32(offsets, broadcast(line));
        to += line;
        other_to += line;
      }
    };
    const auto* const whole = reinterpret_cast<const long long*>(indices);
    const auto eight = [&](Index row, Index column) {
      const Index from = row * columns + column;
      const Index to = kernel * row * line + 2 * column;
      spread_rows(
          _mm256_loadu_ps(gradient + from),
          narrow(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(whole + from)),
                 _mm256_loadu_si256(reinterpret_cast<const __m256i*>(whole + from + kHalf))),
          to, to + kLanes);
    };
    const auto fours = [&](Index row, Index column, Index other_row, Index other_column) {
      const Index from = row * columns + column;
      const Index other_from = other_row * columns + other_column;
      spread_rows(_mm256_set_m128(_mm_maskload_ps(gradient + other_from, there),
                                  _mm_maskload_ps(gradient + from, there)),
                  narrow(_mm256_maskload_epi64(whole + from, wide),
                         _mm256_maskload_epi64(whole + other_from, wide)),
                  kernel * row * line + 2 * column, kernel * other_row * line + 2 * other_column);
    };
    for_each_vector(s.rows.output, columns, eight, fours);
    gradient += s.rows.output * columns;
    indices += s.rows.output * columns;
    input_gradient += s.rows.input * line;
  }
}

}  // namespace rubato::max_pool

#else

// Never called if cpu_instruction_set() says that there are no such vectors.
void rubato::max_pool::forward(const Shape&, const float*, float*, std::int64_t*) {}
void rubato::max_pool::backward(const Shape&, const float*, const std::int64_t*, float*) {}

#endif
