#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "loop/data/data_record.hpp"
#include "loop/data/files/data_files.hpp"
#include "tensor_file.hpp"

namespace rubato {

namespace {

using Arrays = std::map<std::string, NumberArray>;

constexpr std::int64_t kMostClasses = 1'000'000;

std::string names_of(const Arrays& arrays) {
  if (arrays.empty()) return "no array";
  constexpr std::size_t kMostNames = 10;
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) {
    if (names.size() == kMostNames) break;
    names.push_back(name);
  }
  return fmt::format("{}{}", fmt::join(names, ", "), names.size() < arrays.size() ? ", ..." : "");
}

// The samples of two of the arrays.
class PairReader {
 public:
  PairReader(const Arrays& arrays, std::string source)
      : arrays_(arrays), source_(std::move(source)) {}

  [[nodiscard]] SampleSet read(const std::string& x, const std::string& y) const {
    SampleSet set{.inputs = inputs(x), .targets = rows(y)};
    if (set.inputs.count() != set.targets.count()) {
      throw Error(fmt::format("{}: '{}' has {} samples, and '{}' has {}; accepted: as many of both",
                              source_, x, set.inputs.count(), y, set.targets.count()));
    }
    // A class for each sample, in a column.
    if (!is_real(set.targets.type()) && set.targets.shape() == std::vector<std::int64_t>{1}) {
      set.targets = set.targets.reshaped({});
    }
    return set;
  }

  // Images in grey have one channel.
  [[nodiscard]] SampleRows inputs(const std::string& name) const {
    const SampleRows all = rows(name);
    const auto& shape = all.shape();
    const bool grey = all.type() == ElementType::u8 && shape.size() == 2;
    return grey ? all.reshaped({1, shape[0], shape[1]}) : all;
  }

 private:
  [[nodiscard]] SampleRows rows(const std::string& name) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) {
      throw Error(fmt::format(
          "{}: holds {}, and not '{}'; accepted: x and y, and for a test set x_test and "
          "y_test",
          source_, names_of(arrays_), name));
    }
    const NumberArray& array = found->second;
    if (array.shape.empty() || array.bytes.empty()) {
      throw Error(
          fmt::format("{}: '{}' of shape [{}] holds no sample; accepted: an array with one "
                      "row for each sample",
                      source_, name, fmt::join(array.shape, ", ")));
    }
    SampleRows rows(array);
    require_finite(rows, fmt::format("{}: '{}'", source_, name));
    return rows;
  }

  const Arrays& arrays_;
  std::string source_;
};

void require_alike(const SampleRows& train, const SampleRows& test, std::string_view name,
                   const std::string& source) {
  if (train.shape() == test.shape() && train.type() == test.type()) return;
  throw Error(
      fmt::format("{0}: samples of '{1}' are {2} of shape [{3}], those of '{1}_test' {4} of [{5}]; "
                  "accepted: the same of both",
                  source, name, name_of(train.type()), fmt::join(train.shape(), ", "),
                  name_of(test.type()), fmt::join(test.shape(), ", ")));
}

// 0 where the inputs are no sequences of tokens with a class each.
std::int64_t vocabulary_of(const DataSets& data) {
  const auto& shape = data.train.inputs.shape();
  if (data.inputs != InputKind::tokens || shape.size() != 1 ||
      shape != data.train.targets.shape()) {
    return 0;
  }
  const std::int64_t train = count_tokens(data.train, kMostClasses);
  if (!data.test || train == 0) return train;
  const std::int64_t test = count_tokens(*data.test, kMostClasses);
  return test == 0 ? 0 : std::max(train, test);
}

}  // namespace

DataSets read_tensor_samples(const std::filesystem::path& file) {
  return tensor_samples(read_tensor_file(file), file.string());
}

SampleSet read_new_tensor_samples(const std::filesystem::path& file, const DataRecord& record,
                                  bool labels) {
  const Arrays arrays = read_tensor_file(file);
  const PairReader reader(arrays, file.string());
  const std::string ending = arrays.contains("x_test") ? "_test" : "";
  const ElementType type = record.classes > 0 ? ElementType::i64 : ElementType::f32;
  if (!labels) {
    SampleRows inputs = reader.inputs("x" + ending);
    SampleRows targets = zero_rows(type, record.target_shape, inputs.count());
    return {.inputs = std::move(inputs), .targets = std::move(targets)};
  }
  SampleSet set = reader.read("x" + ending, "y" + ending);
  const bool same = is_real(set.targets.type()) == is_real(type);
  if (same && set.targets.shape() == record.target_shape) return set;
  throw Error(fmt::format(
      "{}: 'y{}' is {} of shape [{}] for each sample; accepted: {} of shape [{}], as trained on",
      file.string(), ending, name_of(set.targets.type()), fmt::join(set.targets.shape(), ", "),
      is_real(type) ? "real numbers" : "classes", fmt::join(record.target_shape, ", ")));
}

DataSets tensor_samples(const Arrays& arrays, const std::string& source) {
  const PairReader reader(arrays, source);
  DataSets data{.train = reader.read("x", "y")};
  data.inputs = input_kind_of(data.train.inputs.type());
  if (arrays.contains("x_test") || arrays.contains("y_test")) {
    data.test = reader.read("x_test", "y_test");
    require_alike(data.train.inputs, data.test->inputs, "x", source);
    require_alike(data.train.targets, data.test->targets, "y", source);
  }
  if (is_real(data.train.targets.type())) return data;
  data.classes = count_classes(data.train, source + ": 'y'", kMostClasses);
  if (data.test) {
    data.classes =
        std::max(data.classes, count_classes(*data.test, source + ": 'y_test'", kMostClasses));
  }
  data.vocabulary = vocabulary_of(data);
  return data;
}

}  // namespace rubato
