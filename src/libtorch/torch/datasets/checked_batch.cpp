#include "checked_batch.hpp"

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

Batch checked_batch(Batch batch, std::int64_t samples) {
  if (batch.inputs.empty()) throw Error("the data set gave a batch without inputs");
  for (const Tensors* tensors : {&batch.inputs, &batch.targets}) {
    for (const at::Tensor& tensor : *tensors) {
      const bool rows = tensor.defined() && tensor.dim() > 0;
      if (!rows || tensor.size(0) != samples) {
        throw Error(fmt::format("the data set gave {} rows of {} for {} samples",
                                rows ? tensor.size(0) : 0,
                                tensors == &batch.inputs ? "inputs" : "targets", samples));
      }
      if (!tensor.device().is_cpu()) {
        throw Error(
            fmt::format("the data set gave a tensor on {}; accepted: cpu", tensor.device().str()));
      }
    }
  }
  return batch;
}

}  // namespace rubato
