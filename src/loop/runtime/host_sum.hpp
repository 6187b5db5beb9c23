#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <rubato/loop/hosts.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/numbers/sums.hpp>
#include <rubato/steps/plan.hpp>

#include "numbers/collective/host_runs.hpp"
#include "numbers/collective/summation_tree.hpp"
#include "step_executor.hpp"

namespace rubato {

/// The work of one host in a step of several hosts.
struct HostLoad {
  /// The leaves of the largest subtree that it computes; 0 if it computes none.
  std::int64_t most_leaves = 0;
  /// The host's own cores.
  std::int64_t cores = 1;
  /// The bytes of the messages and the sum that its HostSum keeps, without squares and scalars.
  double bytes = 0;
};

/// Data that the minibatches of a step produce besides their sum, for the other hosts.
struct HostTally {
  /// The size of the tally, the same for all hosts and steps.
  std::size_t bytes = 0;
  /// write() writes this host's tally; add() then receives that of each other host.
  std::function<void(std::span<std::byte> tally)> write{};
  std::function<void(std::span<const std::byte> tally)> add{};
};

/// Returns the load of a step whose leaves have that many values. Throws Error as HostSum does.
[[nodiscard]] HostLoad load_of_host(const Hosts& hosts, const StepSize& step, std::size_t values,
                                    std::size_t value_bytes);

/// Combines the sums of a step's subtrees, which the hosts have computed, into one sum on all of
/// them.
///
/// A reduce-scatter and an all-gather: each host receives its part of all subtrees' sums, adds them
/// in the order of the tree, and sends the result to all. With S bytes of values on h hosts a host
/// sends S (h - 1) / h for each of its subtrees, and the same amount once more.
///
/// A step is: begin_step(), scatter() for each root, finish_step(). The hosts learn about all
/// messages of a step when it begins. A subtree's sum is sent by scatter(), while the next one is
/// computed: the first subtrees of all hosts are one exchange, their second ones another, and so
/// on. The parts' sums are the last exchange; squares and the tally, if there are any, have another
/// one at the same time.
///
/// T is float or double.
template <class T>
class HostSum {
 public:
  /// `hosts` must outlive it. Values and norm blocks are those of a leaf (ReducerSize). Each host's
  /// last message contains the tally. Throws Error if the hosts' ranks, counts or weights are
  /// invalid.
  HostSum(Hosts& hosts, std::size_t values, NormBlocks norms, HostTally tally = {});
  HostSum(const HostSum&) = delete;
  HostSum& operator=(const HostSum&) = delete;
  /// Abandons a step that is not finished (Hosts::abandon()).
  ~HostSum();

  /// Begins a step, and returns the roots of the subtrees that this host computes, from left to
  /// right; there may be none. begin_step(), scatter() and finish_step() throw whatever Hosts
  /// throw. Requires that the step before has been finished or has ended with an exception.
  [[nodiscard]] std::span<const TreeNode> begin_step(const StepSize& step);
  /// The number of this host's cores for the step.
  [[nodiscard]] std::int64_t cores() const { return cores_; }
  /// Sends the sum below root number `root`, with all its squares taken; roots are sent from left
  /// to right.
  void scatter(std::size_t root, const StepSum<T>& sum);
  /// Returns the sum of all hosts, valid until the next begin_step(). Throws Error if a host has
  /// computed other minibatches than its own.
  [[nodiscard]] StepSum<T> finish_step(const ExecutorSeconds& seconds);

 private:
  // A part of the values, and of the squares of their blocks.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t first_square = 0;
    std::size_t end_square = 0;

    [[nodiscard]] std::size_t values() const { return end - begin; }
    [[nodiscard]] std::size_t squares() const { return end_square - first_square; }
  };
  // A message about a subtree's sum contains its values, squares, and the scalars as numbers. The
  // values come first, padded to a whole number of doubles.
  struct Layout {
    std::size_t value_bytes = 0;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kScalars = 4;
  // Messages are aligned like memory from operator new.
  using Message = std::vector<std::byte>;
  // The contents of a message about a root, which begins at `at`.
  struct RootView {
    std::span<T> values;
    std::span<double> squares;
    std::span<double> scalars;

    RootView(std::byte* at, const Layout& layout, const Part& part)
        : values(static_cast<T*>(static_cast<void*>(at)), part.values()),
          squares(static_cast<double*>(static_cast<void*>(at + layout.value_bytes)),
                  part.squares()),
          scalars(squares.data() + part.squares(), kScalars) {}
  };

  // Divides the values among the hosts of this generation.
  void lay_out();
  [[nodiscard]] Part part_of(int host) const;
  [[nodiscard]] static Layout layout_of(const Part& part);
  [[nodiscard]] std::span<const TreeNode> roots_of(std::size_t host) const;
  // Calls the hosts; after an exception nothing is under way.
  template <class Call>
  void with_hosts(const Call& call);
  void receive_roots();
  void receive_parts();
  // Adds this host's part of all roots, and stores it in the result.
  void reduce();
  // Sends that part to all other hosts, and receives theirs into the result.
  void all_gather();
  [[nodiscard]] bool has_remainder() const { return norms_.size() > 0 || tally_.bytes > 0; }
  // The bytes of a part's squares and a host's tally.
  [[nodiscard]] std::size_t remainder_bytes(const Part& part) const {
    return part.squares() * sizeof(double) + tally_.bytes;
  }
  void pack_remainder();
  void unpack_remainders();
  [[nodiscard]] std::span<T> values_of(const Part& part) {
    return std::span(result_values_).subspan(part.begin, part.values());
  }
  [[nodiscard]] std::span<double> squares_of(const Part& part) {
    return std::span(result_squares_).subspan(part.first_square, part.squares());
  }

  Hosts& hosts_;
  std::size_t values_;
  NormBlocks norms_;
  HostTally tally_;
  // The generation of hosts that the members below belong to.
  std::int64_t generation_ = 0;
  std::vector<double> weights_;
  // The parts and messages, by host. A message has a piece for each root, from left to right.
  std::vector<Part> parts_;
  std::vector<Message> out_;
  std::vector<Message> in_;
  // The message to all other hosts, and those received from each.
  Message remainder_;
  std::vector<Message> remainders_;

  // The following members belong to the current step.
  std::int64_t cores_ = 1;
  SummationTree tree_{1};
  // The roots of all hosts, from left to right; those of host h begin at first_root_[h].
  std::vector<TreeNode> roots_;
  std::vector<std::size_t> first_root_;
  // The largest number of roots on a host, which is the number of exchanges.
  std::size_t most_roots_ = 0;
  // True while an exchange is under way.
  bool under_way_ = false;
  std::vector<T> result_values_;
  std::vector<double> result_squares_;
  PartialSum<T> result_;
};

extern template class HostSum<float>;
extern template class HostSum<double>;

/// A FaultyExecutor that computes this host's part of a step and obtains the sum of all hosts.
///
/// The subtrees of a host are separate steps, one after the other, each on all of its cores. So a
/// reducer does not need to know about hosts.
///
/// T is float or double.
template <class T>
class HostExecutor {
 public:
  using Substep = typename FaultyExecutor<T>::Substep;
  using OnFault = typename FaultyExecutor<T>::OnFault;
  /// Called at the end of an exchange with the other hosts.
  using OnExchange = std::function<void(std::chrono::steady_clock::time_point begin)>;

  /// `executor` and `hosts` must outlive it; null `hosts` means this process alone. The size is
  /// that of the executor's reducer. Throws whatever HostSum's constructor throws.
  HostExecutor(FaultyExecutor<T>& executor, Hosts* hosts, const ReducerSize& size,
               HostTally tally = {}, OnExchange on_exchange = {});

  /// Computes the step as FaultyExecutor::run() does, on all hosts together. With several hosts,
  /// cores must not die.
  [[nodiscard]] StepSum<T> run(StepPlan& step, Assignment assignment, const Substep& substep,
                               const OnFault& on_fault, std::int64_t at_once = 1);

 private:
  // Returns whether the hosts compute the step together; false for steps that the others have
  // already done.
  [[nodiscard]] bool is_for_all(const StepPlan& step) const;

  FaultyExecutor<T>& executor_;
  Hosts* hosts_;
  OnExchange on_exchange_;
  // Empty if there is only one host.
  std::optional<HostSum<T>> host_sum_;
};

extern template class HostExecutor<float>;
extern template class HostExecutor<double>;

}  // namespace rubato
