// That an evaluator allocates nothing once it has seen its largest minibatch. All of this program's
// operators new count.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"

namespace {

std::atomic<std::int64_t> allocations{0};  // NOLINT(*-avoid-non-const-global-variables)

void* counted(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* const memory =
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace rubato {
namespace {

// How often it does for minibatches of these sizes, after one of each.
template <class T>
std::int64_t allocations_of(ObjectiveOf<T>& objective, const std::vector<std::int64_t>& sizes) {
  const auto evaluator = objective.make_evaluator();
  std::vector<T> gradient(objective.flat_parameters().size());
  const std::vector<std::int64_t> samples = test::first_samples(64);
  std::int64_t before = 0;
  for (const int round : {0, 1}) {
    if (round == 1) before = allocations;
    for (const std::int64_t size : sizes) {
      EvaluatorProgress progress;
      evaluator->evaluate({.samples = std::span(samples).first(static_cast<std::size_t>(size))},
                          {.gradient = gradient, .averaged = {}}, progress);
    }
  }
  return allocations - before;
}

TEST(Allocation, OnlyForTheLargestMinibatch) {
  const std::int64_t before = allocations;
  const auto network =
      multi_layer_perceptron(test::random_classes<float>(64, 300, 10),
                             {.hidden = {200, 150}, .activation = Activation::tanh});
  EXPECT_GT(allocations, before) << "they are counted";
  EXPECT_EQ(allocations_of(*network, {64, 3, 17}), 0);
  EXPECT_EQ(allocations_of(*least_squares(test::random_targets<double>(64, 300, 2)), {64, 1}), 0);
  EXPECT_EQ(allocations_of(*noisy_quadratic<float>({.dim = 1'000}), {64, 1}), 0);
}

}  // namespace
}  // namespace rubato
