#include "lookahead.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "loop/optim/methods/ranges.hpp"

namespace rubato {

template <class T>
Lookahead<T>::Lookahead(std::unique_ptr<FlatOptimizer<T>> fast, const LookaheadOptions& options,
                        ParameterLayout layout)
    : fast_(std::move(fast)), options_(options), layout_(std::move(layout)) {
  if (options.k < 1) throw Error(fmt::format("Lookahead's k {}: at least 1 is needed", options.k));
  if (!(options.alpha > 0 && options.alpha <= 1)) {
    throw Error(fmt::format("Lookahead's alpha {}: accepted are values above 0 and up to 1",
                            options.alpha));
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
  if (++updates_ % options_.k == 0) meet(update, workers);
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
  state.list("lookahead.slow", slow_);
  state.count("lookahead.updates", updates_);
}

template class Lookahead<float>;
template class Lookahead<double>;

}  // namespace rubato
