#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/loop/hosts.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr char kEnd = '\0';

std::string packed(std::span<const NamedText> texts) {
  std::string bytes;
  for (const auto& [name, text] : texts) {
    if (name.find(kEnd) != std::string::npos || text.find(kEnd) != std::string::npos) {
      throw_error("the text '{}' has a byte that is zero; accepted: one without", name);
    }
    bytes += name;
    bytes += kEnd;
    bytes += text;
    bytes += kEnd;
  }
  if (bytes.size() > kMaxEqualBytes) {
    throw_error("{} bytes of texts for other hosts; accepted: up to {}", bytes.size(),
                kMaxEqualBytes);
  }
  return bytes;
}

// Accepts any bytes: a text without an end extends to the last byte.
std::vector<NamedText> unpacked(std::string_view bytes) {
  const auto take = [&bytes] {
    const std::size_t end = std::min(bytes.find(kEnd), bytes.size());
    std::string text(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    return text;
  };
  std::vector<NamedText> texts;
  while (!bytes.empty()) {
    std::string name = take();
    texts.push_back({.name = std::move(name), .text = take()});
  }
  return texts;
}

// Sends `bytes` to every other host, and receives sizes[h] bytes from each.
std::vector<std::vector<std::byte>> exchanged(Hosts& hosts, std::span<const std::byte> bytes,
                                              const std::vector<std::size_t>& sizes) {
  const std::vector<std::span<const std::byte>> out(sizes.size(), bytes);
  std::vector<std::vector<std::byte>> taken(sizes.begin(), sizes.end());
  const std::vector<std::span<std::byte>> in(taken.begin(), taken.end());
  hosts.exchange(out, in);
  return taken;
}

std::vector<std::size_t> exchanged_sizes(Hosts& hosts, std::uint64_t size) {
  const auto count = static_cast<std::size_t>(hosts.count());
  const auto sizes =
      exchanged(hosts, std::as_bytes(std::span(&size, 1)), std::vector(count, sizeof(size)));
  std::vector<std::size_t> read(count, static_cast<std::size_t>(size));
  for (std::size_t host = 0; host < count; ++host) {
    if (static_cast<int>(host) == hosts.rank()) continue;
    std::copy_n(sizes[host].data(), sizeof(size),
                std::as_writable_bytes(std::span(&size, 1)).data());
    // Numbers from other hosts are not trusted.
    if (size > kMaxEqualBytes) {
      throw_error("host {} wants to compare {} bytes of texts; accepted: up to {}", host, size,
                  kMaxEqualBytes);
    }
    read[host] = static_cast<std::size_t>(size);
  }
  return read;
}

}  // namespace

std::vector<double> Hosts::weights() const {
  return std::vector<double>(static_cast<std::size_t>(count()), 1.0);
}

std::string difference_between(std::span<const NamedText> ours, std::span<const NamedText> theirs) {
  const auto text_in = [](std::span<const NamedText> texts, const std::string& name) {
    const auto found = std::ranges::find(texts, name, &NamedText::name);
    return found == texts.end() ? std::string("none") : found->text;
  };
  for (const auto& texts : {ours, theirs}) {
    for (const auto& [name, text] : texts) {
      const std::string there = text_in(theirs, name);
      const std::string here = text_in(ours, name);
      if (there != here) return fmt::format("another {} ({}, here {})", name, there, here);
    }
  }
  return {};
}

void Hosts::post_receives(std::span<const std::span<std::byte>> in) {
  under_way_.push_back({.in = {in.begin(), in.end()}});
}

void Hosts::post_sends(std::span<const std::span<const std::byte>> out) {
  const auto next =
      std::ranges::find_if(under_way_, [](const UnderWay& one) { return !one.out.has_value(); });
  RUBATO_CHECK(next != under_way_.end(), "receives are posted before sends");
  next->out.emplace(out.begin(), out.end());
}

void Hosts::wait() {
  RUBATO_CHECK(!under_way_.empty() && under_way_.front().out, "sends are posted before wait()");
  const UnderWay next = std::move(under_way_.front());
  under_way_.pop_front();
  try {
    exchange(*next.out, next.in);
  } catch (...) {
    under_way_.clear();
    throw;
  }
}

void Hosts::abandon() noexcept {
  under_way_.clear();
}

void require_equal(Hosts& hosts, std::span<const NamedText> texts) {
  const std::string own = packed(texts);
  const auto sizes = exchanged_sizes(hosts, own.size());
  const auto all = exchanged(hosts, std::as_bytes(std::span(own)), sizes);
  for (std::size_t host = 0; host < all.size(); ++host) {
    if (static_cast<int>(host) == hosts.rank()) continue;
    const std::string_view theirs(
        static_cast<const char*>(static_cast<const void*>(all[host].data())), all[host].size());
    if (theirs == own) continue;
    throw_error("host {} has {}; accepted: the same on all hosts", host,
                difference_between(texts, unpacked(theirs)));
  }
}

}  // namespace rubato
