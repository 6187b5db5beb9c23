#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <rubato/loop/hosts.hpp>
#include <rubato/numbers/sums.hpp>

#include "loop/runtime/executors/step_executor.hpp"
#include "numbers/collective/host_runs.hpp"
#include "numbers/collective/summation_tree.hpp"

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
/// A step is: begin_step(), put() for each root, finish_step(). Hosts hear of all that they are to
/// send when a step begins. A subtree's sum is sent when it is put, while the next one is computed:
/// it is an exchange of its own, in which the first subtrees of all hosts go, then their second
/// ones, and so on. The parts' sums are the last exchange; squares and the tally, where there are
/// any, have another one, which goes at the same time.
///
/// T is float or double.
template <class T>
class HostSum {
 public:
  /// `hosts` outlives it. Values and norm blocks are those of a leaf (ReducerSize). The tally goes
  /// along with each host's last message. Throws Error where what the hosts say of themselves does
  /// not fit together.
  HostSum(Hosts& hosts, std::size_t values, NormBlocks norms, HostTally tally = {});
  HostSum(const HostSum&) = delete;
  HostSum& operator=(const HostSum&) = delete;
  /// A step that is not finished is abandoned (Hosts::abandon()).
  ~HostSum();

  /// The roots of the subtrees that this host computes, from left to right; there may be none. All
  /// three throw what Hosts do. Requires that the step before is finished, or has ended so.
  [[nodiscard]] std::span<const TreeNode> begin_step(const StepSize& step);
  /// On which it computes them.
  [[nodiscard]] std::int64_t cores() const { return cores_; }
  /// What is below the root in that place comes to: from left to right; all its squares are taken.
  void put(std::size_t root, const StepSum<T>& sum);
  /// The sum of all; good until the next begin_step(). Throws Error where a host has other
  /// minibatches than it should.
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
  // A message about a subtree's sum has its values, squares, and the scalars as numbers. The values
  // come first, in as many bytes as a whole number of doubles takes.
  struct Layout {
    std::size_t value_bytes = 0;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kScalars = 4;
  // A message is aligned as memory from operator new is.
  using Message = std::vector<std::byte>;
  // What a message says of a root, which begins at `at`.
  struct RootView {
    std::span<T> values;
    std::span<double> squares;
    std::span<double> scalars;

    RootView(std::byte* at, const Layout& layout, const Part& part)
        : values(static_cast<T*>(static_cast<void*>(at)), part.values()),
          squares(static_cast<double*>(static_cast<void*>(at + layout.value_bytes)), part.blocks()),
          scalars(squares.data() + part.blocks(), kScalars) {}
  };

  // Divides the values over the hosts of this generation.
  void lay_out();
  [[nodiscard]] Part part_of(int host) const;
  [[nodiscard]] static Layout layout_of(const Part& part);
  [[nodiscard]] std::span<const TreeNode> roots_of(std::size_t host) const;
  // Runs a call of the hosts; nothing is under way after an exception.
  template <class Call>
  void with_hosts(const Call& call);
  void expect_roots();
  void expect_parts();
  // Adds this host's part of all roots, and puts it into the result.
  void sum_part();
  // Gives it to all others, whose parts come into the result.
  void share_part();
  [[nodiscard]] bool has_remainder() const { return norms_.size() > 0 || tally_.bytes > 0; }
  // Squares of a part, and a host's tally.
  [[nodiscard]] std::size_t remainder_bytes(const Part& part) const {
    return part.blocks() * sizeof(double) + tally_.bytes;
  }
  void put_remainder();
  void take_remainders();
  [[nodiscard]] std::span<T> values_of(const Part& part) {
    return std::span(result_values_).subspan(part.begin, part.values());
  }
  [[nodiscard]] std::span<double> squares_of(const Part& part) {
    return std::span(result_squares_).subspan(part.first_block, part.blocks());
  }

  Hosts& hosts_;
  std::size_t values_;
  NormBlocks norms_;
  HostTally tally_;
  // Of the hosts that all below is for.
  std::int64_t generation_ = 0;
  std::vector<double> weights_;
  // By host. Of each root a piece, from left to right: what is given and what comes.
  std::vector<Part> parts_;
  std::vector<Message> out_;
  std::vector<Message> in_;
  // What is given to all, and comes from each.
  Message remainder_;
  std::vector<Message> remainders_;

  // Of the step.
  std::int64_t cores_ = 1;
  SummationTree tree_{1};
  // Of all hosts, from left to right; those of host h begin at first_root_[h].
  std::vector<TreeNode> roots_;
  std::vector<std::size_t> first_root_;
  // Of the host that has most: exchanges.
  std::size_t most_roots_ = 0;
  // Whether there are any that are not taken.
  bool under_way_ = false;
  std::vector<T> result_values_;
  std::vector<double> result_squares_;
  PartialSum<T> result_;
};

extern template class HostSum<float>;
extern template class HostSum<double>;

}  // namespace rubato
