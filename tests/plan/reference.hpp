#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <openssl/sha.h>

#include <rubato/steps/trace.hpp>

namespace rubato::test {

/// The cases of partition.json, as its README describes them; null when the file is not there.
inline nlohmann::json partition_reference() {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/partition.json");
  return file ? nlohmann::json::parse(file) : nlohmann::json();
}

inline std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

inline Trace reference_trace(const nlohmann::json& partition) {
  std::vector<TraceStep> steps;
  for (const std::int64_t batch_size : partition.at("trace")) {
    steps.push_back({batch_size, std::nullopt});
  }
  return Trace(std::move(steps), TraceEnd::error, partition.at("name"));
}

/// What one rank does in one epoch, from whatever is under test.
struct RankWork {
  /// The minibatches of every step.
  std::vector<std::vector<std::int64_t>> assignments{};
  /// The samples of every minibatch, in the order of the assignments.
  std::vector<std::vector<std::int64_t>> indices{};
};

/// The work of a rank as the original's sampler puts it out.
struct OriginalRank {
  std::int64_t minibatches = 0;
  std::vector<std::int64_t> indices{};
};

/// The original feeds an idle core one dummy minibatch of index 0.
inline OriginalRank with_dummies(const RankWork& work, std::int64_t minibatch_size) {
  OriginalRank rank;
  auto minibatch = work.indices.begin();
  for (const auto& step : work.assignments) {
    if (step.empty()) {
      rank.indices.insert(rank.indices.end(), static_cast<std::size_t>(minibatch_size), 0);
      ++rank.minibatches;
    }
    for (std::size_t i = 0; i < step.size(); ++i, ++minibatch, ++rank.minibatches) {
      rank.indices.insert(rank.indices.end(), minibatch->begin(), minibatch->end());
    }
  }
  return rank;
}

/// What differs between `work` and a rank of the reference; empty when nothing does.
inline std::string difference(const RankWork& work, const nlohmann::json& reference,
                              std::int64_t minibatch_size) {
  std::string found;
  const auto compare = [&](const char* what, const nlohmann::json& ours) {
    if (reference.contains(what) && reference.at(what) != ours) {
      found += fmt::format("{}: {} instead of {}\n", what, ours.dump(), reference.at(what).dump());
    }
  };
  const OriginalRank rank = with_dummies(work, minibatch_size);
  auto first = rank.indices;
  first.resize(std::min<std::size_t>(first.size(), reference.at("first_indices").size()));
  std::vector<std::size_t> substeps;
  for (const auto& step : work.assignments) substeps.push_back(step.size());
  substeps.resize(std::min<std::size_t>(substeps.size(), 20));

  compare("assignments", work.assignments);
  compare("assignments_sha256", sha256_hex(nlohmann::json(work.assignments).dump()));
  compare("num_minibatches_incl_idle", rank.minibatches);
  compare("first_indices", first);
  compare("indices_sha256", sha256_hex(fmt::format("{}", fmt::join(rank.indices, ","))));
  compare("substeps_first20", substeps);
  return found;
}

}  // namespace rubato::test
