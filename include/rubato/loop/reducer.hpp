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

/// Buffers for partial sums, made when first needed and kept until the pool is gone.
///
/// Thread safety: acquire() and release() may be called by any number of threads at once; both are
/// lock-free, and neither allocates once as many buffers exist as were ever alive at one time.
/// Everything that a thread did to a buffer before release() happens before the return of the
/// acquire() that gives it out again. reclaim_all() must not run beside anything else.
///
/// T is float or double.
template <class T>
class BufferPool {
 public:
  /// At most `max_buffers` buffers of `values` values and `squares` squares each.
  BufferPool(std::size_t values, std::size_t max_buffers, std::size_t squares = 0);

  /// A buffer that is nobody else's, with all values and scalars zero and no squares taken. Aborts
  /// when all max_buffers are leased.
  [[nodiscard]] PartialSum<T>* acquire();
  void release(PartialSum<T>* buffer);
  /// Takes back every buffer, whoever has it: after a step that was given up.
  void reclaim_all();

  /// Dense numbers from 0, in the order in which the buffers were made.
  [[nodiscard]] SumId id_of(const PartialSum<T>* buffer) const;
  [[nodiscard]] PartialSum<T>* operator[](SumId id) {
    return &slots_[static_cast<std::size_t>(id)].sum;
  }
  [[nodiscard]] std::size_t max_buffers() const { return slots_.size(); }
  /// Buffers alive at one time at most so far.
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

  // A buffer that is free, or a new one.
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
  /// In a leaf.
  std::size_t values = 0;
  std::int64_t max_leaves = 1;
  /// Where the squared norms of the leaves are wanted, too: PartialSum::squares.
  NormBlocks norms{};
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

/// A place where the sums of two cores became one.
struct Meeting {
  using Moment = std::chrono::steady_clock::time_point;

  /// The core that came first, and when it left its sum there and did something else.
  CoreRank first{};
  Moment left{};
  /// The core that came second, and when it began to add.
  CoreRank second{};
  Moment taken{};
};

/// A strategy for summing the leaves of a step; OwnReducer takes one of the user's own.
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

  /// A step of `leaves` leaves on `cores` busy cores; at least one of each, at most as many leaves
  /// as the reducer was made for.
  virtual void begin_step(std::int64_t leaves, std::int64_t cores) = 0;

  /// A cleared buffer for a leaf.
  [[nodiscard]] PartialSum<T>* lease() { return pool_.acquire(); }

  /// Gives the buffer, leased from this reducer, that holds the leaf; called once for each leaf of
  /// a share, in ascending order.
  using NextLeaf = std::function<PartialSum<T>*(std::int64_t leaf)>;
  /// Sums up the share of a core. Whatever `next` throws is passed on; the step is then given up.
  virtual void reduce_core(std::int64_t core, const LeafShare& share, const NextLeaf& next) = 0;

  /// The sum of the step, with all its squares taken; the buffer is the reducer's until
  /// end_step().
  [[nodiscard]] virtual PartialSum<T>* finish_step() = 0;

  /// Called by several threads at once.
  using OnMeeting = std::function<void(const Meeting& meeting)>;
  /// From the next step on `on_meeting` hears of each meeting of two cores. A reducer whose cores
  /// do not meet has none to tell of.
  virtual void hear_meetings(OnMeeting on_meeting) { static_cast<void>(on_meeting); }

  /// Takes back all buffers, including those of an abandoned step.
  void end_step() { pool_.reclaim_all(); }

  [[nodiscard]] const BufferPool<T>& pool() const { return pool_; }

 protected:
  explicit Reducer(const ReducerSize& size) : Reducer(size, size.max_leaves) {}
  Reducer(const ReducerSize& size, std::int64_t max_buffers)
      : norms_(size.norms),
        pool_(size.values, static_cast<std::size_t>(max_buffers), size.norms.size()) {}

  [[nodiscard]] BufferPool<T>& buffers() { return pool_; }
  [[nodiscard]] const NormBlocks& norms() const { return norms_; }

  /// Adds `right` to `left`.
  void add(PartialSum<T>* left, PartialSum<T>* right) {
    left->add_range(*right, norms_, 0, left->values.size());
    left->scalars += right->scalars;
  }
  /// The same, and the right buffer is free.
  PartialSum<T>* merge(PartialSum<T>* left, PartialSum<T>* right) {
    add(left, right);
    pool_.release(right);
    return left;
  }

 private:
  NormBlocks norms_;
  BufferPool<T> pool_;
};

/// The names that make_reducer() takes, but "auto":
///
///   tree          the combining tree: who comes second adds and climbs (CombiningTree)
///   chunked-tree  a combining tree for each chunk of the values, so that the threads share the
///                 work near the root
///   sharded       keeps all leaves, and sums them in one pass, each thread a part of the values
///   ring, ...     the all-reduce algorithms of algorithm_names(), between the cores' own sums;
///                 with arguments as make_all_reduce() takes them
[[nodiscard]] std::span<const std::string_view> reducer_names();
/// All that make_reducer() takes, "auto" included, but for all_reduce_algorithms().
[[nodiscard]] std::vector<Strategy> reducers();

/// Throws Error for what make_reducer() does not take, with the nearest known name.
void require_reducer(std::string_view reducer);

/// Whether the sum has the order of SummationTree, and so the same bits as that of every other
/// reproducible reducer, for every number of threads and cores and either assignment.
[[nodiscard]] bool is_reproducible(std::string_view reducer);
/// Throws Error if it has not, or is unknown, naming those that would be accepted.
void require_reproducible(std::string_view reducer);

/// The reproducible reducer that "auto" chooses for values of that many bytes: one that suits the
/// size, and that keeps all leaves only if they are few (docs/adr/0008).
[[nodiscard]] std::string_view auto_reducer(const ReducerSize& size, std::size_t value_bytes);

/// Buffers in use at once in a step of max_leaves leaves on `cores` busy cores: exactly with one
/// thread (contiguous shares), at least with more, since each has a leaf in work. The memory that a
/// training needs before it is worth starting.
[[nodiscard]] std::int64_t buffers_of(std::string_view reducer, const ReducerSize& size,
                                      std::size_t value_bytes, std::int64_t cores, int threads);

/// The reducer of that name, or "auto". Throws Error as require_reducer() does.
template <class T>
[[nodiscard]] std::unique_ptr<Reducer<T>> make_reducer(std::string_view name,
                                                       const ReducerSize& size, Workers& workers);

extern template std::unique_ptr<Reducer<float>> make_reducer<float>(std::string_view,
                                                                    const ReducerSize&, Workers&);
extern template std::unique_ptr<Reducer<double>> make_reducer<double>(std::string_view,
                                                                      const ReducerSize&, Workers&);

}  // namespace rubato
