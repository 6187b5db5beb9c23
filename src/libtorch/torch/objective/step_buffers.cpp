// note() records by how much forward has changed each buffer of a replica, and apply() turns the
// sums of the changes into new shared buffers. Integers are summed modulo 2^64 for each evaluator
// by itself, so threads need no synchronisation and the order does not matter. A running average
// moves by the mean change times a factor that depends on its momentum or its counter
// (factor_of_average(), factor_of_cumulative_average()); all factors are computed before a counter
// changes. Buffers that take the value of the step's first minibatch are kept by the thread that
// computes it, and reach other hosts in the tally. BufferUse::local replaces all of this by a copy
// of the buffers that core 0 left.

#include "step_buffers.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <ATen/core/grad_mode.h>

#include "base/core/check.hpp"

namespace rubato {

namespace {

// Calls `function` with a value of the C++ type of an integer (or bool) tensor.
template <class Function>
void with_integer_type(at::ScalarType type, Function function) {
  switch (type) {
    case at::kBool:
      return function(bool{});
    case at::kByte:
      return function(std::uint8_t{});
    case at::kChar:
      return function(std::int8_t{});
    case at::kShort:
      return function(std::int16_t{});
    case at::kInt:
      return function(std::int32_t{});
    case at::kLong:
      return function(std::int64_t{});
    default:
      RUBATO_CHECK(false, "only integers are summed");
  }
}

// Addition modulo 2^64, as for all sums of integers here: they are the same in every order,
// overflow included.
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

void add_changes(const at::Tensor& before, const at::Tensor& after, std::int64_t* sums) {
  with_integer_type(before.scalar_type(), [&](auto zero) {
    using Integer = decltype(zero);
    const at::Tensor now = after.contiguous();
    const auto* from = before.data_ptr<Integer>();
    const auto* to = now.data_ptr<Integer>();
    for (std::int64_t i = 0; i < before.numel(); ++i) {
      sums[i] = wrapping_sum(
          sums[i], subtract(static_cast<std::int64_t>(to[i]), static_cast<std::int64_t>(from[i])));
    }
  });
}

void move_by(const at::Tensor& shared, const std::int64_t* sums) {
  with_integer_type(shared.scalar_type(), [&](auto zero) {
    using Integer = decltype(zero);
    auto* values = shared.data_ptr<Integer>();
    for (std::int64_t i = 0; i < shared.numel(); ++i) {
      if constexpr (std::is_same_v<Integer, bool>) {
        // All minibatches that toggle it do so in the same direction.
        values[i] = values[i] != (sums[i] != 0);
      } else {
        values[i] =
            static_cast<Integer>(wrapping_sum(static_cast<std::int64_t>(values[i]), sums[i]));
      }
    }
  });
}

}  // namespace

template <class T>
StepBuffers<T>::StepBuffers(const SharedState& state, BufferUse use)
    : state_(state),
      use_(use),
      size_(static_cast<std::size_t>(state.buffer_layout().size())),
      ends_(state.buffer_layout().ends()) {
  std::size_t elements = 0;
  for (const at::Tensor& counter : state.counters()) {
    counter_begins_.push_back(elements);
    elements += static_cast<std::size_t>(counter.numel());
    kept_counters_.push_back(counter.clone());
  }
  sums_.resize(elements);
  other_sums_.resize(elements);
  keeps_buffers_ = use == BufferUse::local ||
                   std::any_of(state.treatments().buffers.begin(), state.treatments().buffers.end(),
                               [](const BufferTreatment& treatment) {
                                 return treatment.combination == BufferCombination::first;
                               });
  if (keeps_buffers_) kept_buffers_ = state.flat_buffers().clone();
}

template <class T>
int StepBuffers<T>::add_evaluator() {
  evaluator_sums_.emplace_back().of_elements.resize(sums_.size());
  return static_cast<int>(evaluator_sums_.size()) - 1;
}

template <class T>
void StepBuffers<T>::begin() {
  for (Sums& sums : evaluator_sums_) std::fill(sums.of_elements.begin(), sums.of_elements.end(), 0);
  std::fill(other_sums_.begin(), other_sums_.end(), 0);
  has_first_ = false;
}

// Changes are summed, not values: the mean of equal values is not always that value, and a sum of
// masks may be infinite. So a buffer that no forward writes to keeps its bits, infinite ones
// included.
template <class T>
void StepBuffers<T>::note(const Replica& replica, const Minibatch& minibatch, int evaluator,
                          std::span<T> changes) {
  if (use_ == BufferUse::local) {
    if (minibatch.core == CoreRank{0}) keep(replica);
    return;
  }
  const bool first = minibatch.first_of_step;
  if (first) has_first_ = true;
  if (size_ > 0) {
    const T* before = state_.flat_buffers().template data_ptr<T>();
    const T* after = replica.flat_buffers().template data_ptr<T>();
    for (std::size_t i = 0; i < size_; ++i) {
      changes[i] = after[i] == before[i] ? T{0} : after[i] - before[i];
    }
  }
  std::int64_t* sums = evaluator_sums_[static_cast<std::size_t>(evaluator)].of_elements.data();
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < counter_begins_.size(); ++i) {
    const at::Tensor& after = replica.counters()[i].tensor;
    if (state_.treatments().counters[i].combination == BufferCombination::sum) {
      add_changes(state_.counters()[i], after, sums + counter_begins_[i]);
    } else if (first) {
      kept_counters_[i].copy_(after);
    }
  }
  if (first && keeps_buffers_) kept_buffers_.copy_(replica.flat_buffers());
}

template <class T>
std::vector<std::int64_t> StepBuffers<T>::all_sums() const {
  std::vector<std::int64_t> all = other_sums_;
  for (const Sums& of_evaluator : evaluator_sums_) {
    std::transform(all.begin(), all.end(), of_evaluator.of_elements.begin(), all.begin(),
                   wrapping_sum);
  }
  return all;
}

template <class T>
template <class Visit>
void StepBuffers<T>::visit_first(const Visit& visit) const {
  const auto bytes_of = [](const at::Tensor& tensor) {
    return std::span(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  };
  if (keeps_buffers_) visit(bytes_of(kept_buffers_));
  for (std::size_t i = 0; i < kept_counters_.size(); ++i) {
    if (state_.treatments().counters[i].combination == BufferCombination::sum) continue;
    visit(bytes_of(kept_counters_[i]));
  }
}

// A tally consists of the sums, a flag for whether the first minibatch is included, and the buffers
// that it left.
template <class T>
std::size_t StepBuffers<T>::tally_bytes() const {
  std::size_t of_first = 0;
  visit_first([&](std::span<std::byte> bytes) { of_first += bytes.size(); });
  const std::size_t flag = of_first > 0 ? 1 : 0;
  return sums_.size() * sizeof(std::int64_t) + flag + of_first;
}

template <class T>
void StepBuffers<T>::put_tally(std::span<std::byte> tally) const {
  const std::vector<std::int64_t> sums = all_sums();
  auto at = std::ranges::copy(std::as_bytes(std::span(sums)), tally.begin()).out;
  if (at == tally.end()) return;
  *at++ = static_cast<std::byte>(has_first_);
  visit_first([&](std::span<std::byte> bytes) { at = std::ranges::copy(bytes, at).out; });
}

template <class T>
void StepBuffers<T>::add_tally(std::span<const std::byte> tally) {
  std::vector<std::int64_t> sums(other_sums_.size());
  const std::span<std::byte> bytes_of_sums = std::as_writable_bytes(std::span(sums));
  std::ranges::copy(tally.first(bytes_of_sums.size()), bytes_of_sums.begin());
  std::transform(sums.begin(), sums.end(), other_sums_.begin(), other_sums_.begin(), wrapping_sum);
  tally = tally.subspan(bytes_of_sums.size());
  if (tally.empty() || tally.front() == std::byte{0}) return;
  tally = tally.subspan(1);
  visit_first([&](std::span<std::byte> bytes) {
    std::ranges::copy(tally.first(bytes.size()), bytes.begin());
    tally = tally.subspan(bytes.size());
  });
}

template <class T>
void StepBuffers<T>::keep(const Replica& replica) {
  const at::NoGradGuard no_grad;
  kept_buffers_.copy_(replica.flat_buffers());
  for (std::size_t i = 0; i < kept_counters_.size(); ++i) {
    kept_counters_[i].copy_(replica.counters()[i].tensor);
  }
}

template <class T>
void StepBuffers<T>::take_kept() {
  const at::NoGradGuard no_grad;
  state_.flat_buffers().copy_(kept_buffers_);
  for (std::size_t i = 0; i < kept_counters_.size(); ++i) {
    state_.counters()[i].copy_(kept_counters_[i]);
  }
}

// The value of a counter before the step, and the number by which the minibatches raised it.
template <class T>
typename StepBuffers<T>::Count StepBuffers<T>::count_of(std::size_t counter,
                                                        std::span<const T> sums) const {
  const std::size_t integers = state_.counters().size();
  if (counter < integers) {
    return {.before = state_.counters()[counter].template item<std::int64_t>(),
            .raised = sums_[counter_begins_[counter]]};
  }
  const std::size_t buffer = counter - integers;
  const std::size_t element = buffer == 0 ? 0 : ends_[buffer - 1];
  return {.before = std::llround(state_.flat_buffers().template data_ptr<T>()[element]),
          .raised = std::llround(sums[element])};
}

template <class T>
typename StepBuffers<T>::Scaling StepBuffers<T>::scaling_of(const BufferTreatment& treatment,
                                                            std::int64_t minibatches,
                                                            std::span<const T> sums) const {
  if (treatment.combination == BufferCombination::sum) return {};
  if (treatment.combination != BufferCombination::average) return {.divisor = minibatches};
  const Count count = treatment.counter ? count_of(*treatment.counter, sums) : Count{};
  // Number of minibatches that have updated the average, and updates by each of them.
  std::int64_t updating = minibatches;
  std::int64_t updates = 1;
  if (count.raised > 0 && count.raised < minibatches) updating = count.raised;
  if (count.raised > minibatches) updates = count.raised / minibatches;
  return {.divisor = updating,
          .factor = treatment.momentum
                        ? factor_of_average(*treatment.momentum, updating, updates)
                        : factor_of_cumulative_average(count.before, updating, updates)};
}

template <class T>
void StepBuffers<T>::apply(std::span<const T> sums, std::int64_t minibatches) {
  if (use_ == BufferUse::local) return take_kept();
  sums_ = all_sums();
  // All scalings are computed before a counter changes.
  scalings_.clear();
  for (const BufferTreatment& treatment : state_.treatments().buffers) {
    scalings_.push_back(scaling_of(treatment, minibatches, sums));
  }
  T* shared = size_ > 0 ? state_.flat_buffers().template data_ptr<T>() : nullptr;
  std::size_t i = 0;
  for (std::size_t buffer = 0; buffer < ends_.size(); ++buffer) {
    if (state_.treatments().buffers[buffer].combination == BufferCombination::first) {
      const T* first = kept_buffers_.template data_ptr<T>();
      for (; i < ends_[buffer]; ++i) shared[i] = first[i];
      continue;
    }
    const auto divisor = static_cast<T>(scalings_[buffer].divisor);
    const auto factor = static_cast<T>(scalings_[buffer].factor);
    for (; i < ends_[buffer]; ++i) {
      if (sums[i] != T{0}) shared[i] += sums[i] / divisor * factor;
    }
  }
  apply_to_counters();
}

template <class T>
void StepBuffers<T>::apply_to_counters() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < counter_begins_.size(); ++i) {
    if (state_.treatments().counters[i].combination == BufferCombination::sum) {
      move_by(state_.counters()[i], sums_.data() + counter_begins_[i]);
    } else {
      state_.counters()[i].copy_(kept_counters_[i]);
    }
  }
}

template class StepBuffers<float>;
template class StepBuffers<double>;

}  // namespace rubato
