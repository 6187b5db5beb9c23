#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

struct Strategy;  // base/spec.hpp

/// A participant of an all-reduce, 0 <= rank < ranks.
using Rank = std::int32_t;

/// The effect of a transfer at its destination: replace the elements, or add to them.
enum class TransferKind { copy, add };

/// A transfer of the elements [begin, end) from one rank to another.
struct Transfer {
  Rank from = 0;
  Rank to = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  TransferKind kind = TransferKind::add;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Simultaneous transfers: all of them read the values from before the phase.
using TransferPhase = std::vector<Transfer>;

/// An all-reduce algorithm as data: executed phase by phase on one array of `length` elements at
/// each rank, it leaves the sum of all arrays at every rank. No transfer is empty.
struct Schedule {
  Rank ranks = 1;
  std::int64_t length = 0;
  std::vector<TransferPhase> phases;
};

/// The algorithms, for n ranks with arrays of S bytes; docs/algorithms.md has their numbers.
///
///   sequential          all to rank 0, one after the other, and out again
///   ring                reduce-scatter and all-gather around a ring, n - 1 phases of S / n bytes
///                       each (Patarasuk and Yuan 2009)
///   recursive-doubling  whole arrays exchanged with the rank at distance 1, 2, 4, ...
///   halving-doubling    reduce-scatter by exchanging halves at distance n/2, n/4, ..., all-gather
///                       backwards (Rabenseifner; Thakur, Rabenseifner and Gropp 2005)
///   binary-tree         up a binary tree, and down again
///   double-binary-tree  half of the array up and down each of two binary trees, in which the inner
///                       ranks of one are leaves of the other (Sanders, Speck and Traeff 2009)
///   two-level           one of the others within hosts, one between them; by default rings and
///                       recursive doubling, the hosts and their cores as near to a square as n
///                       allows
///
/// If n is not a power of two, the two that exchange first fold the ranks beyond the largest power
/// of two into others, and send them the result in the end.
[[nodiscard]] std::span<const std::string_view> algorithm_names();
/// The same algorithms with their arguments.
[[nodiscard]] std::vector<Strategy> all_reduce_algorithms();

/// The schedule of an algorithm for any number of ranks, 1 to 2^20, and any length, 0 included.
///
/// `algorithm` is a name; two-level also takes arguments (Spec), any or all of
/// "two-level:hosts=2,inner=ring,outer=recursive-doubling". If the ranks are not a multiple of the
/// hosts, those beyond the largest multiple are folded into others first and receive the result in
/// the end; if there are fewer ranks than hosts, each is a host. Throws Error for an unknown name
/// or argument, with the nearest known one.
[[nodiscard]] Schedule make_all_reduce(std::string_view algorithm, Rank ranks, std::int64_t length);

/// Throws Error for an algorithm that make_all_reduce() does not accept.
void require_algorithm(std::string_view algorithm);

/// Combines any two of the algorithms except two-level on two levels; rank h x cores_per_host + c
/// is core c of host h. The cores of each host reduce by `inner`; counterparts on all hosts
/// all-reduce their results by `outer`; then the cores of each host exchange the results as `inner`
/// does.
[[nodiscard]] Schedule make_two_level_schedule(std::string_view inner, std::string_view outer,
                                               Rank hosts, Rank cores_per_host,
                                               std::int64_t length);

/// Proves symbolically that a schedule is an all-reduce: every rank ends with every rank's
/// contribution exactly once in every element, no phase writes an element of a rank twice, and all
/// transfers are within bounds. Returns the error and its place; empty if there is none.
[[nodiscard]] std::string find_fault(const Schedule& schedule);

/// A full-duplex network of hosts: a rank sends one message and receives one at a time.
struct Network {
  struct Link {
    /// Seconds for a message, however short.
    double latency = 0;
    /// Seconds for each byte.
    double per_byte = 0;
  };
  Link within_host{};
  Link between_hosts{};
  /// Ranks of a host; all ranks are on one host if there are not more.
  Rank ranks_per_host = 1 << 30;
  /// Seconds to add a received byte to the local array.
  double add_per_byte = 0;
};

/// The cost of a schedule.
struct ScheduleCost {
  std::int64_t phases = 0;
  /// Messages and bytes of all ranks.
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  /// Bytes sent by the busiest rank.
  std::int64_t most_bytes_of_a_rank = 0;
  /// The largest number of consecutive additions that an element needs: the depth of its sum.
  std::int64_t depth = 0;
  /// The time of all phases, each as long as its busiest rank sends or receives.
  double seconds = 0;
};

/// The cost of `schedule` for elements of `element_bytes` bytes.
[[nodiscard]] ScheduleCost cost_of(const Schedule& schedule, std::int64_t element_bytes,
                                   const Network& network = {});

}  // namespace rubato

namespace rubato::algorithms {

/// The first half of an all-reduce. In the end a rank has the full sum of all elements that it has
/// not sent away.
///
/// If `mirrored`, the second half is the first one backwards, with copies instead of additions. If
/// not, every rank has the whole sum already.
struct Reduction {
  std::vector<TransferPhase> phases;
  bool mirrored = true;
};

[[nodiscard]] Reduction sequential(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction ring(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction recursive_doubling(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction halving_doubling(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction binary_tree(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction double_binary_tree(Rank ranks, std::int64_t length);

/// Adds a transfer to a phase unless it is empty.
void put(TransferPhase& phase, const Transfer& transfer);

/// The transfers of a phase in the opposite direction, as copies.
[[nodiscard]] TransferPhase mirror_of(const TransferPhase& phase);

/// Phases that reduce the elements [begin, end) of all ranks up a tree. parent[r] is r's parent, -1
/// at the root. A rank receives from at most one child in a phase.
[[nodiscard]] std::vector<TransferPhase> up_a_tree(const std::vector<Rank>& parent,
                                                   std::int64_t begin, std::int64_t end);

}  // namespace rubato::algorithms
