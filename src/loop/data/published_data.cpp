#include "published_data.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include <rubato/base/error.hpp>

namespace rubato {

namespace {

constexpr std::array<PublishedFile, 4> kMnistFiles{
    {{"train-images-idx3-ubyte.gz", 9'912'422,
      "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
     {"train-labels-idx1-ubyte.gz", 28'881,
      "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
     {"t10k-images-idx3-ubyte.gz", 1'648'877,
      "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
     {"t10k-labels-idx1-ubyte.gz", 4'542,
      "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}};

constexpr std::array<PublishedFile, 4> kFashionFiles{
    {{"train-images-idx3-ubyte.gz", 26'421'880,
      "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
     {"train-labels-idx1-ubyte.gz", 29'515,
      "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
     {"t10k-images-idx3-ubyte.gz", 4'422'102,
      "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
     {"t10k-labels-idx1-ubyte.gz", 5'148,
      "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}};

constexpr std::array<PublishedFile, 1> kCifarFiles{
    {{"cifar-10-binary.tar.gz", 170'052'171,
      "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}};
constexpr std::array<std::string_view, 6> kCifarUnpacked{"data_batch_1.bin", "data_batch_2.bin",
                                                         "data_batch_3.bin", "data_batch_4.bin",
                                                         "data_batch_5.bin", "test_batch.bin"};

constexpr std::array<PublishedData, 3> kPublishedData{
    {{.name = "mnist",
      .help = "MNIST, fetched by `rubato data get mnist`",
      .kind = "mnist",
      .address = "https://ossci-datasets.s3.amazonaws.com/mnist/",
      .files = kMnistFiles},
     {.name = "fashion-mnist",
      .help = "Fashion-MNIST, fetched by `rubato data get fashion-mnist`",
      .kind = "mnist",
      .address = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
      .files = kFashionFiles},
     {.name = "cifar10",
      .help = "CIFAR-10, fetched by `rubato data get cifar10`",
      .kind = "cifar10",
      .address = "https://www.cs.toronto.edu/~kriz/",
      .files = kCifarFiles,
      .unpacked = kCifarUnpacked,
      .unpacked_size = 30'730'000}}};

// Returns an empty path if the variable is not set, or is not an absolute path.
std::filesystem::path folder_in(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): only read
  const std::filesystem::path folder = value == nullptr ? "" : value;
  return folder.is_absolute() ? folder : std::filesystem::path();
}

}  // namespace

std::span<const PublishedData> published_data() {
  return kPublishedData;
}

const PublishedData* find_published_data(std::string_view name) {
  const auto* const found = std::ranges::find(kPublishedData, name, &PublishedData::name);
  return found == kPublishedData.end() ? nullptr : found;
}

std::filesystem::path cached_folder(std::string_view name) {
  std::filesystem::path cache = folder_in("XDG_CACHE_HOME");
  if (cache.empty()) {
    cache = folder_in("HOME");
    if (cache.empty()) {
      throw Error(
          "there is no cache folder; accepted: with HOME or XDG_CACHE_HOME in the environment");
    }
    cache /= ".cache";
  }
  return cache / "rubato" / "data" / name;
}

}  // namespace rubato
