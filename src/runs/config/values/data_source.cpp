// The text of --data is KIND, KIND:ARGUMENTS or KIND:PATH,ARGUMENTS; a row of kData has a kind, its
// help and the function that reads its arguments. Names of published data sets are tried first,
// then the rows, then the user's own data sets. A path may contain commas, so arguments_begin()
// looks for the first text that can be an argument, and with_slashes() replaces the commas within
// lists, which Spec does not accept. map_data() replaces paths in the text itself, so that
// everything else stays as the user wrote it.

#include "data_source.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/images.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/published_data.hpp"
#include "loop/data/tables/separator.hpp"

namespace rubato {

namespace {

struct DataRow {
  std::string_view name;
  std::string_view help;
  /// Reads its arguments; null if it has none.
  void (*read)(Spec& spec, DataSource& source) = nullptr;
};

void read_standardise(Spec& spec, DataSource& source) {
  source.csv.standardise = spec.flag("standardise", false);
}

void read_tensors(Spec& spec, DataSource& source) {
  TensorOptions& tensors = source.tensors;
  const auto name = [&](std::string_view key, std::string_view usual) {
    return spec.text(key, Unset{usual}, "the name of an array in the file").value_or(std::string());
  };
  tensors.x = name("x", "x, x_train or arr_0");
  tensors.y = name("y", "y, y_train or arr_1");
  tensors.x_test = name("x-test", "x_test, where it is there");
  tensors.y_test = name("y-test", "y_test, where it is there");
  tensors.layout = spec.choice("layout", ImageLayout::chw, kImageLayouts);
  read_standardise(spec, source);
}

constexpr std::string_view kSeparator = "comma, semicolon, tab, blanks, or the text itself";
constexpr std::string_view kMissing =
    "error, mean or drop, and behind a colon the words that stand for it with + between them";
constexpr std::string_view kIgnored = "names of columns, several with / or commas between them";
constexpr std::string_view kTypes = "NAME:number or NAME:category, several with / between them";

// The kind of column that `text` ends with, as in "age:number".
std::optional<ColumnKind> kind_at_end(std::string_view text) {
  for (const auto& [kind, name] : kColumnKinds) {
    if (text.ends_with(name) && text.size() > name.size() + 1 &&
        text[text.size() - name.size() - 1] == ':') {
      return kind;
    }
  }
  return std::nullopt;
}

// Parses "age:number/zip:category"; a name may contain a slash.
std::map<std::string, ColumnKind> parse_types(std::string_view text) {
  std::map<std::string, ColumnKind> types;
  std::string_view rest = text;
  std::size_t end = 0;
  while (!rest.empty()) {
    end = rest.find('/', end);
    const std::string_view part = rest.substr(0, end);
    const auto kind = kind_at_end(part);
    if (!kind && end == std::string_view::npos) {
      throw_error("'{}' gives no column a type; accepted: {}", rest, kTypes);
    }
    if (!kind) {
      ++end;
      continue;
    }
    const std::string name(part.substr(0, part.rfind(':')));
    if (!types.emplace(name, *kind).second) throw_error("'{}' is there twice", name);
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    end = 0;
  }
  return types;
}

// Reads "mean", or "mean:?+-999" with the words that stand for a missing value.
void read_missing(Spec& spec, CsvOptions& csv) {
  const auto text = spec.text("missing", Unset{"a missing value is an error"}, kMissing);
  if (!text) return;
  const std::size_t colon = text->find(':');
  try {
    csv.missing = parse_choice("value", text->substr(0, colon), kMissingValues);
  } catch (const Error& error) {
    spec.reject("missing", error.what());
  }
  if (colon == std::string::npos) return;
  csv.missing_words = {""};
  for (const std::string_view word : split_at(std::string_view(*text).substr(colon + 1), '+')) {
    if (word != "empty") csv.missing_words.emplace_back(word);
  }
}

// Reads how the fields and lines of a table are told apart.
void read_format(Spec& spec, CsvOptions& csv) {
  if (const auto separator = spec.text("separator", Unset{"found in the table"}, kSeparator)) {
    try {
      csv.separator = parse_separator(*separator);
    } catch (const Error& error) {
      spec.reject("separator", error.what());
    }
  }
  csv.comment = spec.text("comment", Unset{"no line is one"}, "what comments begin with, such as #")
                    .value_or(std::string());
  if (!csv.comment.empty() && csv.comment == csv.separator) {
    spec.reject("comment", "separates the fields, too; accepted: another text than separator=");
  }
}

void read_csv(Spec& spec, DataSource& source) {
  source.csv.label = spec.text("label", Unset{"the last one"}, "the name of the column of labels")
                         .value_or(std::string());
  source.csv.targets = spec.choice("targets", CsvTargets::automatic, kCsvTargets);
  if (const auto types = spec.text("types", Unset{"what the fields of a column are"}, kTypes)) {
    try {
      source.csv.types = parse_types(*types);
    } catch (const Error& error) {
      spec.reject("types", error.what());
    }
  }
  read_missing(spec, source.csv);
  read_format(spec, source.csv);
  source.csv.decimal = spec.choice("decimal", Decimal::point, kDecimals);
  source.csv.header = spec.choice("header", TableHeader::automatic, kTableHeaders);
  if (const auto ignore = spec.text("ignore", Unset{"no column is left out"}, kIgnored)) {
    for (const std::string_view name : split_at(*ignore, '/')) source.csv.ignore.emplace_back(name);
  }
  read_standardise(spec, source);
  if (auto test = spec.text("test", Unset{"no test set"}, "a table with the same columns")) {
    source.csv.test = *test;
  }
}

void read_text(Spec& spec, DataSource& source) {
  constexpr std::int64_t kMostLength = 1'000'000;
  constexpr std::int64_t kMostTokens = 65'536;
  TextOptions& text = source.text;
  text.length = spec.whole("length", text.length, 1, kMostLength);
  text.tokens = spec.choice("tokens", text.tokens, kTextTokens);
  text.vocabulary = spec.whole("vocabulary", Unset{"512 with pairs"}, kByteTokens + 1, kMostTokens)
                        .value_or(text.vocabulary);
  if (text.tokens != TextTokens::pairs) {
    spec.refuse("vocabulary", "is of pairs; accepted: with tokens=pairs");
  }
}

void read_sentences(Spec& spec, DataSource& source) {
  constexpr std::int64_t kLeastSize = 10'000;
  constexpr std::int64_t kMostSize = 1'000'000'000;
  SentenceOptions& sentences = source.sentences;
  sentences.seed = static_cast<std::uint64_t>(
      spec.whole("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  sentences.size = spec.whole("size", sentences.size, kLeastSize, kMostSize);
  read_text(spec, source);
}

constexpr std::string_view kSentences = "sentences";

constexpr std::array<DataRow, 8> kData{
    {{"digits", "the built-in digits: 12,000 images of 1 x 28 x 28 that the program draws itself"},
     {"mnist:DIR", "the IDX files of MNIST, Fashion-MNIST or KMNIST in the folder DIR, raw or .gz"},
     {"cifar10:DIR",
      "the binary version of CIFAR-10 in the folder DIR: data_batch_1.bin and so on"},
     {"tensors:FILE",
      "x and y, and x_test and y_test where there is a test set, as torch.save() or numpy.savez() "
      "in Python writes them",
      read_tensors},
     {"images:DIR",
      "a folder with a sub-folder of PNG or JPEG files for each class, or with train and test (or "
      "val), which have these"},
     {"csv:FILE", "a table with a header: columns of numbers and of categories", read_csv},
     {"text:FILE",
      "a text, whose next token is to be predicted: a character, a byte or a token of frequent "
      "pairs",
      read_text},
     {kSentences, "a text of size=N bytes that the program makes itself by a grammar",
      read_sentences}}};

std::string_view kind_of(std::string_view name) {
  return name.substr(0, name.find(':'));
}

// The arguments that take several values.
constexpr std::array<std::string_view, 2> kLists{"types", "ignore"};

// The arguments as Spec accepts them: a comma between the values of one argument becomes a slash.
std::string with_slashes(std::string_view arguments) {
  std::string text;
  for (const std::string_view part : split_at(arguments, ',')) {
    const bool is_argument = part.find('=') != std::string_view::npos;
    text += fmt::format("{}{}", text.empty() ? "" : is_argument ? "," : "/", part);
  }
  return text;
}

// The row of a built-in kind; null for any other.
const DataRow* row_of(std::string_view kind) {
  const auto* const found =
      std::ranges::find_if(kData, [&](const DataRow& row) { return kind_of(row.name) == kind; });
  return found == kData.end() ? nullptr : found;
}

[[noreturn]] void fail_unknown(const std::string& text,
                               const std::vector<std::string_view>& names) {
  std::error_code ignored;
  if (std::filesystem::is_directory(text, ignored)) {
    throw_error("'{0}' is a folder; did you mean 'mnist:{0}', 'cifar10:{0}' or 'images:{0}'?",
                text);
  }
  if (std::filesystem::is_regular_file(text, ignored)) {
    constexpr std::array<std::array<std::string_view, 2>, 7> kKinds{{{".npz", "tensors"},
                                                                     {".pt", "tensors"},
                                                                     {".csv", "csv"},
                                                                     {".csv.gz", "csv"},
                                                                     {".tsv", "csv"},
                                                                     {".tsv.gz", "csv"},
                                                                     {".txt", "text"}}};
    for (const auto& [ending, kind] : kKinds) {
      if (!text.ends_with(ending)) continue;
      throw_error("'{0}' is a file; did you mean '{1}:{0}'?", text, kind);
    }
  }
  throw Error(unknown_name_message("data set", text, names));
}

}  // namespace

std::vector<Strategy> data_sources() {
  std::vector<Strategy> all = strategies_of(kData, [](const DataRow& row, Spec& spec) {
    DataSource ignored;
    if (row.read != nullptr) row.read(spec, ignored);
  });
  for (const PublishedData& known : published_data()) {
    all.push_back({.name = std::string(known.name), .help = std::string(known.help)});
  }
  return all;
}

std::vector<std::string_view> data_names() {
  std::vector<std::string_view> names = row_names(kData);
  std::erase(names, kSentences);
  return names;
}

std::vector<std::string_view> all_data_names() {
  std::vector<std::string_view> names = row_names(kData);
  for (const PublishedData& known : published_data()) names.push_back(known.name);
  return names;
}

template <>
std::shared_ptr<const DataSource> Parsed<DataSource>::parse(const std::string& text,
                                                            const Extensions& extensions) {
  const OwnDataSources& own = extensions.data;
  if (const PublishedData* const known = find_published_data(text)) {
    return std::make_shared<const DataSource>(DataSource{
        .kind = std::string(known->kind), .path = cached_folder(text), .known = known->name});
  }
  if (text == kOwn) return std::make_shared<const DataSource>(DataSource{.kind = text});
  const std::string_view kind = kind_of(text);
  const DataRow* const row = row_of(kind);
  if (row == nullptr) {
    const bool known =
        std::ranges::find(own.rows(), kind, &OwnDataSources::Row::name) != own.rows().end();
    if (!known) fail_unknown(text, own.names());
    static_cast<void>(own.make(text));
    return std::make_shared<const DataSource>(DataSource{.kind = std::string(kind)});
  }
  const bool has_path = row->name != kind;
  const bool has_more = text.size() > kind.size();
  if (has_path ? !has_more : has_more && row->read == nullptr) fail_unknown(text, own.names());
  DataSource source{.kind = std::string(kind)};
  if (!has_path) {
    if (row->read == nullptr) return std::make_shared<const DataSource>(std::move(source));
    Spec spec(text);
    row->read(spec, source);
    spec.finish();
    return std::make_shared<const DataSource>(std::move(source));
  }
  const std::string_view rest = std::string_view(text).substr(kind.size() + 1);
  const std::size_t end = row->read == nullptr ? rest.size() : arguments_begin(rest, kLists);
  if (end == 0) fail_unknown(text, own.names());
  source.path = rest.substr(0, end);
  const bool has_arguments = end < rest.size();
  Spec spec(fmt::format("{}{}{}", kind, has_arguments ? ":" : "",
                        has_arguments ? with_slashes(rest.substr(end + 1)) : ""));
  if (row->read != nullptr) row->read(spec, source);
  spec.finish();
  return std::make_shared<const DataSource>(std::move(source));
}

std::string map_data(const std::string& text, const PathMap& map) {
  if (row_of(kind_of(text)) == nullptr || find_published_data(text) != nullptr) return text;
  const Parsed<DataSource> data = text;
  const DataSource& source = *data;
  if (source.path.empty()) return text;
  std::string mapped = text;
  const std::string path = source.path.string();
  const std::size_t at = source.kind.size() + 1;
  if (source.csv.test) {
    // The test file follows the path, so replacing it first leaves the path's position valid.
    constexpr std::string_view kTest = ",test=";
    const std::size_t test = mapped.find(kTest, at + path.size()) + kTest.size();
    mapped.replace(test, source.csv.test->string().size(), map(*source.csv.test).string());
  }
  return mapped.replace(at, path.size(), map(source.path).string());
}

void require_data_files(const DataSource& source) {
  if (source.path.empty()) return;
  require_visible("--data: ", source.path);
  if (source.csv.test) require_visible("--data: ", *source.csv.test);
  std::error_code ignored;
  if (!source.known.empty() && !std::filesystem::is_directory(source.path, ignored)) {
    throw_error("--data: {} is not in {}; accepted: after `rubato data get {}`", source.known,
                source.path.string(), source.known);
  }
  if (source.kind == "mnist" && !std::filesystem::is_directory(source.path, ignored)) {
    throw_error(
        "--data: no such folder as '{}'; accepted: the folder that holds the IDX files "
        "(train-images-idx3-ubyte[.gz] and so on)",
        source.path.string());
  }
  const auto require_one = [&](const std::filesystem::path& path) {
    if (is_there(path)) return;
    throw_error("--data: no such {} as '{}'; accepted: {}",
                row_of(source.kind)->name.ends_with(":DIR") ? "folder" : "file", path.string(),
                row_of(source.kind)->help);
  };
  require_one(source.path);
  if (source.csv.test) require_one(*source.csv.test);
}

}  // namespace rubato
