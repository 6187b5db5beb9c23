// Weights from files: those that there are, and those that are hostile.

#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "data/archive_files.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/memory_limit.hpp"
#include "support/python_models.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::little_endian;

// A zip archive as torch.save() writes it.
std::string archive_of(const std::map<std::string, std::string>& records, bool packed = false) {
  std::vector<test::Record> named;
  named.reserve(records.size());
  for (const auto& [name, record] : records) named.emplace_back("net/" + name, record);
  return test::zip_of(named, packed);
}

std::string text(std::string_view word) {
  std::string pickled(1, 'X');
  return pickled.append(little_endian(word.size(), 4)).append(word);
}
std::string whole(std::int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}

constexpr std::string_view kOrderedDict = "ccollections\nOrderedDict\n)R";

// A tensor of [rows, columns] in a record of `elements`, as Python pickles it.
std::string tensor_of(std::int64_t rows, std::int64_t columns, std::int64_t stride = 2,
                      std::int64_t offset = 0, std::string_view type = "FloatStorage") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" +
         std::string(type) + "\n" + text("0") + text("cpu") + whole(4) + "tQ" + whole(offset) +
         whole(rows) + whole(columns) + "\x86" + whole(stride) + whole(1) + "\x86" + "\x89" +
         std::string(kOrderedDict) + "tR";
}

// An OrderedDict of one entry, with the attribute that Python gives that of a model.
std::string state_dict_of(const std::string& value, const std::string& name = "weight") {
  const std::string pickle = "\x80\x02" + std::string(kOrderedDict) + "(" + text(name) + value +
                             "u}" + text("_metadata") + std::string(kOrderedDict) + "sb.";
  const std::vector<float> numbers{1, 2, 3, 4};
  return archive_of({{"data.pkl", pickle},
                     {"data/0", std::string(reinterpret_cast<const char*>(numbers.data()), 16)},
                     {"version", "3\n"}});
}

std::string error_of_bytes(const std::string& bytes) {
  return error_of([&] { return read_weights(bytes, "w.pt"); });
}

TEST(ReadWeights, OfAnOrderedDict) {
  const auto weights = read_weights(state_dict_of(tensor_of(2, 2)), "w.pt");
  ASSERT_EQ(weights.size(), 1U);
  EXPECT_EQ(weights[0].name, "weight");
  EXPECT_TRUE(at::equal(weights[0].tensor, at::tensor({1.F, 2.F, 3.F, 4.F}).view({2, 2})));
}

TEST(ReadWeights, OfWhatRubatoWrites) {
  const std::vector<NamedTensor> parameters{{"a", at::arange(6).to(at::kFloat).view({2, 3})},
                                            {"b", at::arange(3).to(at::kDouble)}};
  const std::vector<NamedTensor> buffers{{"n", at::full({}, 7, at::kLong)}};
  const auto weights = read_weights(pickled_weights(parameters, buffers), "w.pt");
  ASSERT_EQ(weights.size(), 3U);
  for (const NamedTensor& named : weights) {
    const at::Tensor& expected = named.name == "a"   ? parameters[0].tensor
                                 : named.name == "b" ? parameters[1].tensor
                                                     : buffers[0].tensor;
    EXPECT_TRUE(at::equal(named.tensor, expected)) << named.name;
    EXPECT_EQ(named.tensor.scalar_type(), expected.scalar_type()) << named.name;
  }
}

// A safetensors file, as other programs write it.
std::string safetensors_of(const std::string& header, const std::string& data) {
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFFU);
  return bytes + header + data;
}

TEST(ReadWeights, OfSafetensorsThatOthersWrite) {
  const std::vector<float> numbers{1, 2, 3, 4};
  const std::string data(reinterpret_cast<const char*>(numbers.data()), 16);
  const std::string arrays = R"("weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                             R"("flag":{"dtype":"BOOL","shape":[],"data_offsets":[16,17]}})";
  for (const char* const metadata :
       {"{", R"({"__metadata__":{},)", R"({"__metadata__":{"format":"pt"},)"}) {
    const auto weights = read_weights(safetensors_of(metadata + arrays, data + '\2'), "w");
    ASSERT_EQ(weights.size(), 2U) << metadata;
    EXPECT_TRUE(at::equal(weights[0].tensor, at::ones({}, at::kBool)));
    EXPECT_EQ(weights[1].name, "weight");
    EXPECT_TRUE(at::equal(weights[1].tensor, at::tensor({1.F, 2.F, 3.F, 4.F}).view({2, 2})));
  }
  EXPECT_THAT(error_of_bytes(safetensors_of("{" + arrays, data)),
              HasSubstr("w.pt: damaged or not a safetensors file: its array 'flag' is malformed"));
  EXPECT_THAT(error_of_bytes(safetensors_of("{" + arrays, data + "\1\1")),
              HasSubstr("it holds more than its arrays"));
  EXPECT_THAT(error_of_bytes(safetensors_of(
                  R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "a")),
              HasSubstr("its array 'a' is of type F8_E4M3, not of one such as F32"));
  EXPECT_THAT(error_of_bytes("short"), HasSubstr("it has only 5 bytes"));
  // A checkpoint has a checksum, which must be right.
  State state;
  state.put_array("weight", {.type = ElementType::f32, .shape = {4}, .bytes = data});
  std::string damaged = state_bytes(state);
  damaged[damaged.find(data) + 2] ^= 1;
  EXPECT_THAT(error_of_bytes(damaged), HasSubstr("its checksum is wrong"));
}

TEST(ReadWeights, OfWhatPythonWrites) {
  if (!test::python_has_torch()) GTEST_SKIP() << "/usr/bin/python3 has no module torch here";
  const test::TempFolder folder;
  test::run_python(folder, R"(
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 2).half())
state = net.state_dict()
state["view"] = torch.arange(12.0).view(3, 4).t()[1:3]
state["part"] = torch.arange(12)[4:6]
state["none"] = torch.empty(0, 3)
state["parameter"] = nn.Parameter(torch.ones(2))
state["bits"] = torch.tensor([True, False])
torch.save(state, "state.pt")
torch.save(dict(state), "dict.pt")
torch.save(state, "old.pt", _use_new_zipfile_serialization=False)
torch.save({"epoch": 3}, "other.pt")
torch.save(net, "net.pt")
)");
  const auto bytes = [&](const char* name) { return test::read_file(folder.path() / name); };
  for (const char* name : {"state.pt", "dict.pt"}) {
    std::map<std::string, at::Tensor> weights;
    for (const NamedTensor& named : read_weights(bytes(name), name)) {
      weights[named.name] = named.tensor;
    }
    EXPECT_EQ(weights.size(), 14U);
    EXPECT_EQ(weights.at("0.weight").sizes(), (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(weights.at("2.bias").scalar_type(), at::kHalf);
    EXPECT_TRUE(at::equal(weights.at("view"),
                          at::arange(12).to(at::kFloat).view({3, 4}).t().slice(0, 1, 3)));
    EXPECT_TRUE(at::equal(weights.at("part"), at::tensor({4, 5}, at::kLong)));
    EXPECT_EQ(weights.at("none").sizes(), (std::vector<std::int64_t>{0, 3}));
    EXPECT_TRUE(at::equal(weights.at("parameter"), at::ones({2})));
    EXPECT_TRUE(at::equal(weights.at("bits"), at::tensor({1, 0}).to(at::kBool)));
  }
  EXPECT_THAT(error_of_bytes(bytes("old.pt")), HasSubstr("format of PyTorch before 1.6"));
  EXPECT_THAT(error_of_bytes(bytes("other.pt")), StartsWith("w.pt: 'epoch' is not a tensor"));
  EXPECT_THAT(error_of_bytes(bytes("net.pt")), StartsWith("w.pt: "));
}

TEST(ReadWeights, BelievesNoSize) {
  const test::MemoryLimit limit(std::size_t{64} << 20);
  EXPECT_THROW(static_cast<void>(std::string(std::size_t{128} << 20, 'x')), std::bad_alloc);
  const std::string beyond = "reaches beyond its data in the file";
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(3, 2))), HasSubstr(beyond));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(2, 2, 2, 1))), HasSubstr(beyond));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(2, 2, 3))), HasSubstr(beyond));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(1 << 30, 1, kHuge))), HasSubstr(beyond));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(kHuge, kHuge, kHuge))),
              HasSubstr("has invalid sizes"));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(2, 2, 2, kHuge))), HasSubstr(beyond));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(2, 2, 2, 0, "DoubleStorage"))),
              HasSubstr(beyond));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(-1, 2))), HasSubstr("has invalid sizes"));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(2, 2, -2))), HasSubstr("has invalid sizes"));
  // A view of one number, however large, takes no memory.
  EXPECT_EQ(read_weights(state_dict_of(tensor_of(1 << 30, 1, 0)), "w.pt")[0].tensor.numel(),
            1 << 30);
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(kHuge, 4, 0))),
              HasSubstr("has invalid sizes"));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(kHuge, 0, kHuge))),
              HasSubstr("has invalid sizes"));
  EXPECT_EQ(read_weights(state_dict_of(tensor_of(1 << 30, 0, kHuge)), "w.pt")[0].tensor.numel(), 0);
  // Nothing is called.
  EXPECT_THAT(error_of_bytes(state_dict_of("cos\nsystem\n(" + text("false") + "tR")),
              HasSubstr("is not a dense tensor"));
  EXPECT_THAT(error_of_bytes(state_dict_of(tensor_of(2, 2, 2, 0, "ComplexFloatStorage"))),
              HasSubstr("is of a type other than real numbers, whole numbers and bool"));
}

TEST(ReadWeights, OfBrokenArchives) {
  EXPECT_THAT(error_of_bytes("PK and nothing else, which is no archive"),
              StartsWith("w.pt: it is not a zip archive; accepted: "));
  EXPECT_THAT(error_of_bytes(archive_of({{"data.pkl", "."}}, true)), HasSubstr("is compressed"));
  EXPECT_THAT(error_of_bytes(archive_of({{"data.txt", "."}})), HasSubstr("no data.pkl in it"));
  EXPECT_THAT(error_of_bytes(archive_of({{"data.pkl", "."}, {"constants.pkl", "."}})),
              HasSubstr("it is TorchScript"));
  EXPECT_THAT(error_of_bytes(archive_of({{"data.pkl", "."}})),
              HasSubstr("takes a value from an empty stack"));
  EXPECT_THAT(error_of_bytes(archive_of({{"data.pkl", "\x80\x02K\x01."}})),
              HasSubstr("it holds no dictionary"));
  // Nested a million times.
  EXPECT_THAT(
      error_of_bytes(archive_of({{"data.pkl", ")" + std::string(1'000'000, '\x85') + "."}})),
      HasSubstr("it holds no dictionary"));
  const std::string whole = state_dict_of(tensor_of(2, 2));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(error_of_bytes(whole.substr(0, size)), "no error") << size;
  }
}

// An error or tensors, whatever the bytes are, in little memory.
TEST(ReadWeights, OfChangedBytes) {
  const test::MemoryLimit limit(std::size_t{64} << 20);
  const std::string whole = state_dict_of(tensor_of(2, 2));
  std::mt19937 random(3);
  int errors = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = whole;
    for (int change = 0; change < 1 + i % 3; ++change) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    try {
      for (const NamedTensor& named : read_weights(changed, "w.pt")) {
        static_cast<void>(named.tensor.to(at::kDouble).sum());
      }
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
}

TEST(LoadWeights, ListsAllThatDoesNotFit) {
  const at::Tensor weight = at::zeros({2, 2});
  const Model model{.forward = {},
                    .set_training = {},
                    .parameters = {{"weight", weight}, {"bias", at::zeros({2})}},
                    .buffers = {{"mean", at::zeros({2})}}};
  const std::vector<NamedTensor> good{
      {"bias", at::ones({2})}, {"weight", at::ones({2, 2})}, {"mean", at::full({2}, 3.0)}};
  load_weights(model, good, "w.pt");
  EXPECT_TRUE(at::equal(weight, at::ones({2, 2})));
  EXPECT_TRUE(at::equal(model.buffers[0].tensor, at::full({2}, 3.0)));
  const std::vector<NamedTensor> bad{
      {"weight", at::zeros({4})}, {"mean", at::zeros({2})}, {"fc.bias", at::ones({2})}};
  EXPECT_EQ(error_of([&] { load_weights(model, bad, "w.pt"); }),
            "w.pt: it lacks bias; the model has no fc.bias; shapes differ in weight ([4], not "
            "[2, 2]); accepted: weights of this model");
  EXPECT_TRUE(at::equal(model.buffers[0].tensor, at::full({2}, 3.0))) << "as it was";
}

// As a BatchNorm has without running statistics.
TEST(LoadWeights, AskForNoUndefinedTensor) {
  const at::Tensor weight = at::zeros({2});
  const Model model{.forward = {},
                    .set_training = {},
                    .parameters = {{"weight", weight}},
                    .buffers = {{"running_mean", at::Tensor()}}};
  load_weights(model, std::vector<NamedTensor>{{"weight", at::ones({2})}}, "w.pt");
  EXPECT_TRUE(at::equal(weight, at::ones({2})));
}

}  // namespace
}  // namespace rubato
