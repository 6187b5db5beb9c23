#include "lookahead.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

template <class T>
Lookahead<T>::Lookahead(std::unique_ptr<FlatOptimizer<T>> fast, const LookaheadOptions& options)
    : fast_(std::move(fast)), options_(options) {
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
  if (++updates_ % options_.k == 0) meet(update.parameters, workers);
}

template <class T>
void Lookahead<T>::meet(std::span<T> parameters, Workers& workers) {
  const auto alpha = static_cast<T>(options_.alpha);
  workers.for_each_range(parameters.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      slow_[i] += alpha * (parameters[i] - slow_[i]);
      parameters[i] = slow_[i];
    }
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
