#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/sums.hpp>

namespace rubato {

/// Buffers for partial sums, made when first needed and kept until the pool is destroyed.
///
/// Thread safety: acquire() and release() may be called by any number of threads at once; both are
/// lock-free, and neither allocates once the pool has as many buffers as were ever leased at one
/// time. Everything that a thread did to a buffer before release() happens before the return of the
/// acquire() that hands it out again. reclaim_all() must not run concurrently with anything else.
///
/// T is float or double.
template <class T>
class BufferPool {
 public:
  /// Makes at most `max_buffers` buffers of `values` values and `squares` squares each.
  BufferPool(std::size_t values, std::size_t max_buffers, std::size_t squares = 0);

  /// Leases a buffer to the caller alone, with all values but the first `overwritten` and all
  /// scalars zero and no squares taken. Aborts if all max_buffers are leased.
  [[nodiscard]] PartialSum<T>* acquire(std::size_t overwritten = 0);
  void release(PartialSum<T>* buffer);
  /// Takes back every buffer, whoever holds it; used after a step that was given up.
  void reclaim_all();

  /// Returns the number of the buffer: dense, from 0, in the order in which they were made.
  [[nodiscard]] SumId id_of(const PartialSum<T>* buffer) const;
  [[nodiscard]] PartialSum<T>* operator[](SumId id) {
    return &slots_[static_cast<std::size_t>(id)].sum;
  }
  [[nodiscard]] std::size_t max_buffers() const { return slots_.size(); }
  /// The largest number of buffers leased at one time so far.
  [[nodiscard]] std::int64_t high_water() const {
    return high_water_.load(std::memory_order_relaxed);
  }

 private:
  struct FreeMemory {
    void operator()(T* memory) const { ::operator delete[](memory, kAlignment); }
  };
  struct Slot {
    PartialSum<T> sum;
    std::unique_ptr<T[], FreeMemory> memory;
    std::unique_ptr<double[]> squares;
  };

  // Two cache lines: vector kernels need no peeling, and neighbours share nothing.
  static constexpr std::align_val_t kAlignment{128};

  // Returns a free buffer, or a new one.
  Slot& take();
  void count_lease();

  std::size_t values_;
  std::size_t squares_;
  std::vector<Slot> slots_;
  IndexStack<> free_;
  alignas(128) std::atomic<std::uint32_t> made_{0};
  std::atomic<std::int64_t> leased_{0};
  std::atomic<std::int64_t> high_water_{0};
};

extern template class BufferPool<float>;
extern template class BufferPool<double>;

struct Strategy;  // base/spec.hpp

/// The sizes that a reducer is made for. The workers must outlive it.
struct ReducerSize {
  /// The number of values in a leaf.
  std::size_t values = 0;
  std::int64_t max_leaves = 1;
  /// The blocks of which the squared norms of the leaves are wanted (PartialSum::squares), if any.
  NormBlocks norms{};
  /// The number of values, from the first one on, that are written in every leaf whatever they were
  /// before (Objective::overwrites_gradients()).
  std::size_t overwritten = 0;
};

/// The leaves first, first + stride, ..., first + (count - 1) stride of a step: one core's share.
struct LeafShare {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;

  [[nodiscard]] constexpr std::int64_t operator[](std::int64_t i) const {
    return first + i * stride;
  }
};

/// The meeting of two cores, where their sums became one.
struct Meeting {
  using Moment = std::chrono::steady_clock::time_point;

  /// The core that came first, and when it left its sum there and moved on.
  CoreRank first{};
  Moment left{};
  /// The core that came second, and when it began to add.
  CoreRank second{};
  Moment taken{};
};

/// A strategy for summing the leaves of a step; OwnReducer accepts a user's own.
///
/// A step is: begin_step(); reduce_core() once for each busy core, by any number of threads at
/// once; finish_step(), after all of them; end_step(). None of these waits for another core. A
/// step that is given up, because reduce_core() threw, has no finish_step().
///
/// T is float or double.
template <class T>
class Reducer {
 public:
  virtual ~Reducer() = default;
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Begins a step of `leaves` leaves on `cores` busy cores; at least one of each, at most as many
  /// leaves as the reducer was made for.
  virtual void begin_step(std::int64_t leaves, std::int64_t cores) = 0;

  /// Leases a cleared buffer.
  [[nodiscard]] PartialSum<T>* lease() { return pool_.acquire(); }
  /// Leases a buffer for a leaf: cleared, except for what is overwritten (ReducerSize).
  [[nodiscard]] PartialSum<T>* lease_leaf() { return pool_.acquire(overwritten_); }

  /// Returns the buffer, leased from this reducer, that holds the leaf; called once for each leaf
  /// of a share, in ascending order.
  using NextLeaf = std::function<PartialSum<T>*(std::int64_t leaf)>;
  /// Sums the share of a core. An exception of `next` is passed on; the step is then given up.
  virtual void reduce_core(std::int64_t core, const LeafShare& share, const NextLeaf& next) = 0;

  /// Returns the sum of the step, with all its squares taken; the reducer owns the buffer, which is
  /// valid until end_step().
  [[nodiscard]] virtual PartialSum<T>* finish_step() = 0;

  /// Called by several threads at once.
  using OnMeeting = std::function<void(const Meeting& meeting)>;
  /// Calls `on_meeting`, from the next step on, for each meeting of two cores. A reducer whose
  /// cores do not meet never calls it.
  virtual void observe_meetings(OnMeeting on_meeting) { static_cast<void>(on_meeting); }

  /// Takes back all buffers, including those of an abandoned step.
  void end_step() { pool_.reclaim_all(); }

  [[nodiscard]] const BufferPool<T>& pool() const { return pool_; }

 protected:
  explicit Reducer(const ReducerSize& size) : Reducer(size, size.max_leaves) {}
  Reducer(const ReducerSize& size, std::int64_t max_buffers)
      : norms_(size.norms),
        overwritten_(size.overwritten),
        pool_(size.values, static_cast<std::size_t>(max_buffers), size.norms.squares()) {}

  [[nodiscard]] BufferPool<T>& buffers() { return pool_; }
  [[nodiscard]] const NormBlocks& norms() const { return norms_; }

  /// Adds `right` to `left`.
  void add(PartialSum<T>* left, PartialSum<T>* right) {
    left->add_range(*right, norms_, 0, left->values.size());
    left->scalars += right->scalars;
  }
  /// Adds `right` to `left` and releases `right`.
  PartialSum<T>* merge(PartialSum<T>* left, PartialSum<T>* right) {
    add(left, right);
    pool_.release(right);
    return left;
  }

 private:
  NormBlocks norms_;
  std::size_t overwritten_ = 0;
  BufferPool<T> pool_;
};

/// The names that make_reducer() accepts, except "auto":
///
///   tree          the combining tree: the core that comes second adds and climbs (CombiningTree)
///   chunked-tree  a combining tree for each chunk of the values, so that the threads share the
///                 work near the root
///   sharded       keeps all leaves, and sums them in one pass, each thread a part of the values
///   ring, ...     the all-reduce algorithms of algorithm_names(), between the cores' own sums;
///                 with arguments as make_all_reduce() takes them
[[nodiscard]] std::span<const std::string_view> reducer_names();
/// All that make_reducer() accepts, "auto" included, except all_reduce_algorithms().
[[nodiscard]] std::vector<Strategy> reducers();

/// Throws Error for a name that make_reducer() does not accept, suggesting the nearest.
void require_reducer(std::string_view reducer);

/// Returns whether the sum has the order of SummationTree, and so the same bits as that of every
/// other reproducible reducer, for every number of threads and cores and either assignment.
[[nodiscard]] bool is_reproducible(std::string_view reducer);
/// Throws Error if the reducer is not reproducible, or is unknown, naming those that would be
/// accepted.
void require_reproducible(std::string_view reducer);

/// Returns the reproducible reducer that "auto" selects for values of that many bytes: one that
/// suits the size, and that keeps all leaves only if they are few (docs/adr/0008).
[[nodiscard]] std::string_view auto_reducer(const ReducerSize& size, std::size_t value_bytes);

/// Returns how many buffers are in use at once in a step of max_leaves leaves on `cores` busy
/// cores: exactly with one thread (contiguous shares), and at least with more, since each thread
/// works on a leaf. It tells the memory that a training needs before it starts.
[[nodiscard]] std::int64_t buffers_of(std::string_view reducer, const ReducerSize& size,
                                      std::size_t value_bytes, std::int64_t cores, int threads);

/// Makes the reducer of that name, or the one for "auto". Throws Error as require_reducer() does.
template <class T>
[[nodiscard]] std::unique_ptr<Reducer<T>> make_reducer(std::string_view name,
                                                       const ReducerSize& size, Workers& workers);

extern template std::unique_ptr<Reducer<float>> make_reducer<float>(std::string_view,
                                                                    const ReducerSize&, Workers&);
extern template std::unique_ptr<Reducer<double>> make_reducer<double>(std::string_view,
                                                                      const ReducerSize&, Workers&);

}  // namespace rubato
