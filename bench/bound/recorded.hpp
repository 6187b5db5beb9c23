#pragma once

// The operators of libtorch that a training calls, with their shapes and times: libtorch reports
// each of them, and each node of backward, to callbacks (ATen/record_function.h).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "network.hpp"

namespace rubato::bench {

/// A tensor that an operator takes or gives.
struct Array {
  std::vector<std::int64_t> sizes{};
  /// True if the columns are dense and not the rows.
  bool transposed = false;
  /// The memory of which it is a view.
  const void* storage = nullptr;
  /// Its own part of that memory.
  const void* data = nullptr;
  std::size_t bytes = 0;
  /// The bytes that training touches between the last use of that part and this one.
  std::size_t distance = 0;
};

/// A call of an operator, or a node of backward. Calls within an operator are left out, unless it
/// is one that consists of others, such as matmul().
struct Call {
  std::string name{};
  /// True for nodes of backward. They have the number of the operator that made them.
  bool node = false;
  std::int64_t number = 0;
  /// The number of calls that it is in.
  std::size_t depth = 0;
  std::vector<Array> inputs{};
  /// Arguments that are lists of whole numbers, and those that are whole numbers.
  std::vector<std::vector<std::int64_t>> lists{};
  std::vector<std::int64_t> numbers{};
  std::vector<Array> outputs{};
  /// One element for each minibatch whose time was taken.
  std::vector<double> microseconds{};

  /// False for nodes, and what is around them.
  [[nodiscard]] bool is_operator() const;
  /// True if the result is only another view of an argument.
  [[nodiscard]] bool is_view() const;
};

/// The calls of forward, loss and backward of a minibatch, in their order.
using Calls = std::vector<Call>;

/// Trains the network for a step on one thread, and returns the calls of one minibatch without
/// their times.
[[nodiscard]] Calls recorded(std::string_view network, std::int64_t samples);
/// Trains it for kSteps steps, and adds the times of each minibatch.
void add_times(std::string_view network, Calls& calls);
/// Does the same without recording, which costs time.
void add_times(std::string_view network, StepTimes& times);

}  // namespace rubato::bench
