#include "libtorch/operators/operators.hpp"

#include <thread>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/jit.h>

#include "base/machine/instruction_set.hpp"
#include "operators/random_tensors.hpp"

namespace rubato {
namespace {

using test::random_tensor;

// Other bits tell that rubato's took it.
at::Tensor normalised(const at::Tensor& input) {
  return std::get<0>(at::native_batch_norm(input, {}, {}, {}, {}, true, 0.1, 1e-5));
}

TEST(OperatorScope, IsOfOneThreadAndNests) {
  const at::Tensor input = random_tensor({32, 10, 12, 12});
  const ReplacedOperators all;
  const ReplacedOperators none = ReplacedOperators::none();
  const at::Tensor theirs = normalised(input);
  {
    const OperatorScope outer(all);
    const at::Tensor ours = normalised(input);
    EXPECT_FALSE(at::equal(ours, theirs));
    {
      const OperatorScope inner(none);
      EXPECT_TRUE(at::equal(normalised(input), theirs));
    }
    EXPECT_TRUE(at::equal(normalised(input), ours));
    at::Tensor elsewhere;
    std::thread([&] { elsewhere = normalised(input); }).join();
    EXPECT_TRUE(at::equal(elsewhere, theirs));
  }
  EXPECT_TRUE(at::equal(normalised(input), theirs));
}

// Through autograd, with what a traced module calls instead of conv2d.
TEST(OperatorScope, ServesTorchScript) {
  if (cpu_instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "needs AVX2 and FMA";
  const auto module = torch::jit::compile(R"(
def scripted(x, w):
  return torch.max_pool2d(torch.conv2d(x, w), [2, 2]).sum()
def traced(x, w):
  return torch.max_pool2d(torch._convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, True, True), [2, 2]).sum()
)");
  const auto gradient = [&](const char* name, const ReplacedOperators& operators) {
    const OperatorScope scope(operators);
    const at::Tensor weight = random_tensor({10, 1, 5, 5}, 2).requires_grad_();
    module->run_method(name, random_tensor({32, 1, 28, 28}), weight).toTensor().backward();
    return weight.grad();
  };
  const at::Tensor theirs = gradient("scripted", ReplacedOperators::none());
  const at::Tensor ours = gradient("scripted", {});
  EXPECT_FALSE(at::equal(ours, theirs));
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-4, 1e-4));
  EXPECT_TRUE(at::equal(gradient("traced", {}), ours));
}

}  // namespace
}  // namespace rubato
