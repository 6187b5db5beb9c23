#include "state_digest.hpp"

#include <algorithm>
#include <utility>

#include "step_part.hpp"

namespace rubato {

namespace {

std::size_t chunks_of(std::size_t bytes) {
  return (bytes + StateDigest::kChunk - 1) / StateDigest::kChunk;
}

// Appends the eight bytes of a number.
void append(std::string& list, std::uint64_t number) {
  list.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

void StateDigest::add(std::string_view prefix, std::span<const NamedArray> arrays) {
  for (const NamedArray& array : arrays) note(std::string(prefix) + array.name, array.bytes());
  hash();
}

void StateDigest::add(std::string_view name, std::span<const std::byte> bytes) {
  note(std::string(name), bytes);
  hash();
}

void StateDigest::note(std::string name, std::span<const std::byte> bytes) {
  entries_.push_back({.name = std::move(name), .bytes = bytes.size(), .first = chunks_.size()});
  chunks_.resize(chunks_.size() + chunks_of(bytes.size()));
  for (std::size_t begin = 0; begin < bytes.size(); begin += kChunk) {
    waiting_.push_back(bytes.subspan(begin, std::min(kChunk, bytes.size() - begin)));
  }
}

void StateDigest::hash() {
  const std::span<Digest> digests = std::span(chunks_).last(waiting_.size());
  std::size_t bytes = 0;
  for (const auto& chunk : waiting_) bytes += chunk.size();
  // Handing fewer bytes to another thread would cost more than hashing them.
  if (workers_.threads() == 1 || bytes <= 2 * kChunk) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) digests[i] = digest_of(waiting_[i]);
  } else {
    workers_.for_each(static_cast<std::int64_t>(waiting_.size()), [&](std::int64_t index, int) {
      const auto i = static_cast<std::size_t>(index);
      digests[i] = digest_of(waiting_[i]);
    });
  }
  waiting_.clear();
}

Digest StateDigest::finish() {
  std::ranges::sort(entries_, {}, &Entry::name);
  list_.clear();
  for (const Entry& entry : entries_) {
    append(list_, entry.name.size());
    list_ += entry.name;
    append(list_, entry.bytes);
    for (const Digest& chunk : std::span(chunks_).subspan(entry.first, chunks_of(entry.bytes))) {
      append(list_, chunk.high);
      append(list_, chunk.low);
    }
  }
  entries_.clear();
  chunks_.clear();
  return digest_of(std::as_bytes(std::span(list_)));
}

std::vector<std::string_view> digested_prefixes() {
  std::vector<std::string_view> prefixes;
  for (const StepPart& part : step_parts()) {
    if (!part.prefix.empty()) prefixes.push_back(part.prefix);
  }
  return prefixes;
}

StepPart digest_part() {
  return {.columns =
              [] {
                return std::vector<RecordColumn<StepRecord>>{
                    {{.name = "digest",
                      .help = "digest of parameters, buffers and optimizer state after the step, "
                              "with `--digest`"},
                     &StepRecord::digest}};
              },
          .columns_after = "skipped"};
}

Digest digest_of_state(const State& state) {
  Workers here(1);
  StateDigest digest(here);
  const auto is_covered = [prefixes = digested_prefixes()](std::string_view name) {
    return std::ranges::any_of(prefixes,
                               [&](std::string_view prefix) { return name.starts_with(prefix); });
  };
  for (const auto& [name, array] : state.arrays()) {
    if (is_covered(name)) digest.add(name, std::as_bytes(std::span(array.bytes)));
  }
  for (const auto& [name, text] : state.texts()) {
    if (is_covered(name)) digest.add(name, std::as_bytes(std::span(text)));
  }
  return digest.finish();
}

}  // namespace rubato
