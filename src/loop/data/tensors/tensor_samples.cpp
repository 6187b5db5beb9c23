// A Source is a set of arrays with the names by which they are used, from a file or from memory, so
// both share all code after it. The names have to be known before the file is read:
// read_tensor_file() calls back with all names in it, with_names() completes the ones that the user
// gave, and only those arrays are read. PairReader then views an array of inputs and an array of
// targets as rows, and changes shapes where users differ: grey images get a channel, a column of
// classes loses its dimension, and images with their channels last are copied. Types decide the
// rest: of the inputs whether they are pixels, tokens or real numbers, and of the targets whether
// they are classes.

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/text/csv.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/data_files.hpp"
#include "saved_tensors.hpp"

namespace rubato {

namespace {

using Arrays = std::map<std::string, NumberArray>;

constexpr std::int64_t kMostClasses = 1'000'000;

// Names in a message or a note.
constexpr std::size_t kMostNames = 10;

// Returns the first of the usual names that an array has; upper and lower case are equal if no name
// matches exactly.
std::string usual_name(const std::vector<std::string>& names,
                       std::initializer_list<std::string_view> usual) {
  for (const std::string_view name : usual) {
    if (std::ranges::find(names, name) != names.end()) return std::string(name);
  }
  for (const std::string_view name : usual) {
    const auto found = std::ranges::find_if(
        names, [&](const std::string& is) { return detail::is_name(is, name); });
    if (found != names.end()) return *found;
  }
  return std::string(*usual.begin());
}

// Fills in the names of arrays, so that none is empty; those of a test set need not exist.
TensorOptions with_names(TensorOptions options, const std::vector<std::string>& names) {
  if (options.x.empty()) options.x = usual_name(names, {"x", "x_train", "arr_0"});
  if (options.y.empty()) options.y = usual_name(names, {"y", "y_train", "arr_1"});
  if (options.x_test.empty()) options.x_test = usual_name(names, {"x_test"});
  if (options.y_test.empty()) options.y_test = usual_name(names, {"y_test"});
  return options;
}

// The arrays that will be used, and the names of all arrays.
struct Source {
  std::string name{};
  Arrays arrays{};
  std::vector<std::string> names{};
  // The names of the used arrays; none is empty.
  TensorOptions meant{};
  // True if the user has asked for a test set by name.
  bool needs_test = false;

  [[nodiscard]] std::vector<std::string> wanted() const {
    std::vector<std::string> all{meant.x, meant.y, meant.x_test, meant.y_test};
    if (!meant.weights.empty()) all.push_back(meant.weights);
    return all;
  }
  [[nodiscard]] bool has(const std::string& array) const {
    return std::ranges::find(names, array) != names.end();
  }
};

Source source_in(const std::filesystem::path& file, const TensorOptions& options) {
  Source source{.name = file.string(),
                .needs_test = !options.x_test.empty() || !options.y_test.empty()};
  source.arrays = read_tensor_file(file, [&](const std::vector<std::string>& names) {
    source.names = names;
    source.meant = with_names(options, names);
    return source.wanted();
  });
  return source;
}

// Images look as if their channels came last if the last dimension is 1, 3 or 4 and the first is
// not 1 or 3.
bool has_channels_last(const SampleRows& inputs) {
  const auto& shape = inputs.shape();
  const auto is_channels = [](std::int64_t size) { return size == 1 || size == 3; };
  return shape.size() == 3 && (is_channels(shape[2]) || shape[2] == 4) && !is_channels(shape[0]);
}

// Reads the samples in two of the arrays.
class PairReader {
 public:
  explicit PairReader(const Source& source) : source_(source) {}

  [[nodiscard]] SampleSet read(const std::string& x, const std::string& y) const {
    SampleSet set{.inputs = inputs(x), .targets = rows(y)};
    if (set.inputs.count() != set.targets.count()) {
      throw_error("{}: '{}' has {} samples, and '{}' has {}; accepted: as many of both",
                  source_.name, x, set.inputs.count(), y, set.targets.count());
    }
    // A column with one class for each sample becomes one dimension.
    if (!is_real(set.targets.type()) && set.targets.shape() == std::vector<std::int64_t>{1}) {
      set.targets = set.targets.reshaped({});
    }
    return set;
  }

  // One number for each sample.
  [[nodiscard]] std::vector<double> weights(const std::string& name) const {
    const SampleRows all = rows(name, "the name of an array of weights");
    if (all.elements() != 1) {
      throw_error("{}: '{}' has {} weights for each sample; accepted: one", source_.name, name,
                  all.elements());
    }
    std::vector<double> weights(static_cast<std::size_t>(all.count()));
    for (std::int64_t i = 0; i < all.count(); ++i) {
      read_numbers(all.type(), all.row(i), &weights[static_cast<std::size_t>(i)]);
    }
    return weights;
  }

  // Grey images get one channel.
  [[nodiscard]] SampleRows inputs(const std::string& name) const {
    const SampleRows all =
        source_.meant.layout == ImageLayout::chw ? rows(name) : with_channels_first(name);
    const auto& shape = all.shape();
    const bool grey = all.type() == ElementType::u8 && shape.size() == 2;
    return grey ? all.reshaped({1, shape[0], shape[1]}) : all;
  }

 private:
  // The array has the shape [N, height, width, channels].
  [[nodiscard]] SampleRows with_channels_first(const std::string& name) const {
    const SampleRows last = rows(name);
    const auto& shape = last.shape();
    if (shape.size() != 3) {
      throw_error(
          "{}: layout=hwc: samples of '{}' are of shape [{}]; accepted: [height, width, channels]",
          source_.name, name, fmt::join(shape, ", "));
    }
    const NumberArray& array = source_.arrays.at(name);
    const std::int64_t row = shape[1] * shape[2];
    return SampleRows(dense({.type = array.type,
                             .shape = {last.count(), shape[2], shape[0], shape[1]},
                             .strides = {shape[0] * row, 1, row, shape[2]},
                             .bytes = array.bytes},
                            array.owner, fmt::format("{}: '{}'", source_.name, name)));
  }

  [[nodiscard]] SampleRows rows(
      const std::string& name,
      std::string_view accepted =
          "x and y, and for a test set x_test and y_test; x_train and y_train; arr_0 and arr_1; "
          "other names by x=NAME,y=NAME") const {
    const auto found = source_.arrays.find(name);
    if (found == source_.arrays.end()) {
      throw_error("{}: holds {}, and not '{}'; accepted: {}", source_.name,
                  source_.names.empty() ? "no array" : first_names(source_.names, kMostNames), name,
                  accepted);
    }
    const NumberArray& array = found->second;
    if (array.shape.empty() || array.bytes.empty()) {
      throw_error(
          "{}: '{}' of shape [{}] holds no sample; accepted: an array with one row for each sample",
          source_.name, name, fmt::join(array.shape, ", "));
    }
    SampleRows rows(array);
    require_finite(rows, fmt::format("{}: '{}'", source_.name, name));
    return rows;
  }

  const Source& source_;
};

void require_alike(const SampleRows& train, std::string_view name, const SampleRows& test,
                   std::string_view test_name, const std::string& source) {
  if (train.shape() == test.shape() && train.type() == test.type()) return;
  throw_error(
      "{}: samples of '{}' are {} of shape [{}], those of '{}' {} of [{}]; accepted: the same of "
      "both",
      source, name, name_of(train.type()), fmt::join(train.shape(), ", "), test_name,
      name_of(test.type()), fmt::join(test.shape(), ", "));
}

// Returns 0 if the inputs are not sequences of tokens with a class each.
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

DataSets samples_of(const Source& source) {
  const PairReader reader(source);
  const TensorOptions& names = source.meant;
  DataSets data{.train = reader.read(names.x, names.y)};
  if (!names.weights.empty()) {
    data.train.weights = std::make_shared<const std::vector<double>>(reader.weights(names.weights));
  }
  data.inputs = input_kind_of(data.train.inputs.type());
  if (names.layout == ImageLayout::chw && has_channels_last(data.train.inputs)) {
    data.notes.push_back(
        fmt::format("samples of [{}] look like images with their channels last, "
                    "which layout=hwc reads",
                    fmt::join(data.train.inputs.shape(), ", ")));
  }
  if (source.has(names.x_test) || source.has(names.y_test) || source.needs_test) {
    data.test = reader.read(names.x_test, names.y_test);
    require_alike(data.train.inputs, names.x, data.test->inputs, names.x_test, source.name);
    require_alike(data.train.targets, names.y, data.test->targets, names.y_test, source.name);
  }
  if (is_real(data.train.targets.type())) return data;
  const auto classes_in = [&](const SampleSet& set, const std::string& name) {
    return count_classes(set, fmt::format("{}: '{}'", source.name, name), kMostClasses,
                         names.ignored);
  };
  data.classes = classes_in(data.train, names.y);
  if (data.test) data.classes = std::max(data.classes, classes_in(*data.test, names.y_test));
  data.vocabulary = vocabulary_of(data);
  if (data.train.targets.shape().empty()) note_missing_classes(data);
  return data;
}

}  // namespace

DataSets read_tensor_samples(const std::filesystem::path& file, const TensorOptions& options) {
  const Source source = source_in(file, options);
  DataSets data = samples_of(source);
  std::vector<std::string> ignored = source.names;
  const std::vector<std::string> wanted = source.wanted();
  std::erase_if(ignored, [&](const std::string& name) {
    return std::ranges::find(wanted, name) != wanted.end();
  });
  if (!ignored.empty())
    data.notes.push_back(fmt::format("not used: {}", first_names(ignored, kMostNames)));
  return data;
}

SampleSet read_new_tensor_samples(const std::filesystem::path& file, const DataRecord& record,
                                  bool labels, const TensorOptions& options) {
  const Source source = source_in(file, options);
  const PairReader reader(source);
  // The test set is read if there is one, or if the user has asked for one by name.
  const TensorOptions& names = source.meant;
  const bool has_test = source.has(names.x_test) || source.needs_test;
  const std::string& x = has_test ? names.x_test : names.x;
  const std::string& y = has_test ? names.y_test : names.y;
  const ElementType type = record.classes > 0 ? ElementType::i64 : ElementType::f32;
  if (!labels) {
    SampleRows inputs = reader.inputs(x);
    SampleRows targets = zero_rows(type, record.target_shape, inputs.count());
    return {.inputs = std::move(inputs), .targets = std::move(targets)};
  }
  SampleSet set = reader.read(x, y);
  const bool same = is_real(set.targets.type()) == is_real(type);
  if (same && set.targets.shape() == record.target_shape) return set;
  throw_error(
      "{}: '{}' is {} of shape [{}] for each sample; accepted: {} of shape [{}], as trained on",
      file.string(), y, name_of(set.targets.type()), fmt::join(set.targets.shape(), ", "),
      is_real(type) ? "real numbers" : "classes", fmt::join(record.target_shape, ", "));
}

DataSets tensor_samples(const Arrays& arrays, const std::string& source,
                        const IgnoredTargets& ignored) {
  Source of{.name = source, .arrays = arrays};
  for (const auto& [name, array] : arrays) of.names.push_back(name);
  of.meant = with_names({.ignored = ignored}, of.names);
  return samples_of(of);
}

}  // namespace rubato
