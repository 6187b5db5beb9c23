#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>
#include <rubato/model/tensor_state.hpp>

namespace rubato {

namespace {

constexpr std::array<std::pair<at::ScalarType, ElementType>, 10> kTypes{
    {{at::kDouble, ElementType::f64},
     {at::kFloat, ElementType::f32},
     {at::kHalf, ElementType::f16},
     {at::kBFloat16, ElementType::bf16},
     {at::kLong, ElementType::i64},
     {at::kInt, ElementType::i32},
     {at::kShort, ElementType::i16},
     {at::kChar, ElementType::i8},
     {at::kByte, ElementType::u8},
     {at::kBool, ElementType::boolean}}};

ElementType type_of(std::string_view name, const at::Tensor& tensor) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& types) {
    return types.first == tensor.scalar_type();
  });
  if (found != kTypes.end()) return found->second;
  throw Error(fmt::format("'{}' is {}, which no checkpoint can hold; accepted: real types", name,
                          c10::toString(tensor.scalar_type())));
}

}  // namespace

void put_tensor(State& state, std::string_view name, const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().contiguous();
  state.put_array(name, {.type = type_of(name, values),
                         .shape = values.sizes().vec(),
                         .bytes = {static_cast<const char*>(values.data_ptr()), values.nbytes()}});
}

void read_tensor(const State& state, std::string_view name, const at::Tensor& tensor) {
  const StateArray& array = state.array(name);
  if (array.type != type_of(name, tensor) || tensor.sizes() != at::IntArrayRef(array.shape)) {
    throw Error(fmt::format("the state's '{}' is {} of shape [{}], the model's {} of shape [{}]",
                            name, name_of(array.type), fmt::join(array.shape, ", "),
                            name_of(type_of(name, tensor)), fmt::join(tensor.sizes(), ", ")));
  }
  const at::NoGradGuard no_grad;
  const at::Tensor values = at::empty(tensor.sizes(), tensor.scalar_type());
  if (!array.bytes.empty()) std::memcpy(values.data_ptr(), array.bytes.data(), array.bytes.size());
  tensor.detach().copy_(values);
}

}  // namespace rubato
