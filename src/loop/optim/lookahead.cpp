// Lookahead wraps any optimizer. Its slow weights are empty until the first update, which sets them
// before or after itself.

#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>

#include "base/core/throw_error.hpp"
#include "make_optimizer.hpp"
#include "ranges.hpp"

namespace rubato {

template <class T>
Lookahead<T>::Lookahead(std::unique_ptr<FlatOptimizer<T>> fast, const LookaheadOptions& options,
                        ParameterLayout layout, bool in_samples)
    : fast_(std::move(fast)),
      options_(options),
      layout_(std::move(layout)),
      in_samples_(in_samples) {
  if (options.k < 1) throw_error("Lookahead's k {}: at least 1 is needed", options.k);
  if (!(options.alpha > 0 && options.alpha <= 1)) {
    throw_error("Lookahead's alpha {}: accepted are values above 0 and up to 1", options.alpha);
  }
}

template <class T>
void Lookahead<T>::step(const Update<T>& update, Workers& workers) {
  const bool first = slow_.empty();
  if (!first && slow_.size() != update.parameters.size()) {
    throw Error("Lookahead's slow weights are those of another model");
  }
  if (first && options_.start == LookaheadStart::before_first_update) {
    slow_.assign(update.parameters.begin(), update.parameters.end());
  }
  fast_->step(update, workers);
  if (first && options_.start == LookaheadStart::after_first_update) {
    slow_.assign(update.parameters.begin(), update.parameters.end());
    return;
  }
  if (is_due(update)) meet(update, workers);
}

template <class T>
bool Lookahead<T>::is_due(const Update<T>& update) {
  ++updates_;
  if (!in_samples_) return updates_ % options_.k == 0;
  samples_ += update.batch_size;
  // Batches of many samples cannot make the division inexact, as a product could overflow.
  if (samples_ / update.reference_batch_size < options_.k) return false;
  samples_ = 0;
  return true;
}

template <class T>
void Lookahead<T>::meet(const Update<T>& update, Workers& workers) {
  const auto alpha = static_cast<T>(options_.alpha);
  const auto meet_in = [&](std::size_t first, std::size_t last) {
    workers.for_each_range(last - first, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        slow_[i] += alpha * (update.parameters[i] - slow_[i]);
        update.parameters[i] = slow_[i];
      }
    });
  };
  if (update.unreached.empty()) return meet_in(0, slow_.size());
  for_each_layer(layout_.layers(), update.unreached, [&](std::size_t layer, bool reached) {
    if (reached) meet_in(layer == 0 ? 0 : layout_.layer_ends[layer - 1], layout_.layer_ends[layer]);
  });
}

template <class T>
void Lookahead<T>::visit_state(StateVisitor& state) {
  fast_->visit_state(state);
  // In a fork that adds Lookahead, the slow weights begin with the next update.
  if (state.forks() && !state.has("lookahead.slow", true)) return;
  state.list("lookahead.slow", slow_);
  state.count("lookahead.updates", updates_);
  if (in_samples_ && state.has("lookahead.samples", true)) {
    state.count("lookahead.samples", samples_);
  }
}

template class Lookahead<float>;
template class Lookahead<double>;

}  // namespace rubato
