#pragma once

// Reads event files by the description of their format: TFRecord, the wire format of protocol
// buffers, CRC-32C bit by bit. It shares no code and no library with the writer.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/temp_folder.hpp"

namespace rubato::test {

inline std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

/// Takes numbers and bytes off the front of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return text_.empty(); }
  std::string_view take(std::size_t count) {
    if (count > text_.size()) throw std::runtime_error("the text ends too early");
    const std::string_view taken = text_.substr(0, count);
    text_.remove_prefix(count);
    return taken;
  }
  template <class T>
  T take_number() {
    T number{};
    std::memcpy(&number, take(sizeof(T)).data(), sizeof(T));
    return number;
  }
  std::uint64_t take_varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }

 private:
  std::string_view text_;
};

/// A message: its fields by their numbers, in order. Bytes of what has a length, else a number's.
class Message {
 public:
  explicit Message(std::string_view text) {
    for (Cursor cursor(text); !cursor.at_end();) {
      const std::uint64_t key = cursor.take_varint();
      std::string value;
      switch (key & 7) {
        case 0: {
          const std::uint64_t number = cursor.take_varint();
          value.assign(reinterpret_cast<const char*>(&number), sizeof(number));
          break;
        }
        case 1:
          value = cursor.take(8);
          break;
        case 2:
          value = cursor.take(cursor.take_varint());
          break;
        case 5:
          value = cursor.take(4);
          break;
        default:
          throw std::runtime_error("no such type on the wire");
      }
      fields_.emplace_back(static_cast<int>(key >> 3), std::move(value));
    }
  }

  [[nodiscard]] std::vector<std::string> all(int field) const {
    std::vector<std::string> values;
    for (const auto& [number, value] : fields_) {
      if (number == field) values.push_back(value);
    }
    return values;
  }
  [[nodiscard]] bool has(int field) const { return !all(field).empty(); }
  /// Empty where the field is absent, as what has its default is.
  [[nodiscard]] std::string text(int field) const {
    const auto values = all(field);
    return values.empty() ? std::string() : values.back();
  }
  template <class T>
  [[nodiscard]] T number(int field) const {
    const std::string bytes = text(field);
    return bytes.empty() ? T{} : Cursor(bytes).take_number<T>();
  }
  /// Of a packed list.
  [[nodiscard]] std::vector<double> doubles(int field) const {
    std::vector<double> numbers;
    const std::string bytes = text(field);
    for (Cursor cursor(bytes); !cursor.at_end();) numbers.push_back(cursor.take_number<double>());
    return numbers;
  }

 private:
  std::vector<std::pair<int, std::string>> fields_;
};

struct ReadHistogram {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> limits{};
  std::vector<double> counts{};
};

struct ReadHparams {
  std::map<std::string, std::variant<bool, double, std::string>> values;
  double start_seconds = 0;
  /// Where the run has ended.
  std::optional<std::int64_t> end_status;
  /// Of an experiment: the hyperparameters with their types' numbers, and the metrics' tags.
  std::vector<std::pair<std::string, std::int64_t>> columns;
  std::vector<std::string> metrics;
};

struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version{};
  bool restart = false;
  std::vector<std::pair<std::string, float>> scalars{};
  std::vector<std::pair<std::string, ReadHistogram>> histograms{};
  std::optional<ReadHparams> hparams{};
};

inline ReadHparams read_hparams(const Message& plugin) {
  if (plugin.text(1) != "hparams") throw std::runtime_error("another plugin");
  const std::string content_bytes = plugin.text(2);
  const Message content(content_bytes);
  if (content.number<std::uint64_t>(1) != 0) throw std::runtime_error("another version of hparams");
  ReadHparams hparams;
  const Message start(content.text(3));
  hparams.start_seconds = start.number<double>(5);
  for (const std::string& bytes : start.all(1)) {
    const Message entry(bytes);
    const Message value(entry.text(2));
    auto& read = hparams.values[entry.text(1)];
    if (value.has(2)) read = value.number<double>(2);
    if (value.has(3)) read = value.text(3);
    if (value.has(4)) read = value.number<std::uint64_t>(4) != 0;
  }
  const Message experiment(content.text(2));
  for (const std::string& bytes : experiment.all(4)) {
    const Message info(bytes);
    hparams.columns.emplace_back(info.text(1), info.number<std::int64_t>(4));
  }
  for (const std::string& bytes : experiment.all(5)) {
    hparams.metrics.push_back(Message(Message(bytes).text(1)).text(2));
  }
  if (content.has(4)) hparams.end_status = Message(content.text(4)).number<std::int64_t>(1);
  return hparams;
}

inline void read_value(const Message& value, ReadEvent& event) {
  const std::string tag = value.text(1);
  if (value.has(2)) event.scalars.emplace_back(tag, value.number<float>(2));
  if (value.has(5)) {
    const Message histogram(value.text(5));
    event.histograms.emplace_back(tag, ReadHistogram{.min = histogram.number<double>(1),
                                                     .max = histogram.number<double>(2),
                                                     .num = histogram.number<double>(3),
                                                     .sum = histogram.number<double>(4),
                                                     .sum_squares = histogram.number<double>(5),
                                                     .limits = histogram.doubles(6),
                                                     .counts = histogram.doubles(7)});
  }
  if (value.has(9)) {
    if (!tag.starts_with("_hparams_/")) throw std::runtime_error("an unknown tag " + tag);
    event.hparams = read_hparams(Message(Message(value.text(9)).text(1)));
  }
}

inline ReadEvent read_event(std::string_view record) {
  const Message message(record);
  ReadEvent event{.wall_time = message.number<double>(1),
                  .step = message.number<std::int64_t>(2),
                  .version = message.text(3),
                  .restart = Message(message.text(7)).number<std::uint64_t>(1) == 1};
  for (const std::string& value : Message(message.text(5)).all(1)) {
    read_value(Message(value), event);
  }
  return event;
}

/// The events of a file. Throws where a checksum is wrong, or a record is not whole.
inline std::vector<ReadEvent> read_events(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  std::vector<ReadEvent> events;
  for (Cursor cursor(text); !cursor.at_end();) {
    const std::string_view length_bytes = cursor.take(8);
    if (cursor.take_number<std::uint32_t>() != masked_crc32c(length_bytes)) {
      throw std::runtime_error("the checksum of a length is wrong");
    }
    const std::string_view record = cursor.take(Cursor(length_bytes).take_number<std::uint64_t>());
    if (cursor.take_number<std::uint32_t>() != masked_crc32c(record)) {
      throw std::runtime_error("the checksum of a record is wrong");
    }
    events.push_back(read_event(record));
  }
  return events;
}

/// The event files of a folder, in the order in which TensorBoard reads them.
inline std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Every event of them.
inline std::vector<ReadEvent> read_folder(const std::filesystem::path& folder) {
  std::vector<ReadEvent> all;
  for (const auto& file : event_files(folder)) {
    for (ReadEvent& event : read_events(file)) all.push_back(std::move(event));
  }
  return all;
}

/// The points of each curve, in the order of the files.
using Curves = std::map<std::string, std::vector<std::pair<std::int64_t, float>>>;
inline Curves curves_of(const std::vector<ReadEvent>& events) {
  Curves curves;
  for (const ReadEvent& event : events) {
    for (const auto& [tag, value] : event.scalars) curves[tag].emplace_back(event.step, value);
  }
  return curves;
}

}  // namespace rubato::test
