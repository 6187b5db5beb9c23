#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/workload.hpp>

#include "libtorch_workload.hpp"

namespace rubato {

std::shared_ptr<const Workload> own_workload(OwnWorkload own, const TorchOptions& options) {
  if (!own.model) throw Error("a workload without a model; accepted: a ModelFactory");
  if (!own.loss) throw Error("a workload without a loss; accepted: one such as nll_loss()");
  if (!own.train) throw Error("a workload without training data; accepted: a Dataset");
  if (own.description.empty()) {
    own.description = fmt::format("own model: {} training and {} test samples", own.train->size(),
                                  own.test ? own.test->size() : 0);
  }
  return libtorch_workload({.description = std::move(own.description),
                            .model = std::move(own.model),
                            .loss = std::move(own.loss),
                            .test_loss = std::move(own.test_loss),
                            .train = std::move(own.train),
                            .test = std::move(own.test),
                            .options = options});
}

}  // namespace rubato
