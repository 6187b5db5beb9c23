// An exchange is a Round: post_receives() appends one, post_sends() sends the first that is not
// sent yet, and wait() finishes the oldest, so receives may be posted several exchanges ahead. All
// headers have one tag and are matched in the order of sending; the tag of a message is a hash of
// the exchange's number and the length, and check() then says which host differs. After any
// exception, attempt() abandons the group before the exception leaves, as gloo would otherwise
// still write into the caller's memory. The constructor ends with an empty exchange, so that all
// pairs are connected when it returns.

#include "group.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <rubato/loop/hosts.hpp>

#include "base/core/check.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"
#include "peer_connector.hpp"
#include "store.hpp"

namespace rubato::hosts_detail {

namespace {

// Tag of all headers, which are taken one after the other, in the order in which they were sent.
constexpr int kHeaderTag = 0;

// Tag of a message; never kHeaderTag.
int tag_of(std::uint64_t exchange, std::size_t bytes) {
  constexpr std::uint64_t kTags = 0x7fff'fffe;
  return static_cast<int>(1 + mixed(mixed(exchange) ^ bytes) % kTags);
}

template <class T>
at::Tensor tensor_of(std::span<T> bytes) {
  // c10d has no read-only tensors; it does not write to those that are sent.
  void* const data = const_cast<std::remove_const_t<T>*>(bytes.data());
  return at::from_blob(data, {static_cast<std::int64_t>(bytes.size())}, at::kByte);
}

// Runs `call` and rethrows its exceptions as HostLost, with the name of the host.
template <class Call>
auto of_host(const std::string& name, const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw HostLost(fmt::format("{} is lost: {}", name, reason_of(error)));
  }
}

}  // namespace

Group::Group(const c10::intrusive_ptr<::c10d::Store>& store, std::vector<std::string> names,
             const Options& options)
    : names_(std::move(names)),
      rank_(static_cast<std::size_t>(options.rank)),
      timeout_(options.timeout) {
  const milliseconds patience =
      options.connection.count() > 0 ? options.connection : options.timeout;
  auto gloo = ::c10d::ProcessGroupGloo::Options::create(patience);
  gloo->devices = {gloo_device({.rank = rank_,
                                .names = names_,
                                .interface = options.interface,
                                .token = options.token,
                                .patience = patience,
                                .look = options.look})};
  // These threads run collectives only, which are not used.
  gloo->threads = 1;
  try {
    group_ = c10::make_intrusive<::c10d::ProcessGroupGloo>(store, options.rank,
                                                           static_cast<int>(names_.size()), gloo);
  } catch (const std::exception& error) {
    throw HostLost(fmt::format("the hosts cannot connect with each other: {}", reason_of(error)));
  }
  static_cast<void>(exchange(std::vector<std::span<const std::byte>>(names_.size()),
                             std::vector<std::span<std::byte>>(names_.size()), 0));
}

template <class Call>
auto Group::attempt(const Call& call) {
  if (!failure_.empty()) throw HostLost(failure_);
  try {
    return call();
  } catch (const std::exception& error) {
    abandon(error.what());
    throw;
  }
}

void Group::post_receives(std::span<const std::span<std::byte>> in) {
  attempt([&] {
    const std::size_t hosts = names_.size();
    receive_all(rounds_.emplace_back(Round{.number = ++posted_,
                                           .in = {in.begin(), in.end()},
                                           .sent = std::vector<Header>(hosts),
                                           .received = std::vector<Header>(hosts)}));
  });
}

void Group::post_sends(std::span<const std::span<const std::byte>> out, std::uint64_t flags) {
  attempt([&] {
    RUBATO_CHECK(sent_ < rounds_.size(), "post_receives() comes before post_sends()");
    Round& round = rounds_[sent_++];
    round.flags = flags;
    send_all(round, out);
  });
}

GroupFlags Group::wait() {
  return attempt([&] {
    RUBATO_CHECK(sent_ > 0, "post_sends() comes before wait()");
    const GroupFlags all_flags = finish(rounds_.front());
    rounds_.pop_front();
    --sent_;
    return all_flags;
  });
}

GroupFlags Group::exchange(std::span<const std::span<const std::byte>> out,
                           std::span<const std::span<std::byte>> in, std::uint64_t flags) {
  RUBATO_CHECK(rounds_.empty(), "exchange() is not called while another exchange is under way");
  post_receives(in);
  post_sends(out, flags);
  return wait();
}

void Group::abandon(std::string_view why) noexcept {
  failure_ = why;
  rounds_.clear();
  sent_ = 0;
  group_.reset();
}

void Group::receive_all(Round& round) {
  for (std::size_t host = 0; host < names_.size(); ++host) {
    if (host == rank_) continue;
    round.headers.push_back(
        receive(host, std::as_writable_bytes(std::span(&round.received[host], 1)), kHeaderTag));
    const std::span<std::byte> in = round.in[host];
    if (!in.empty()) round.messages.push_back(receive(host, in, tag_of(round.number, in.size())));
  }
}

void Group::send_all(Round& round, std::span<const std::span<const std::byte>> out) {
  for (std::size_t host = 0; host < names_.size(); ++host) {
    if (host == rank_) continue;
    const std::size_t bytes = out[host].size();
    round.sent[host] = {.exchange = round.number, .bytes = bytes, .flags = round.flags};
    round.sends.push_back(send(host, std::as_bytes(std::span(&round.sent[host], 1)), kHeaderTag));
    if (bytes > 0) round.sends.push_back(send(host, out[host], tag_of(round.number, bytes)));
  }
}

GroupFlags Group::finish(const Round& round) const {
  const Clock::time_point deadline = Clock::now() + timeout_;
  GroupFlags all_flags;
  const auto add = [&all_flags](std::uint64_t flags) {
    all_flags.flags |= flags;
    all_flags.leaving += (flags & kLeaveFlag) != 0 ? 1U : 0U;
  };
  add(round.flags);
  all_flags.leaves = all_flags.leaving > 0;
  for (const Pending& header : round.headers) {
    wait(header, deadline);
    check(round, header.host);
    add(round.received[header.host].flags);
  }
  for (const auto* const pending : {&round.messages, &round.sends}) {
    for (const Pending& work : *pending) wait(work, deadline);
  }
  return all_flags;
}

Group::Pending Group::send(std::size_t host, std::span<const std::byte> bytes, int tag) {
  std::vector<at::Tensor> tensors{tensor_of(bytes)};
  return of_host(names_[host], [&]() -> Pending {
    return {host, group_->send(tensors, static_cast<int>(host), tag)};
  });
}

Group::Pending Group::receive(std::size_t host, std::span<std::byte> bytes, int tag) {
  std::vector<at::Tensor> tensors{tensor_of(bytes)};
  return of_host(names_[host], [&]() -> Pending {
    return {host, group_->recv(tensors, static_cast<int>(host), tag)};
  });
}

void Group::wait(const Pending& pending, Clock::time_point deadline) const {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  of_host(names_[pending.host], [&] {
    // Messages that have arrived are taken even after the deadline; a timeout of 0 would wait for
    // ever.
    return pending.work->wait(std::max(left, milliseconds(1)));
  });
}

void Group::check(const Round& round, std::size_t host) const {
  const Header& received = round.received[host];
  const std::size_t bytes = round.in[host].size();
  if (received.exchange == round.number && received.bytes == bytes) return;
  throw_error(
      "{} sends {} bytes in exchange {}; this host is in exchange {}, of {} bytes; accepted: the "
      "same training on all hosts",
      names_[host], received.bytes, received.exchange, round.number, bytes);
}

}  // namespace rubato::hosts_detail
