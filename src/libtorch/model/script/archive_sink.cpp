#include "archive_sink.hpp"

#include <ATen/Functions.h>

namespace rubato {

at::Tensor with_its_own_bytes(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach();
  const bool dense = values.layout() == at::kStrided && values.is_contiguous() &&
                     values.numel() > 0 && !values.is_quantized() && !values.is_conj() &&
                     !values.is_neg();
  if (!dense) return values.clone();
  return at::from_blob(values.data_ptr(), values.sizes(), values.options());
}

}  // namespace rubato
