// There are three kinds of contestants: a reducer, of training or a baseline, that is followed by
// the update (ReducerContestant); sum and update in one pass over all buffers by the kernel of
// "sharded" (FusedSharded); and the same pass as a loop that is written by hand for each number of
// cores (HandWrittenLoop). Cores are tasks of the workers, and a core whose buffer has not arrived
// keeps its thread busy (wait_until()), as it would while it computes. The bytes of memory and of
// traffic are computed from the algorithm and not measured.

#include "contestants.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/numbers/sums.hpp>

#include "base/core/seconds.hpp"
#include "base/machine/instruction_set.hpp"
#include "loop/runtime/schedule_executor.hpp"
#include "numbers/collective/schedule.hpp"
#include "numbers/collective/tree_sum.hpp"

namespace rubato::lab {

namespace {

constexpr std::string_view kLoop = "loop";
constexpr std::int64_t kMostLoopCores = 8;

SgdCoefficients<float> coefficients(std::int64_t cores) {
  return {.gradient_factor = 1.0F / static_cast<float>(cores),
          .learning_rate = kLearningRate,
          .momentum = kMomentum};
}

void fill(Workers& workers, std::span<float> buffer, std::int64_t core) {
  workers.for_each_range(buffer.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) buffer[k] = payload(core, k);
  });
}

// Keeps the thread busy, as an emulated core that computes until then.
void wait_until(const Stopwatch& start, double seconds) {
  while (start.seconds() < seconds) {
  }
}

// The parameters that a fused task updates, and their velocity.
struct Model {
  explicit Model(const ReduceTask& task)
      : parameters(task.fused ? task.size : 0), velocity(parameters.size()) {}

  void reset() {
    std::fill(parameters.begin(), parameters.end(), kParameter);
    std::fill(velocity.begin(), velocity.end(), kVelocity);
  }

  std::vector<float> parameters;
  std::vector<float> velocity;
};

double bytes_of(const ReduceTask& task) {
  return static_cast<double>(task.size) * sizeof(float);
}

std::optional<Schedule> schedule_of(std::string_view reducer, const ReduceTask& task) {
  const auto algorithms = algorithm_names();
  const std::string_view name = reducer.substr(0, reducer.find(':'));
  if (std::find(algorithms.begin(), algorithms.end(), name) == algorithms.end()) return {};
  return make_all_reduce(reducer, static_cast<Rank>(task.cores),
                         static_cast<std::int64_t>(task.size));
}

// Adding one buffer to another reads two and writes one, copying reads one and writes one; the one
// pass of "sharded" reads all and writes one.
double bytes_to_sum(std::string_view reducer, const ReduceTask& task) {
  const double buffer = bytes_of(task);
  const auto cores = static_cast<double>(task.cores);
  if (reducer == "sharded") return (cores + 1) * buffer;
  const auto schedule = schedule_of(reducer, task);
  if (!schedule) return 3 * (cores - 1) * buffer;
  double bytes = 0;
  for (const TransferPhase& phase : schedule->phases) {
    for (const Transfer& transfer : phase) {
      bytes += (transfer.kind == TransferKind::add ? 3.0 : 2.0) *
               static_cast<double>(transfer.size()) * sizeof(float);
    }
  }
  return bytes;
}

std::unique_ptr<Reducer<float>> make_contesting_reducer(std::string_view name,
                                                        const ReducerSize& size, Workers& workers) {
  auto baseline = make_baseline(name, size, workers);
  return baseline ? std::move(baseline) : make_reducer<float>(name, size, workers);
}

// A reducer that is followed by the update.
class ReducerContestant final : public Contestant {
 public:
  ReducerContestant(std::string_view name, const ReduceTask& task, Workers& workers)
      : task_(task),
        workers_(workers),
        reducer_(make_contesting_reducer(name, {.values = task.size, .max_leaves = task.cores},
                                         workers)),
        model_(task) {}

  void prepare() override {
    reducer_->end_step();
    reducer_->begin_step(task_.cores, task_.cores);
    leaves_.clear();
    for (std::int64_t core = 0; core < task_.cores; ++core) {
      leaves_.push_back(reducer_->lease());
      fill(workers_, leaves_.back()->values, core);
    }
    model_.reset();
  }

  void run(const Arrivals& arrivals) override {
    const Stopwatch start;
    workers_.for_each(task_.cores, [&](std::int64_t core, int) {
      reducer_->reduce_core(core, {core, 1, 1}, [&](std::int64_t leaf) {
        wait_until(start, arrivals[static_cast<std::size_t>(core)]);
        return leaves_[static_cast<std::size_t>(leaf)];
      });
    });
    sum_ = reducer_->finish_step()->values;
    if (!task_.fused) return;
    workers_.for_each_range(task_.size, [&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin;
      sgd_step(std::span(model_.parameters).subspan(begin, n),
               std::span(model_.velocity).subspan(begin, n),
               std::span<const float>(sum_).subspan(begin, n), coefficients(task_.cores));
    });
  }

  [[nodiscard]] std::span<const float> result() const override {
    return task_.fused ? std::span<const float>(model_.parameters) : sum_;
  }

 private:
  ReduceTask task_;
  Workers& workers_;
  std::unique_ptr<Reducer<float>> reducer_;
  std::vector<PartialSum<float>*> leaves_;
  Model model_;
  std::span<float> sum_;
};

// Sum and update in one pass over all buffers; each thread has a part of the values.
class OnePass : public Contestant {
 public:
  OnePass(const ReduceTask& task, Workers& workers) : task_(task), workers_(workers), model_(task) {
    for (std::int64_t core = 0; core < task.cores; ++core) {
      buffers_.emplace_back(task.size);
      pointers_.push_back(buffers_.back().data());
    }
  }

  void prepare() override {
    for (std::int64_t core = 0; core < task_.cores; ++core) {
      fill(workers_, buffers_[static_cast<std::size_t>(core)], core);
    }
    model_.reset();
  }

  void run(const Arrivals& arrivals) override {
    const Stopwatch start;
    wait_until(start, *std::max_element(arrivals.begin(), arrivals.end()));
    workers_.for_each_range(task_.size, [&](std::size_t begin, std::size_t end) {
      pass(pointers_, begin, std::span(model_.parameters).subspan(begin, end - begin),
           std::span(model_.velocity).subspan(begin, end - begin), coefficients(task_.cores));
    });
  }

  [[nodiscard]] std::span<const float> result() const override { return model_.parameters; }

 protected:
  virtual void pass(std::span<const float* const> leaves, std::size_t begin,
                    std::span<float> parameters, std::span<float> velocity,
                    const SgdCoefficients<float>& c) const = 0;

 private:
  ReduceTask task_;
  Workers& workers_;
  std::vector<std::vector<float>> buffers_;
  std::vector<const float*> pointers_;
  Model model_;
};

class FusedSharded final : public OnePass {
  using OnePass::OnePass;
  void pass(std::span<const float* const> leaves, std::size_t begin, std::span<float> parameters,
            std::span<float> velocity, const SgdCoefficients<float>& c) const override {
    const SgdRange<float> all{.end = begin + parameters.size(), .coefficients = c};
    tree_sum_sgd(leaves, begin, parameters, velocity, std::span(&all, 1));
  }
};

// The loop that one would write for exactly this number of cores and this update.
template <std::size_t Cores>
[[gnu::always_inline]] inline void loop(const float* const* leaves, std::size_t begin,
                                        float* __restrict parameters, float* __restrict velocity,
                                        std::size_t n, float factor) {
  std::array<const float*, Cores> at{};
  for (std::size_t i = 0; i < Cores; ++i) at[i] = leaves[i] + begin;
  for (std::size_t k = 0; k < n; ++k) {
    float sum = at[0][k];
    for (std::size_t i = 1; i < Cores; ++i) sum += at[i][k];
    const float v = kMomentum * velocity[k] + factor * sum;
    velocity[k] = v;
    parameters[k] -= kLearningRate * v;
  }
}

[[gnu::always_inline]] inline void loop_of(std::size_t cores, const float* const* leaves,
                                           std::size_t begin, float* parameters, float* velocity,
                                           std::size_t n, float factor) {
  switch (cores) {
    case 1:
      return loop<1>(leaves, begin, parameters, velocity, n, factor);
    case 2:
      return loop<2>(leaves, begin, parameters, velocity, n, factor);
    case 3:
      return loop<3>(leaves, begin, parameters, velocity, n, factor);
    case 4:
      return loop<4>(leaves, begin, parameters, velocity, n, factor);
    case 5:
      return loop<5>(leaves, begin, parameters, velocity, n, factor);
    case 6:
      return loop<6>(leaves, begin, parameters, velocity, n, factor);
    case 7:
      return loop<7>(leaves, begin, parameters, velocity, n, factor);
    default:
      return loop<8>(leaves, begin, parameters, velocity, n, factor);
  }
}

class HandWrittenLoop final : public OnePass {
  using OnePass::OnePass;
  void pass(std::span<const float* const> leaves, std::size_t begin, std::span<float> parameters,
            std::span<float> velocity, const SgdCoefficients<float>& c) const override {
    with_vectors([&]() __attribute__((always_inline)) {
      loop_of(leaves.size(), leaves.data(), begin, parameters.data(), velocity.data(),
              parameters.size(), c.gradient_factor);
    });
  }
};

// Whether sum and update are one pass over all buffers.
bool is_one_pass(std::string_view strategy, const ReduceTask& task) {
  return strategy == kLoop || (strategy == "sharded" && task.fused);
}

}  // namespace

std::vector<std::string_view> strategy_names(bool fused) {
  const auto reducers = reducer_names();
  std::vector<std::string_view> names(reducers.begin(), reducers.end());
  names.insert(names.end(), baseline_names().begin(), baseline_names().end());
  if (fused) names.push_back(kLoop);
  return names;
}

void require_strategy(std::string_view strategy, const ReduceTask& task) {
  const auto names = strategy_names(task.fused);
  const std::string_view name = strategy.substr(0, strategy.find(':'));
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw Error(unknown_name_message("strategy", name, names));
  }
  if (strategy == kLoop) {
    if (task.cores > kMostLoopCores) {
      throw Error("strategy loop: written by hand for at most 8 cores");
    }
    return;
  }
  if (std::ranges::find(baseline_names(), strategy) == baseline_names().end()) {
    require_reducer(strategy);
  }
}

double memory_of(std::string_view strategy, const ReduceTask& task) {
  const double model = task.fused ? 2 * bytes_of(task) : 0;
  const bool has_sum = strategy == "mutex" || strategy == "atomic";
  const auto buffers = static_cast<double>(task.cores + (has_sum ? 1 : 0));
  const auto schedule = schedule_of(strategy, task);
  const double staging =
      schedule ? static_cast<double>(ScheduleExecutor<float>::staging_of(*schedule)) : 0;
  return buffers * bytes_of(task) + staging * sizeof(float) + model;
}

double bytes_moved_by(std::string_view strategy, const ReduceTask& task) {
  if (is_one_pass(strategy, task)) return static_cast<double>(task.cores + 4) * bytes_of(task);
  return bytes_to_sum(strategy, task) + (task.fused ? 5.0 : 0.0) * bytes_of(task);
}

std::unique_ptr<Contestant> make_contestant(std::string_view strategy, const ReduceTask& task,
                                            Workers& workers) {
  require_strategy(strategy, task);
  if (strategy == kLoop) return std::make_unique<HandWrittenLoop>(task, workers);
  if (is_one_pass(strategy, task)) return std::make_unique<FusedSharded>(task, workers);
  return std::make_unique<ReducerContestant>(strategy, task, workers);
}

}  // namespace rubato::lab
