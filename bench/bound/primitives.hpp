#pragma once

// The fastest that libraries compute a layer: each primitive that fits is called by hand, on one
// thread, in the layouts that it prefers and without bringing arrays into them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "loop/eigen/dense_parameters.hpp"

namespace rubato::bench {

/// The median, or 0 if there are none.
[[nodiscard]] double median_of(std::vector<double> values);

/// A computation that is measured in turns with others.
struct Timed {
  std::string name{};
  std::function<void()> compute{};
  std::vector<double> microseconds{};

  /// Computes for some milliseconds, and adds the mean time of a call.
  void measure();
  [[nodiscard]] double median() const { return median_of(microseconds); }
};

/// The memory in which primitives find and put arrays.
class Memory {
 public:
  /// Gives an array a new place at each call of next(), so that the caches have it as far away as
  /// in training.
  class Array {
   public:
    /// `distance` is the number of bytes that training touches before it comes to the same memory
    /// again. The memory must outlive the array.
    Array(AlignedValues<float>& values, std::size_t bytes, std::size_t distance);
    [[nodiscard]] float* next();
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

   private:
    AlignedValues<float>* values_;
    std::size_t bytes_;
    std::size_t step_;
    std::size_t end_;
    std::size_t at_ = 0;
  };

  [[nodiscard]] Array read(std::size_t bytes, std::size_t distance) {
    return {reads_, bytes, distance};
  }
  [[nodiscard]] Array written(std::size_t bytes, std::size_t distance) {
    return {written_, bytes, distance};
  }

 private:
  AlignedValues<float> reads_;
  AlignedValues<float> written_;
};

/// [rows, depth] times [depth, columns], `count` times. The distances of an operation are those of
/// its factors and of its result (Memory::Array).
struct Product {
  std::int64_t count = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  /// How cblas finds the factors. oneDNN chooses.
  bool left_transposed = false;
  bool right_transposed = false;
  std::size_t left_distance = 0;
  std::size_t right_distance = 0;
  std::size_t result_distance = 0;
};

enum class Pass { forward, by_input, by_weights };

/// A convolution of images in two dimensions, without its bias.
struct Convolution {
  Pass pass = Pass::forward;
  std::vector<std::int64_t> input{};
  std::vector<std::int64_t> weight{};
  std::vector<std::int64_t> output{};
  std::vector<std::int64_t> stride{};
  std::vector<std::int64_t> padding{};
  // In backward, of their gradients if these are computed or given.
  std::size_t input_distance = 0;
  std::size_t weight_distance = 0;
  std::size_t output_distance = 0;
};

/// The primitives that compute it. The memory must outlive them.
[[nodiscard]] std::vector<Timed> primitives_of(const Product& product, Memory& memory);
[[nodiscard]] std::vector<Timed> primitives_of(const Convolution& convolution, Memory& memory);
/// A copy that reads and writes these arrays once.
[[nodiscard]] Timed copy_of(std::vector<Memory::Array> reads, std::vector<Memory::Array> written);

}  // namespace rubato::bench
