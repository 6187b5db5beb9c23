#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <rubato/collective/norm_blocks.hpp>
#include <rubato/collective/partial_sum.hpp>
#include <rubato/runtime/hosts.hpp>

#include "collective/host_runs.hpp"
#include "collective/summation_tree.hpp"
#include "runtime/step_executor.hpp"

namespace rubato {

/// What a step of several hosts asks of one of them.
struct HostLoad {
  /// Of the largest subtree that it computes; 0 where it has none.
  std::int64_t most_leaves = 0;
  /// Its own.
  std::int64_t cores = 1;
  /// Of the messages and the sum that its HostSum keeps, squares and scalars left out.
  double bytes = 0;
};

/// What the minibatches of a step leave behind besides their sum, for the other hosts.
struct HostTally {
  /// The same for all hosts and steps.
  std::size_t bytes = 0;
  /// Writes this host's; then takes that of each other one.
  std::function<void(std::span<std::byte> tally)> put{};
  std::function<void(std::span<const std::byte> tally)> add{};
};

/// Of a step whose leaves have so many values. Throws Error as HostSum does.
[[nodiscard]] HostLoad load_of_host(const Hosts& hosts, const StepSize& step, std::size_t values,
                                    std::size_t value_bytes);

/// Brings the sums of a step's subtrees, which the hosts have computed, to one sum on all of them.
///
/// Each host adds a part of the values: it gets that part of all subtrees' sums, adds them in the
/// order of the tree, and gives the sum to all. With S bytes of values on h hosts a host gives
/// S (h - 1) / h for each of its subtrees, and as much again.
///
/// A step is: begin_step(), put() for each root, finish_step().
///
/// T is float or double.
template <class T>
class HostSum {
 public:
  /// `hosts` outlives it. Values and norm blocks are those of a leaf (ReducerSize). The tally goes
  /// along with each host's first message. Throws Error where what the hosts say of themselves does
  /// not fit together.
  HostSum(Hosts& hosts, std::size_t values, NormBlocks norms, HostTally tally = {});

  /// The roots of the subtrees that this host computes, from left to right; there may be none.
  [[nodiscard]] std::span<const TreeNode> begin_step(const StepSize& step);
  /// On which it computes them.
  [[nodiscard]] std::int64_t cores() const { return cores_; }
  /// What is below the root in that place comes to; all its squares are taken.
  void put(std::size_t root, const StepSum<T>& sum);
  /// The sum of all; good until the next begin_step(). Throws what Hosts::exchange() does, and
  /// Error where a host has other minibatches than it should.
  [[nodiscard]] StepSum<T> finish_step(const ExecutorSeconds& seconds);

 private:
  // A part of the values and the squares of their blocks.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t first_block = 0;
    std::size_t end_block = 0;

    [[nodiscard]] std::size_t values() const { return end - begin; }
    [[nodiscard]] std::size_t blocks() const { return end_block - first_block; }
  };
  // What is sent of a sum: values, squares, and the scalars as two numbers. The values come first,
  // in as many bytes as a whole number of doubles takes.
  struct Layout {
    std::size_t value_bytes = 0;
    std::size_t bytes = 0;
  };
  // A message is aligned as memory from operator new is.
  using Message = std::vector<std::byte>;
  // What a message says of a root, which begins at `at`.
  struct RootView {
    std::span<T> values;
    std::span<double> squares;
    double* loss;
    double* minibatches;

    RootView(std::byte* at, const Layout& layout, const Part& part)
        : values(static_cast<T*>(static_cast<void*>(at)), part.values()),
          squares(static_cast<double*>(static_cast<void*>(at + layout.value_bytes)), part.blocks()),
          loss(squares.data() + part.blocks()),
          minibatches(loss + 1) {}
  };

  // Divides the values over the hosts of this generation.
  void lay_out();
  [[nodiscard]] Part part_of(int host) const;
  [[nodiscard]] static Layout layout_of(const Part& part);
  [[nodiscard]] std::span<const TreeNode> roots_of(std::size_t host) const;
  // Puts a part of the values, and its squares, into the result.
  void put_part(const Part& part, const RootView& sum);
  // Adds this host's tally to what it gives, and takes those of the others from what they gave.
  void put_tally();
  void take_tallies();
  // Fills in_.
  void exchange(const std::vector<std::span<const std::byte>>& out);
  // Adds this host's part of all roots, and puts it into the result: what the others are to know.
  [[nodiscard]] Message sum_part();
  // Gives it to all others, and puts what they give into the result.
  void share_part(const Message& part);

  Hosts& hosts_;
  std::size_t values_;
  NormBlocks norms_;
  HostTally tally_;
  // Of the hosts that all below is for.
  std::int64_t generation_ = 0;
  std::vector<double> weights_;
  // By host.
  std::vector<Part> parts_;
  std::vector<Message> out_;
  std::vector<Message> in_;

  // Of the step.
  std::int64_t cores_ = 1;
  SummationTree tree_{1};
  // Of all hosts, from left to right; those of host h begin at first_root_[h].
  std::vector<TreeNode> roots_;
  std::vector<std::size_t> first_root_;
  std::vector<T> result_values_;
  std::vector<double> result_squares_;
  PartialSum<T> result_;
};

extern template class HostSum<float>;
extern template class HostSum<double>;

}  // namespace rubato
