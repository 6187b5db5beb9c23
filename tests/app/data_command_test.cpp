// rubato train on data of the user's own, as Python writes them; and docs/data.md.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run_configuration.hpp>

#include "app/command_test.hpp"
#include "app/doc_commands.hpp"
#include "support/idx_images.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::ProgramResult;

// Whether there is a Python with these modules.
bool python_has(const std::string& modules) {
  return test::run_program("/usr/bin/python3", {"-c", "import " + modules}).code == 0;
}

class DataCommand : public test::CommandTest {
 protected:
  // 320 training images and 100 test images of 12 x 12 as IDX files in the folder "images".
  DataCommand() {
    test::write_idx_images(folder_, "images", "train", 320, 12);
    test::write_idx_images(folder_, "images", "t10k", 100, 12);
  }
  // Runs Python, with what is in the IDX files as x, y, x_test and y_test of uint8.
  void python(const std::string& script) const {
    const ProgramResult result = test::run_program(
        "/usr/bin/python3",
        {"-c",
         "import numpy, os, struct, sys, zlib\n"
         "read = lambda name, skip: numpy.fromfile('images/' + name, dtype=numpy.uint8)[skip:]\n"
         "x = read('train-images-idx3-ubyte', 16).reshape(-1, 12, 12)\n"
         "y = read('train-labels-idx1-ubyte', 8)\n"
         "x_test = read('t10k-images-idx3-ubyte', 16).reshape(-1, 12, 12)\n"
         "y_test = read('t10k-labels-idx1-ubyte', 8)\n"
         // Takes pixels of height x width x 1 (grey) or 3 (colours).
         "def png(pixels):\n"
         "    chunk = lambda name, data: (struct.pack('>I', len(data)) + name + data +\n"
         "                                struct.pack('>I', zlib.crc32(name + data)))\n"
         "    height, width, channels = pixels.shape\n"
         "    rows = b''.join(b'\\0' + row.tobytes() for row in pixels)\n"
         "    head = struct.pack('>IIBBBBB', width, height, 8, channels - 1, 0, 0, 0)\n"
         "    return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', head) +\n"
         "            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))\n" +
             script},
        folder_.path());
    ASSERT_EQ(result.code, 0) << result.err;
  }

  // Runs a file of Python: TorchScript reads the source of what it compiles.
  void python_file(const std::string& script) const {
    folder_.write("export.py", script);
    const ProgramResult result =
        test::run_program("/usr/bin/python3", {"export.py"}, folder_.path());
    ASSERT_EQ(result.code, 0) << result.err;
  }

  static std::string command(const std::string& data, const std::string& further) {
    return fmt::format("train --data {} --trace 64 --minibatch 16 --epochs 2 {} ", data, further);
  }
  // The summary of a run that has to succeed.
  nlohmann::json trained(const std::string& data, const std::string& further) {
    const std::string run = fmt::format("run-{}", ++runs_);
    last_out_ = succeeds(command(data, further) + "--out " + run);
    return std::filesystem::exists(file(run)) ? summary(run) : nlohmann::json();
  }
  std::string weights(const std::string& data, const std::string& further) {
    const nlohmann::json found = trained(data, further);
    return found.is_null() ? "none" : found["weights_sha256"].get<std::string>();
  }
  [[nodiscard]] std::string refused(const std::string& data, const std::string& further) const {
    return refusal(command(data, further));
  }

  int runs_ = 0;
  std::string last_out_;
};

constexpr const char* kEigen = "--model mlp:hidden=16";
constexpr const char* kTorch = "--model softmax --engine libtorch";

TEST_F(DataCommand, TrainsToTheSameBitsHoweverImagesAreStored) {
  if (!python_has("numpy, torch")) GTEST_SKIP() << "python3-numpy and python3-torch are not there";
  python(
      "import torch\n"
      "numpy.savez('stored.npz', x=x, y=y, x_test=x_test, y_test=y_test)\n"
      "numpy.savez_compressed('packed.npz', x=x, y=y, x_test=x_test, y_test=y_test)\n"
      "long = lambda a: torch.from_numpy(a.astype(numpy.int64))\n"
      "tensor = torch.from_numpy\n"
      "torch.save({'x': tensor(x), 'y': long(y), 'x_test': tensor(x_test), 'y_test': "
      "long(y_test)},\n"
      "           'plain.pt')\n"
      "turned = tensor(x).transpose(1, 2).contiguous().transpose(1, 2)\n"
      "torch.save({'x': turned[:, None], 'y': long(y)[:, None], 'x_test': tensor(x_test)[:, "
      "None],\n"
      "            'y_test': long(y_test)[:, None]}, 'turned.pt')\n");
  for (const char* const model : {kEigen, kTorch}) {
    const std::string expected = weights("mnist:images", model);
    for (const char* const file : {"stored.npz", "packed.npz", "plain.pt", "turned.pt"}) {
      EXPECT_EQ(weights(fmt::format("tensors:{}", file), model), expected) << file;
    }
  }
}

TEST_F(DataCommand, TrainsOnRealNumbersAndStandardisesThem) {
  if (!python_has("numpy")) GTEST_SKIP() << "python3-numpy is not there";
  python(
      "rows = x.reshape(-1, 144).astype(numpy.float32)\n"
      "held = x_test.reshape(-1, 144).astype(numpy.float32)\n"
      "numpy.savez('raw.npz', x=rows, y=y, x_test=held, y_test=y_test)\n"
      "mean, deviation = rows.astype(float).mean(0), rows.astype(float).std(0)\n"
      "scale = lambda a: ((a - mean) / deviation)\n"
      "numpy.savez('scaled.npz', x=scale(rows), y=y, x_test=scale(held), y_test=y_test)\n");
  const std::string longer = std::string(kEigen) + " --epochs 15 --lr 0.05";
  const auto scaled = trained("tensors:scaled.npz", longer);
  const auto here = trained("tensors:raw.npz,standardise=true", longer);
  EXPECT_NEAR(scaled["final_test_loss"], here["final_test_loss"], 1e-4);
  EXPECT_GT(here["final_test_accuracy"], 0.5);
  EXPECT_NE(weights("tensors:raw.npz", longer), here["weights_sha256"].get<std::string>());
  EXPECT_EQ(weights("tensors:raw.npz,standardise=true", kTorch),
            weights("tensors:raw.npz,standardise=true", kTorch));
}

TEST_F(DataCommand, TrainsToTheSameBitsOnATableAsOnItsNumbers) {
  if (!python_has("numpy, torch")) GTEST_SKIP() << "python3-numpy and python3-torch are not there";
  python(
      "import torch\n"
      "rows = numpy.column_stack([x.reshape(-1, 144).mean(1) + 1e7, x[:, 5, 5] / 3.0,\n"
      "                           numpy.full(len(x), 14.62)])\n"
      "numpy.savez('rows.npz', x=rows, y=y)\n"
      "numpy.savez_compressed('packed.npz', x=numpy.asfortranarray(rows), y=y)\n"
      "torch.save({'x': torch.from_numpy(rows), 'y': torch.from_numpy(y.astype(int))}, "
      "'rows.pt')\n"
      "numpy.savetxt('rows.csv', numpy.column_stack([rows, y]), delimiter=',', fmt='%.17g',\n"
      "              header='a,b,c,y', comments='')\n");
  for (const char* const model : {kEigen, kTorch}) {
    const std::string expected = weights("csv:rows.csv,standardise=true", model);
    for (const char* const file : {"rows.npz", "packed.npz", "rows.pt"}) {
      EXPECT_EQ(weights(fmt::format("tensors:{},standardise=true", file), model), expected) << file;
    }
  }
}

TEST_F(DataCommand, LeavesOutTheTargetsThatTheLossIgnores) {
  if (!python_has("numpy")) GTEST_SKIP() << "python3-numpy is not there";
  python(
      "for mark in (-1, 255):\n"
      "    some = y.astype(int)\n"
      "    some[::4] = mark\n"
      "    numpy.savez('marked%d.npz' % mark, x=x, y=some)\n");
  const std::string expected =
      weights("tensors:marked-1.npz", "--model softmax --loss nll:ignore=-1");
  EXPECT_THAT(last_out_, HasSubstr("in 10 classes"));
  EXPECT_EQ(weights("tensors:marked255.npz", "--model softmax --loss nll:ignore=255"), expected);
  EXPECT_THAT(refused("tensors:marked-1.npz", kEigen),
              HasSubstr("sample 1 is of class -1; accepted: 0 to 999999, or --loss "
                        "cross-entropy:ignore=-1"));
}

TEST_F(DataCommand, TrainsOnRealTargets) {
  if (!python_has("numpy")) GTEST_SKIP() << "python3-numpy is not there";
  python(
      "random = numpy.random.default_rng(1)\n"
      "a = random.normal(size=(400, 3))\n"
      "numpy.savez('line.npz', x=a, y=a @ [1.0, -2.0, 0.5])\n"
      "numpy.savetxt('line.csv', numpy.column_stack([a, a @ [1.0, -2.0, 0.5]]), delimiter=',',\n"
      "              header='a,b,c,y', comments='')\n");
  const std::string options = "--model mlp:hidden=16 --validation 0.2 --epochs 20 --metric mse";
  const auto of_numpy = trained("tensors:line.npz", options);
  EXPECT_LT(of_numpy["final_test_mse"], 0.5) << "the variance of the targets is 5.25";
  EXPECT_EQ(of_numpy["final_test_mse"], of_numpy["final_test_loss"]);
  EXPECT_TRUE(of_numpy["final_test_accuracy"].is_null());
  const auto of_table = trained("csv:line.csv", options);
  EXPECT_NEAR(of_table["final_test_mse"], of_numpy["final_test_mse"], 1e-4);
  EXPECT_THAT(refused("tensors:line.npz", kTorch), HasSubstr("real numbers; accepted: mlp"));
  // libtorch is a twin of Eigen, and evaluates what Eigen has trained.
  EXPECT_NEAR(trained("tensors:line.npz", options + " --engine libtorch")["final_test_mse"],
              of_numpy["final_test_mse"], 1e-4);
  EXPECT_NEAR(nlohmann::json::parse(printed("eval run-1 --json"))["mse"],
              of_numpy["final_test_mse"], 1e-6);
  EXPECT_EQ(printed("predict run-1").substr(0, 14), "sample,output\n");
}

// The same samples, in the order in which a folder has them; whatever else there is to say is said.
TEST_F(DataCommand, TrainsToTheSameBitsOnImagesInFoldersAndWithChannelsLast) {
  if (!python_has("numpy")) GTEST_SKIP() << "python3-numpy is not there";
  python(
      "colours = numpy.stack([x, x // 2, 255 - x], axis=3)\n"
      "order = numpy.argsort(y, kind='stable')\n"
      "for i in order:\n"
      "    os.makedirs('tree/%d' % y[i], exist_ok=True)\n"
      "    open('tree/%d/%04d.png' % (y[i], i), 'wb').write(png(colours[i]))\n"
      "numpy.savez('last.npz', x=colours[order], labels=y[order], extra=x)\n"
      "numpy.savez('first.npz', x=colours[order].transpose(0, 3, 1, 2), y=y[order])\n");
  for (const char* const model : {kEigen, kTorch}) {
    const std::string expected = weights("tensors:first.npz", model);
    EXPECT_EQ(weights("images:tree", model), expected);
    EXPECT_THAT(last_out_, HasSubstr("320 training images of 3 x 12 x 12 in 10 classes, trace"));
    EXPECT_THAT(printed(fmt::format("predict run-{} --data images:tree --what classes", runs_)),
                StartsWith("sample,file,class\n0,0/0"));
    EXPECT_EQ(weights("tensors:last.npz,y=labels,layout=hwc", model), expected);
    EXPECT_THAT(last_out_, HasSubstr("in 10 classes (not used: extra), trace"));
  }
  weights("tensors:last.npz,y=labels", kEigen);
  EXPECT_THAT(last_out_, HasSubstr(" (samples of [12, 12, 3] look like images with their channels "
                                   "last, which layout=hwc reads; not used: extra), trace"));
  EXPECT_THAT(
      refused("images:nowhere", kEigen),
      HasSubstr("--data: no such folder as 'nowhere'; accepted: a folder with a sub-folder"));
}

TEST_F(DataCommand, SaysWhatIsWrongWithData) {
  folder_.write("table.csv", "a,y\n1,0\n,1\n");
  folder_.write("table.csv.gz", "");
  folder_.write("good.csv", "a,b,y\n1,2,0\n2,1,1\n3,1,1\n4,1,0\n");
  folder_.write("book.txt", std::string(1000, 'a') + "b");
  for (const auto& [data, more, message] : std::vector<std::array<std::string, 3>>{
           {"csv:table.csv", "", "table.csv:3: column 'a' has no value"},
           {"tensors:table.csv", "", "it is not a zip archive"},
           {"table.csv", "", "'table.csv' is a file; did you mean 'csv:table.csv'?"},
           {"table.csv.gz", "", "'table.csv.gz' is a file; did you mean 'csv:table.csv.gz'?"},
           {"cifar10:images", "", "data_batch_1.bin: No such file"},
           {"text:book.txt,length=10", "", "accepted: transformer of tokens, or script:FILE"},
           {"csv:good.csv", " --target-accuracy 50", "there is no test set in csv:good.csv"},
           {"csv:good.csv", " --metric mse --validation 0.5",
            "targets of csv:good.csv are classes"},
           {"mnist:images", " --validation 0.0001", "0.0001 of 320 samples leaves none"},
           {"mnist:images", " --metric top-k --top-k 3", "--metric has a top-k, too"}}) {
    const std::string error =
        refused(data, "--model softmax --trace 4 --minibatch 2 --ref-batch 4" + more);
    EXPECT_THAT(error, HasSubstr(message));
    EXPECT_LE(std::count(error.begin(), error.end(), '\n'), 2) << error;
  }
}

// The same samples are held out for every seed, number of threads and cores.
TEST_F(DataCommand, AugmentsAndHoldsOutToTheSameBits) {
  const std::string base =
      "--model softmax --validation 0.25 --augment shift:pixels=1+flip+crop:padding=2+"
      "cutout:size=4 ";
  const std::string expected = weights("mnist:images", base + "--threads 1 --cores 1");
  EXPECT_THAT(last_out_, HasSubstr("240 training and 80 validation images"));
  EXPECT_EQ(weights("mnist:images", base + "--threads 2 --cores 3 --assignment strided"), expected);
  EXPECT_NE(weights("mnist:images", base + "--validation 0.25,seed=1"), expected);
  for (const char* const other : {"shift:pixels=1", "flip", "crop:padding=2", "cutout:size=4"}) {
    EXPECT_NE(weights("mnist:images", base + "--augment " + other), expected);
  }
  // Through a resume in the middle.
  succeeds(command("mnist:images", base) + "--epochs 1 --out half");
  succeeds("train --resume half --epochs 2");
  EXPECT_EQ(hash("half"), expected);
}

// A file as long as that, of zeros that take no room on the disk.
void write_zeros(const std::filesystem::path& file, const std::string& header,
                 std::uintmax_t size) {
  std::ofstream(file, std::ios::binary) << header;
  std::filesystem::resize_file(file, size);
}

// Half a gigabyte of pixels, two gigabytes as numbers, in a process that may have 700 megabytes of
// its own.
TEST_F(DataCommand, TrainsOnMoreThanFitsIntoMemory) {
  std::filesystem::create_directory(folder_.path() / "cifar");
  for (const char* const name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                                 "data_batch_5", "test_batch"}) {
    const bool large = std::string_view(name) != "test_batch";
    write_zeros(folder_.path() / "cifar" / (std::string(name) + ".bin"), "",
                std::uintmax_t{3073} * (large ? 33'000 : 100));
  }
  test::write_idx_images(folder_, "large", "t10k", 10, 200);
  test::write_idx_images(folder_, "large", "train", 1, 200);
  const std::string count("\x00\x00\x30\xD4", 4);  // 12,500
  write_zeros(folder_.path() / "large/train-images-idx3-ubyte",
              std::string("\x00\x00\x08\x03", 4) + count +
                  std::string("\x00\x00\x00\xC8\x00\x00\x00\xC8", 8),
              16 + std::uintmax_t{12'500} * 200 * 200);
  write_zeros(folder_.path() / "large/train-labels-idx1-ubyte",
              std::string("\x00\x00\x08\x01", 4) + count, 8 + 12'500);
  for (const char* const data : {"mnist:large", "cifar10:cifar"}) {
    const auto train_with = [&](const std::string& engine) {
      return test::shell(
          fmt::format("ulimit -d 700000 && exec \"$0\" train --data {} --model softmax --engine {} "
                      "--trace 64 --minibatch 8 --samples 256 --threads 2 --out run-{}",
                      data, engine, engine),
          folder_.path());
    };
    const ProgramResult result = train_with("libtorch");
    EXPECT_EQ(result.code, 0) << data << "\n" << result.err;
    // The numbers that it read as the whole of them do not fit.
    EXPECT_THAT(train_with("eigen").err,
                AllOf(HasSubstr("as floats, needs 2"), HasSubstr("what ulimit -d leaves"),
                      HasSubstr("--engine libtorch")));
    std::filesystem::remove_all(folder_.path() / "run-libtorch");
  }
}

// The block of Python in docs/data.md that exports a model and its data: lstm.pt and tokens.pt.
std::string python_of_the_page() {
  const std::string page = test::read_file(RUBATO_DATA_MD);
  constexpr std::string_view kFence = "```python export\n";
  const std::size_t begin = page.find(kFence) + kFence.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST_F(DataCommand, TrainsModelsOfPythonOnTokensOfPython) {
  if (!python_has("numpy, torch")) GTEST_SKIP() << "python3-numpy and python3-torch are not there";
  python_file(python_of_the_page() +
              "class Encoder(nn.Module):\n"
              "    def __init__(self):\n"
              "        super().__init__()\n"
              "        self.embed = nn.Embedding(10, 16)\n"
              "        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(\n"
              "            16, 2, 32, dropout=0.1, batch_first=True), 1)\n"
              "        self.fc = nn.Linear(16, 10)\n"
              "    def forward(self, x):\n"
              "        return self.fc(self.encoder(self.embed(x)))\n"
              "torch.jit.script(Encoder()).save('encoder.pt')\n");
  for (const std::string model : {"script:lstm.pt", "script:encoder.pt", "transformer:dim=16"}) {
    const std::string options = fmt::format(
        "--model {} --optimizer adam --lr 0.01 --epochs 15 --validation 0.1 --metric perplexity "
        "--threads ",
        model);
    const nlohmann::json found = trained("tensors:tokens.pt", options + "1");
    ASSERT_FALSE(found.is_null()) << model;
    EXPECT_GT(found["final_test_accuracy"], 0.9) << model;
    EXPECT_LT(found["final_test_perplexity"], 3) << model << ": 10 if it knew nothing";
    EXPECT_EQ(weights("tensors:tokens.pt", options + "2"),
              found["weights_sha256"].get<std::string>())
        << model;
  }
}

TEST_F(DataCommand, TrainsTheTransformerOnAText) {
  std::string text;
  for (int i = 0; i < 120; ++i) text += "To be, or not to be, that is the question. ";
  folder_.write("book.txt", text);
  const std::string held =
      "--model transformer:dim=32 --optimizer adam --lr 0.01 --epochs 40 --trace 32 --ref-batch 32 "
      "--metric perplexity+top-k:k=3 --validation 0.2,seed=5";
  const std::string data = "text:book.txt,length=32";
  const nlohmann::json found = trained(data, held);
  ASSERT_FALSE(found.is_null());
  EXPECT_GT(found["final_test_accuracy"], 0.7);
  EXPECT_DOUBLE_EQ(found["final_test_perplexity"],
                   std::exp(found["final_test_loss"].get<double>()));

  // The run's folder has its data, what is held out of them, and its weights.
  const auto again = nlohmann::json::parse(printed("eval run-1 --json"));
  for (const auto& [ours, theirs] : std::vector<std::pair<std::string, std::string>>{
           {"loss", "final_test_loss"},
           {"accuracy", "final_test_accuracy"},
           {"perplexity", "final_test_perplexity"},
           {"top_k_accuracy", "final_test_top_k_accuracy"}}) {
    EXPECT_EQ(again[ours], found[theirs]) << ours;
  }
  const std::string classes = printed("predict run-1 --what classes");
  const std::int64_t rows = std::count(classes.begin(), classes.end(), '\n') - 1;
  EXPECT_EQ(rows, again["samples"]);
  EXPECT_EQ(std::count(classes.begin(), classes.end(), ','), 32 * (rows + 1));
  // It begins where the other has ended.
  EXPECT_NEAR(trained(data, held + " --weights run-1 --epochs 1 --lr 1e-9")["final_test_loss"],
              found["final_test_loss"], 1e-4);
  // Nothing held out is nothing to evaluate.
  ASSERT_NE(weights(data, "--model transformer:dim=32"), "none");
  EXPECT_THAT(refusal("eval run-3"), HasSubstr("there is no test set in text:"));
}

// The vocabulary as the definition says, in Python, which counts all pairs anew for each token and
// joins them one after the other.
constexpr const char* kPairsInPython =
    "import json, re\n"
    "from collections import Counter\n"
    "def words_of(text):\n"
    "    found = re.findall(rb'\\s*[^\\s]+|\\s+$', text)\n"
    "    return [word[i:i + 64] for word in found for i in range(0, len(word), 64)]\n"
    "def joined(tokens, pair, token):\n"
    "    result = []\n"
    "    for next in tokens:\n"
    "        if result and (result[-1], next) == pair:\n"
    "            result[-1] = token\n"
    "        else:\n"
    "            result.append(next)\n"
    "    return result\n"
    "def learnt(text, vocabulary):\n"
    "    words = [[list(word), count] for word, count in Counter(words_of(text)).items()]\n"
    "    pairs = []\n"
    "    while 256 + len(pairs) < vocabulary:\n"
    "        counts = Counter()\n"
    "        for word, count in words:\n"
    "            for pair in zip(word, word[1:]):\n"
    "                counts[pair] += count\n"
    "        pair = min(counts, key=lambda pair: (-counts[pair], pair))\n"
    "        if counts[pair] < 2:\n"
    "            break\n"
    "        for word in words:\n"
    "            word[0] = joined(word[0], pair, 256 + len(pairs))\n"
    "        pairs.append(pair)\n"
    "    return pairs\n"
    "def encoded(text, pairs):\n"
    "    tokens = []\n"
    "    for word in words_of(text):\n"
    "        word = list(word)\n"
    "        for i, pair in enumerate(pairs):\n"
    "            word = joined(word, pair, 256 + i)\n"
    "        tokens += word\n"
    "    return tokens\n"
    "sizes = lambda pairs: [len(bytes_of(token, pairs)) for token in range(256 + len(pairs))]\n"
    "def bytes_of(token, pairs):\n"
    "    if token < 256:\n"
    "        return bytes([token])\n"
    "    return b''.join(bytes_of(part, pairs) for part in pairs[token - 256])\n"
    "random = numpy.random.default_rng(3)\n"
    "stems = ['to', 'be', 'not', 'question', 'nobler', 'mind', 'suffer', 'caf\\u00e9', 'aaa']\n"
    "ends = [' ', ' ', ', ', '.\\n', '\\n\\n', 'er ', 's ', 'aa ']\n"
    "def text_of(count):\n"
    "    return ''.join(random.choice(stems) + random.choice(ends) for _ in range(count))\n"
    "text = text_of(2000) + 'ab' * 100 + text_of(500)\n"
    "other = text_of(500) + ' Zz'\n"
    "open('book.txt', 'w').write(text)\n"
    "open('other.txt', 'w').write(other)\n"
    "pairs = learnt(text.encode(), 340)\n"
    "length = 12\n"
    "found = {'pairs': pairs}\n"
    "for name, text in (('book', text), ('other', other)):\n"
    "    tokens = encoded(text.encode(), pairs)\n"
    "    assert b''.join(bytes_of(token, pairs) for token in tokens) == text.encode()\n"
    "    pieces = (len(tokens) - 1) // length\n"
    "    targets = tokens[1:pieces * length + 1]\n"
    "    bytes_each = sum(sizes(pairs)[token] for token in targets) / len(targets)\n"
    "    found[name] = {'pieces': pieces, 'bytes': bytes_each}\n"
    "json.dump(found, open('python.json', 'w'))\n";

TEST_F(DataCommand, MakesTheVocabularyThatPythonMakes) {
  if (!python_has("numpy")) GTEST_SKIP() << "python3-numpy is not there";
  python(kPairsInPython);
  const auto theirs = nlohmann::json::parse(content("python.json"));
  const std::string data = "text:book.txt,tokens=pairs,vocabulary=340,length=12";
  const std::string options =
      "--model transformer:layers=1,heads=1,dim=8 --validation 0.2 --metric bits-per-byte "
      "--trace 32";
  ASSERT_FALSE(trained(data, options).is_null());
  const auto ours = nlohmann::json::parse(content("run-1/data.json"));
  EXPECT_EQ(ours["pairs"], theirs["pairs"]);
  EXPECT_EQ(ours["vocabulary"], 340);
  // The same vocabulary reads other texts, whose own one would be another.
  for (const std::string name : {"book", "other"}) {
    const auto found =
        nlohmann::json::parse(printed("eval run-1 --json --data text:" + name + ".txt"));
    EXPECT_EQ(found["samples"], theirs[name]["pieces"]) << name;
    const double bytes =
        found["loss"].get<double>() / std::log(2.0) / found["bits_per_byte"].get<double>();
    EXPECT_NEAR(bytes, theirs[name]["bytes"], 1e-9) << name;
  }
  const std::string classes = printed("predict run-1 --what classes --data text:other.txt");
  EXPECT_EQ(std::count(classes.begin(), classes.end(), '\n') - 1, theirs["other"]["pieces"]);
  EXPECT_THAT(refusal("eval run-1 --data mnist:images"),
              HasSubstr("the model was trained on text data; accepted: text:FILE"));
}

TEST_F(DataCommand, ResumesATextByItsVocabulary) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "To be, or not to be, that is the question. ";
  folder_.write("book.txt", text);
  const std::string data = "text:book.txt,tokens=pairs,vocabulary=280,length=8";
  const std::string options = "--model transformer:layers=1,heads=1,dim=8 --trace 16 ";
  const std::string whole = weights(data, options + "--epochs 3");
  ASSERT_NE(weights(data, options + "--epochs 1 --checkpoint-every 1epoch"), "none");
  succeeds("train --resume run-2 --epochs 3");
  EXPECT_EQ(summary("run-2")["weights_sha256"], whole);
  folder_.write("book.txt", "Or " + text);
  EXPECT_THAT(refusal("train --resume run-2 --epochs 4"), HasSubstr("data"));
}

TEST_F(DataCommand, MeasuresBitsPerByteOfTextAlone) {
  folder_.write("book.txt", "to be or not to be, that is the question");
  const std::string metric = "--metric bits-per-byte --validation 0.3 --minibatch 1 --trace 1 ";
  EXPECT_THAT(refused("mnist:images", std::string(kEigen) + " --metric bits-per-byte"),
              HasSubstr("--metric bits-per-byte: a target of mnist:images stands for no bytes of a "
                        "text; accepted: perplexity, or with --data text:FILE or sentences"));
  const std::string transformer = "--model transformer:layers=1,heads=1,dim=4 " + metric;
  EXPECT_THAT(refused("text:book.txt,length=4", transformer + "--loss nll:ignore=2"),
              HasSubstr("the loss nll:ignore=2 is not the cross entropy of all tokens"));
  EXPECT_THAT(refused("text:book.txt,vocabulary=300", transformer),
              HasSubstr("text: vocabulary: is of pairs; accepted: with tokens=pairs"));
  const auto found = trained("text:book.txt,length=4", transformer);
  ASSERT_FALSE(found.is_null());
  EXPECT_NEAR(found["final_test_bits_per_byte"].get<double>(),
              found["final_test_loss"].get<double>() / std::log(2.0), 1e-12);
  EXPECT_EQ(found["final_test_bits_per_byte"],
            nlohmann::json::parse(printed("eval run-1 --json"))["bits_per_byte"]);
  EXPECT_THAT(content("run-1/metrics.jsonl"), HasSubstr("\"test_bits_per_byte\":"));
  EXPECT_THAT(last_out_, HasSubstr("bits per byte"));
}

// Most of what a model lacks to the entropy is the beginning of each piece, where it does not know
// what came before.
TEST_F(DataCommand, LearnsSentencesToNearTheirEntropy) {
  const auto found = trained(
      "sentences:size=400000,length=64",
      "--model transformer:layers=2,heads=2,dim=32,hidden=64,dropout=0 --optimizer adam --lr 0.005 "
      "--trace 32 --ref-batch 32 --minibatch 32 --epochs 8 --metric bits-per-byte "
      "--schedule warmup-cosine:warmup=0.3,total=8");
  ASSERT_FALSE(found.is_null());
  EXPECT_THAT(last_out_, HasSubstr("0.667 bits per byte at best"));
  constexpr double kEntropy = 0.667;
  EXPECT_GT(found["final_test_bits_per_byte"], kEntropy);
  EXPECT_LT(found["final_test_bits_per_byte"], 1.3 * kEntropy);
}

// docs/data.md

TEST_F(DataCommand, HasADocumentWhoseCommandsRun) {
  if (!python_has("numpy, torch")) GTEST_SKIP() << "python3-numpy and python3-torch are not there";
  python(
      "import os, torch\n"
      "numpy.savez('data.npz', x=x, y=y, x_test=x_test, y_test=y_test)\n"
      "torch.save({'x': torch.from_numpy(x), 'y': torch.from_numpy(y)}, 'data.pt')\n"
      "random = numpy.random.default_rng(1)\n"
      "with open('table.csv', 'w') as table:\n"
      "    table.write('length,width,colour,species\\n')\n"
      "    for i in range(2000):\n"
      "        a, b = random.normal(size=2)\n"
      "        table.write(f'{a},{b},{\"red\" if a > 0 else \"blue\"},{\"ant\" if b > 0 else "
      "\"bee\"}\\n')\n"
      "with open('new.csv', 'w') as table:\n"
      "    table.write('length,width,colour\\n0.5,0.25,red\\n-0.5,0.25,green\\n')\n"
      "with open('lands.txt', 'w') as table:\n"
      "    table.write('# NA is North America\\ncontinent  population  rich\\n')\n"
      "    for i in range(400):\n"
      "        table.write(['NA  0.6  yes', 'AF  1.4  no', 'EU  -    yes', 'AS  4.7  no'][i % 4] + "
      "'\\n')\n"
      "with open('rated.csv', 'w') as table:\n"
      "    table.write('length,width,weight,species\\n')\n"
      "    for i in range(2000):\n"
      "        a, b = random.normal(size=2)\n"
      "        table.write(f'{a},{b},{i % 3},{\"ant\" if b > 0 else \"bee\"}\\n')\n"
      "numpy.savez('pictures.npz', images=x[..., None].repeat(3, axis=3), labels=y)\n"
      "with open('iris.data', 'w') as iris:\n"
      "    for i in range(300):\n"
      "        values = ','.join('%.1f' % value for value in random.normal(5, 1, size=4))\n"
      "        iris.write(values + ',Iris-' + ['setosa', 'virginica'][i % 2] + '\\n')\n"
      "for i in range(len(x)):\n"
      "    os.makedirs('shapes/row %d' % y[i], exist_ok=True)\n"
      "    open('shapes/row %d/%d.png' % (y[i], i), 'wb').write(png(x[i][..., None]))\n"
      "with open('book.txt', 'w') as book:\n"
      "    book.write('To be, or not to be, that is the question. ' * 400)\n"
      "os.mkdir('cifar')\n"
      "for name in ['data_batch_%d' % i for i in range(1, 6)] + ['test_batch']:\n"
      "    records = random.integers(0, 256, size=(400, 3073), dtype=numpy.uint8)\n"
      "    records[:, 0] %= 10\n"
      "    records.tofile('cifar/' + name + '.bin')\n");
  python_file(python_of_the_page());
  const std::string text = test::read_file(RUBATO_DATA_MD);
  const std::vector<std::string> commands = test::rubato_commands(text);
  for (const std::string& command : commands) {
    // Some of the data are smaller than a step of the built-in trace.
    succeeds(command + (command.starts_with("train") ? " --trace 64" : ""));
  }
  EXPECT_GE(commands.size(), 10U);
  EXPECT_THAT(content("shapes.csv"), HasSubstr("row 7"));
  EXPECT_THAT(content("new-classes.csv"), StartsWith("sample,class\n0,"));
  EXPECT_THAT(content("run-lands/data.json"), HasSubstr("\"NA\""));
  const auto epochs = records("run-sentences", "epoch");
  ASSERT_EQ(epochs.size(), 2U);
  EXPECT_LT(epochs[0]["test_bits_per_byte"], 4.16) << "of bytes drawn one by one";
  EXPECT_LT(epochs[1]["test_bits_per_byte"], epochs[0]["test_bits_per_byte"]);
}

TEST(DataDoc, NamesEveryKindAndEveryArgument) {
  const std::string text = test::read_file(RUBATO_DATA_MD);
  for (const std::string name : {"data", "samplers", "augmentations", "metrics"}) {
    for (const Strategy& strategy : family(name).strategies) {
      EXPECT_THAT(text, HasSubstr("`" + strategy.name)) << name;
      for (const Argument& argument : strategy.arguments) {
        EXPECT_THAT(text, HasSubstr(argument.name + "=")) << strategy.name;
      }
    }
  }
}

}  // namespace
}  // namespace rubato
