#pragma once

#include <cstddef>
#include <span>

#include <rubato/numbers/sums.hpp>

#include "coefficient_range.hpp"

namespace rubato {

// Sums of many arrays at once, in one pass over memory: piece by piece, each piece in the
// first-level cache, where arrays added two by two would go through memory once for each addition.
// The order of every element's sum is that of SummationTree over the arrays, with each addition
// rounded once; so neither where a range is cut nor the instruction set changes a bit, and adding
// whole arrays along the tree gives the same bits. T is float or double.

/// out[i] = the sum of leaves[.][begin + i]. At least one leaf; every leaf has at least
/// begin + out.size() elements. `out` may be one of the leaves, from `begin` on; else it overlaps
/// none.
void tree_sum(std::span<const float* const> leaves, std::size_t begin, std::span<float> out);
void tree_sum(std::span<const double* const> leaves, std::size_t begin, std::span<double> out);

template <class T>
using SgdRange = CoefficientRange<SgdCoefficients<T>>;

/// One SGD step (kernels.hpp) with the sum of the leaves as the gradient, which is never written to
/// memory: with N leaves of S bytes it moves (N + 4) S bytes, (N + 2) S without momentum.
///
/// Works on the elements [begin, begin + parameters.size()) of the leaves; `parameters` and
/// `velocity` are those of these elements. `ranges` ascend and cover them, counted as the leaves'
/// elements are; those that are left alone are not read. `velocity` may be empty where all momenta
/// are 0.
void tree_sum_sgd(std::span<const float* const> leaves, std::size_t begin,
                  std::span<float> parameters, std::span<float> velocity,
                  std::span<const SgdRange<float>> ranges);
void tree_sum_sgd(std::span<const double* const> leaves, std::size_t begin,
                  std::span<double> parameters, std::span<double> velocity,
                  std::span<const SgdRange<double>> ranges);

}  // namespace rubato
