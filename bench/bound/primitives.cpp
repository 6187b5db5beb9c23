#include "primitives.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include <cblas.h>
#include <dnnl.hpp>

#include "base/core/seconds.hpp"

namespace rubato::bench {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

void Timed::measure() {
  constexpr double kSeconds = 2e-3;
  constexpr double kMicroseconds = 1e6;
  compute();
  const Stopwatch watch;
  std::int64_t calls = 0;
  do {
    compute();
    ++calls;
  } while (watch.seconds() < kSeconds);
  microseconds.push_back(watch.seconds() * kMicroseconds / static_cast<double>(calls));
}

Memory::Array::Array(AlignedValues<float>& values, std::size_t bytes, std::size_t distance)
    : values_(&values), bytes_(bytes) {
  constexpr std::size_t kStep = kVectorAlignment / sizeof(float);
  step_ = (bytes / sizeof(float) + kStep) / kStep * kStep;
  end_ = std::max(step_, distance / sizeof(float));
  if (end_ <= values.size()) return;
  values = AlignedValues<float>(end_);
  // Neither zeros nor numbers so small that they are slow.
  std::ranges::fill(values.values(), 0.01F);
}

float* Memory::Array::next() {
  if (at_ + step_ > end_) at_ = 0;
  return values_->data() + std::exchange(at_, at_ + step_);
}

namespace {

using Dims = dnnl::memory::dims;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc any(const Dims& sizes) {
  return {sizes, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

// An array that a primitive takes, by oneDNN's number of it; the last one is the result.
struct Argument {
  int number = 0;
  dnnl::memory::desc description{};
  std::size_t distance = 0;
};

Timed timed(std::string name, const dnnl::primitive& primitive,
            const std::array<Argument, 3>& arguments, Memory& memory) {
  struct Execution {
    dnnl::primitive primitive;
    std::vector<Memory::Array> places{};
    std::unordered_map<int, dnnl::memory> arrays{};
    std::array<int, 3> numbers{};
    dnnl::stream stream{cpu()};
  };
  const auto execution = std::make_shared<Execution>(Execution{.primitive = primitive});
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& [number, description, distance] = arguments[i];
    const std::size_t bytes = description.get_size();
    execution->numbers[i] = number;
    execution->places.push_back(i + 1 < arguments.size() ? memory.read(bytes, distance)
                                                         : memory.written(bytes, distance));
    execution->arrays.emplace(number, dnnl::memory(description, cpu(), nullptr));
  }
  return {
      .name = std::move(name), .compute = [execution] {
        for (std::size_t i = 0; i < execution->places.size(); ++i) {
          execution->arrays.at(execution->numbers[i]).set_data_handle(execution->places[i].next());
        }
        execution->primitive.execute(execution->stream, execution->arrays);
        execution->stream.wait();
      }};
}

Timed matmul(const Product& p, Memory& memory) {
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    return any(p.count == 1 ? Dims{rows, columns} : Dims{p.count, rows, columns});
  };
  const dnnl::matmul::primitive_desc primitive(
      dnnl::matmul::desc(matrix(p.rows, p.depth), matrix(p.depth, p.columns),
                         matrix(p.rows, p.columns)),
      cpu());
  return timed("oneDNN matmul", dnnl::matmul(primitive),
               {{{DNNL_ARG_SRC, primitive.src_desc(), p.left_distance},
                 {DNNL_ARG_WEIGHTS, primitive.weights_desc(), p.right_distance},
                 {DNNL_ARG_DST, primitive.dst_desc(), p.result_distance}}},
               memory);
}

constexpr const char* kInnerProduct = "oneDNN inner product";

// The gradients of an inner product take their layouts from forward.
dnnl::inner_product_forward::primitive_desc inner_product(std::int64_t samples, std::int64_t inputs,
                                                          std::int64_t outputs) {
  return {
      dnnl::inner_product_forward::desc(dnnl::prop_kind::forward_training, any({samples, inputs}),
                                        any({outputs, inputs}), any({samples, outputs})),
      cpu()};
}

Timed inner_product_forward(const Product& p, Memory& memory) {
  const auto primitive = inner_product(p.rows, p.depth, p.columns);
  return timed(kInnerProduct, dnnl::inner_product_forward(primitive),
               {{{DNNL_ARG_SRC, primitive.src_desc(), p.left_distance},
                 {DNNL_ARG_WEIGHTS, primitive.weights_desc(), p.right_distance},
                 {DNNL_ARG_DST, primitive.dst_desc(), p.result_distance}}},
               memory);
}

Timed inner_product_by_input(const Product& p, Memory& memory) {
  const dnnl::inner_product_backward_data::primitive_desc primitive(
      dnnl::inner_product_backward_data::desc(any({p.rows, p.columns}), any({p.depth, p.columns}),
                                              any({p.rows, p.depth})),
      cpu(), inner_product(p.rows, p.columns, p.depth));
  return timed(kInnerProduct, dnnl::inner_product_backward_data(primitive),
               {{{DNNL_ARG_DIFF_DST, primitive.diff_dst_desc(), p.left_distance},
                 {DNNL_ARG_WEIGHTS, primitive.weights_desc(), p.right_distance},
                 {DNNL_ARG_DIFF_SRC, primitive.diff_src_desc(), p.result_distance}}},
               memory);
}

Timed inner_product_by_weights(const Product& p, Memory& memory) {
  const dnnl::inner_product_backward_weights::primitive_desc primitive(
      dnnl::inner_product_backward_weights::desc(any({p.depth, p.columns}),
                                                 any({p.rows, p.columns}), any({p.depth, p.rows})),
      cpu(), inner_product(p.depth, p.columns, p.rows));
  return timed(kInnerProduct, dnnl::inner_product_backward_weights(primitive),
               {{{DNNL_ARG_DIFF_DST, primitive.diff_dst_desc(), p.left_distance},
                 {DNNL_ARG_SRC, primitive.src_desc(), p.right_distance},
                 {DNNL_ARG_DIFF_WEIGHTS, primitive.diff_weights_desc(), p.result_distance}}},
               memory);
}

Timed by_cblas(const Product& p, Memory& memory) {
  const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(p.count * rows * columns) * sizeof(float);
  };
  return {
      .name = "OpenBLAS",
      .compute = [p, left = memory.read(bytes(p.rows, p.depth), p.left_distance),
                  right = memory.read(bytes(p.depth, p.columns), p.right_distance),
                  result = memory.written(bytes(p.rows, p.columns), p.result_distance)]() mutable {
        const auto whole = [](std::int64_t number) { return static_cast<int>(number); };
        const float* a = left.next();
        const float* b = right.next();
        float* c = result.next();
        for (std::int64_t i = 0; i < p.count; ++i) {
          cblas_sgemm(CblasRowMajor, p.left_transposed ? CblasTrans : CblasNoTrans,
                      p.right_transposed ? CblasTrans : CblasNoTrans, whole(p.rows),
                      whole(p.columns), whole(p.depth), 1, a,
                      whole(p.left_transposed ? p.rows : p.depth), b,
                      whole(p.right_transposed ? p.depth : p.columns), 0, c, whole(p.columns));
          a += p.rows * p.depth;
          b += p.depth * p.columns;
          c += p.rows * p.columns;
        }
      }};
}

Timed convolved(const Convolution& c, dnnl::algorithm algorithm, Memory& memory) {
  const auto input = any(c.input);
  const auto weight = any(c.weight);
  const auto output = any(c.output);
  const char* const name =
      algorithm == dnnl::algorithm::convolution_winograd ? "oneDNN Winograd" : "oneDNN convolution";
  const dnnl::convolution_forward::primitive_desc forward(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, input, weight,
                                      output, c.stride, c.padding, c.padding),
      cpu());
  if (c.pass == Pass::forward) {
    return timed(name, dnnl::convolution_forward(forward),
                 {{{DNNL_ARG_SRC, forward.src_desc(), c.input_distance},
                   {DNNL_ARG_WEIGHTS, forward.weights_desc(), c.weight_distance},
                   {DNNL_ARG_DST, forward.dst_desc(), c.output_distance}}},
                 memory);
  }
  if (c.pass == Pass::by_input) {
    const dnnl::convolution_backward_data::primitive_desc backward(
        dnnl::convolution_backward_data::desc(algorithm, input, weight, output, c.stride, c.padding,
                                              c.padding),
        cpu(), forward);
    return timed(name, dnnl::convolution_backward_data(backward),
                 {{{DNNL_ARG_DIFF_DST, backward.diff_dst_desc(), c.output_distance},
                   {DNNL_ARG_WEIGHTS, backward.weights_desc(), c.weight_distance},
                   {DNNL_ARG_DIFF_SRC, backward.diff_src_desc(), c.input_distance}}},
                 memory);
  }
  const dnnl::convolution_backward_weights::primitive_desc backward(
      dnnl::convolution_backward_weights::desc(algorithm, input, weight, output, c.stride,
                                               c.padding, c.padding),
      cpu(), forward);
  return timed(name, dnnl::convolution_backward_weights(backward),
               {{{DNNL_ARG_DIFF_DST, backward.diff_dst_desc(), c.output_distance},
                 {DNNL_ARG_SRC, backward.src_desc(), c.input_distance},
                 {DNNL_ARG_DIFF_WEIGHTS, backward.diff_weights_desc(), c.weight_distance}}},
               memory);
}

// Adds a primitive unless oneDNN has none for these sizes on this CPU.
template <class Make>
void add(std::vector<Timed>& all, const Make& make) {
  try {
    all.push_back(make());
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
  }
}

// Stands for what is only read or only written, and stays in the first-level cache.
constexpr std::size_t kPart = 8192;

}  // namespace

std::vector<Timed> primitives_of(const Product& product, Memory& memory) {
  std::vector<Timed> all{by_cblas(product, memory)};
  add(all, [&] { return matmul(product, memory); });
  if (product.count > 1) return all;
  // Each pass of an inner product computes any product.
  for (const auto make :
       {inner_product_forward, inner_product_by_input, inner_product_by_weights}) {
    add(all, [&] { return make(product, memory); });
  }
  return all;
}

std::vector<Timed> primitives_of(const Convolution& convolution, Memory& memory) {
  std::vector<Timed> all;
  for (const auto algorithm :
       {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd}) {
    add(all, [&] { return convolved(convolution, algorithm, memory); });
  }
  return all;
}

Timed copy_of(std::vector<Memory::Array> reads, std::vector<Memory::Array> written) {
  return {.name = "copy",
          .compute = [reads = std::move(reads), written = std::move(written),
                      part = std::vector<char>(kPart)]() mutable {
            const auto in_parts = [&](std::size_t begin, std::size_t end, const auto& copy) {
              for (; begin < end; begin += kPart) copy(begin, std::min(kPart, end - begin));
            };
            for (std::size_t i = 0; i < std::max(reads.size(), written.size()); ++i) {
              const std::size_t in = i < reads.size() ? reads[i].bytes() : 0;
              const std::size_t out = i < written.size() ? written[i].bytes() : 0;
              const auto* const from = in > 0 ? reinterpret_cast<char*>(reads[i].next()) : nullptr;
              auto* const to = out > 0 ? reinterpret_cast<char*>(written[i].next()) : nullptr;
              const std::size_t both = std::min(in, out);
              if (both > 0) std::memcpy(to, from, both);
              in_parts(both, in, [&](std::size_t begin, std::size_t size) {
                std::memcpy(part.data(), from + begin, size);
              });
              in_parts(both, out, [&](std::size_t begin, std::size_t size) {
                std::memcpy(to + begin, part.data(), size);
              });
            }
          }};
}

}  // namespace rubato::bench
