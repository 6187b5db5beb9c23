#pragma once

// Attention of several heads on float32 sequences, and its gradient. For each sample and head, with
// the queries Q, keys K and values V of all tokens (a token in a row, n features),
//
//   S  = (Q / sqrt(n)) K'           minus infinity where a query does not see a key
//   P  = exp(S - max) / sum         over the keys of each query
//   O  = P V                        dV = P' dO
//   dP = dO V'                      dS = P * (dP - sum of P * dP over the keys), * is elementwise
//   dQ = (dS K) / sqrt(n)           dK = dS' (Q / sqrt(n))
//
// A. Vaswani et al., "Attention Is All You Need", 2017. One pass for each sample and head, in
// blocks of queries, so that S, P, dP and dS stay in the cache. Vectors hold queries in S, P, dP
// and dS, and features elsewhere, so that every sum is a chain in ascending order, beginning with
// 0: of multiply-adds over features or keys, in the softmax of additions over keys, and in dK and
// dV of multiply-adds over the queries of a block, whose sums are then added. The width of the
// vectors changes nothing: all CPUs with FMA have the same bits, and so have all without, which
// round each product.

#include <cstddef>

namespace rubato::attention {

struct Shape {
  std::ptrdiff_t samples = 0;
  std::ptrdiff_t tokens = 0;
  std::ptrdiff_t heads = 0;
  // Number of features of a head.
  std::ptrdiff_t features = 0;
};

// Number of queries in a block.
inline constexpr std::ptrdiff_t kBlock = 32;

// Arrays are dense. `weights`, which forward leaves for backward, and `scratch` are also aligned to
// 64 bytes; functions of Kernels say how many floats they have.
struct ForwardCall {
  // [samples, tokens, 3, heads, features]: queries, keys and values.
  const float* projection = nullptr;
  // [tokens, tokens], true where a query (row) does not see a key; may be null.
  const bool* hidden = nullptr;
  // [samples, tokens, heads, features]
  float* output = nullptr;
  float* weights = nullptr;
  float* scratch = nullptr;
};

struct BackwardCall {
  // The gradient by the output.
  const float* gradient = nullptr;
  const float* projection = nullptr;
  const float* weights = nullptr;
  // The gradient by the projection, with its shape.
  float* projection_gradient = nullptr;
  float* scratch = nullptr;
};

// Kernels of one instruction set.
struct Kernels {
  std::ptrdiff_t (*weights)(const Shape&) = nullptr;
  std::ptrdiff_t (*scratch)(const Shape&) = nullptr;
  void (*forward)(const Shape&, const ForwardCall&) = nullptr;
  void (*backward)(const Shape&, const BackwardCall&) = nullptr;
};

Kernels base_kernels();
Kernels avx2_kernels();
Kernels avx512_kernels();

}  // namespace rubato::attention
