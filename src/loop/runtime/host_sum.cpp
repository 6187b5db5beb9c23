// All hosts divide a step in the same way from the same weights (host_runs.hpp), so each of them
// knows the sizes of all messages without asking. begin_step() announces the memory for all
// exchanges of the step, in the order in which they are made: one for each root, by its number on
// its host, then the sums of the parts, then squares and tally. A host that has fewer roots than
// another sends empty messages for the rest, because all hosts make equally many exchanges. The
// values are cut into one part of nearly equal size for each host; reduce() adds this host's part
// of all roots in place, in the order of the whole tree, which gives the bits that a single host
// would get. A change of the generation of hosts is noticed when a step begins, and lays the parts
// out anew.

#include "host_sum.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <rubato/numbers/sums.hpp>

#include "base/core/check.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

std::vector<double> checked_weights(const Hosts& hosts) {
  if (hosts.count() < 1 || hosts.rank() < 0 || hosts.rank() >= hosts.count()) {
    throw_error("host {} of {} hosts; accepted: 0 to one less than their number", hosts.rank(),
                hosts.count());
  }
  std::vector<double> weights = hosts.weights();
  const bool positive =
      std::all_of(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
  if (weights.size() != static_cast<std::size_t>(hosts.count()) || !positive) {
    throw_error("the weights of {} hosts are [{}]; accepted: a number above 0 for each",
                hosts.count(), fmt::join(weights, ", "));
  }
  return weights;
}

}  // namespace

HostLoad load_of_host(const Hosts& hosts, const StepSize& step, std::size_t values,
                      std::size_t value_bytes) {
  const std::vector<double> weights = checked_weights(hosts);
  const auto rank = static_cast<std::size_t>(hosts.rank());
  const SummationTree tree(step.leaves);
  const HostShares shares = shares_of_hosts(step, weights);
  const std::vector<std::int64_t>& borders = shares.leaf_borders;
  std::size_t all_roots = 0;
  std::size_t own_roots = 0;
  HostLoad load{.cores = shares.cores_of(rank)};
  for (std::size_t host = 0; host < weights.size(); ++host) {
    const std::vector<TreeNode> roots = roots_within(tree, borders[host], borders[host + 1]);
    all_roots += roots.size();
    if (host != rank) continue;
    own_roots = roots.size();
    for (const TreeNode root : roots) {
      const auto [first, end] = tree.leaves_below(root);
      load.most_leaves = std::max(load.most_leaves, end - first);
    }
  }
  const double part = static_cast<double>(values) / static_cast<double>(weights.size());
  // A host sends all of its roots, receives its part of everybody's, and keeps the sum.
  const double kept = static_cast<double>(own_roots + 1) * static_cast<double>(values) +
                      static_cast<double>(all_roots) * part;
  load.bytes = kept * static_cast<double>(value_bytes);
  return load;
}

template <class T>
HostSum<T>::HostSum(Hosts& hosts, std::size_t values, NormBlocks norms, HostTally tally)
    : hosts_(hosts),
      values_(values),
      norms_(std::move(norms)),
      tally_(std::move(tally)),
      result_values_(values),
      result_squares_(norms_.squares()),
      result_{.values = result_values_, .scalars = {}, .squares = result_squares_} {
  lay_out();
}

template <class T>
HostSum<T>::~HostSum() {
  if (under_way_) hosts_.abandon();
}

template <class T>
void HostSum<T>::lay_out() {
  under_way_ = false;
  generation_ = hosts_.generation();
  weights_ = checked_weights(hosts_);
  parts_.clear();
  for (int host = 0; host < hosts_.count(); ++host) parts_.push_back(part_of(host));
  out_.resize(parts_.size());
  in_.resize(parts_.size());
  remainders_.resize(parts_.size());
}

template <class T>
typename HostSum<T>::Part HostSum<T>::part_of(int host) const {
  const auto hosts = static_cast<std::size_t>(hosts_.count());
  const auto border = [&](std::size_t i) { return i == hosts ? values_ : values_ / hosts * i; };
  const auto i = static_cast<std::size_t>(host);
  // Squares are summed separately: their blocks need not lie within the part of the values.
  Part part{.begin = border(i), .end = border(i + 1)};
  part.first_square = norms_.first_from(part.begin) * norms_.norms();
  part.end_square = norms_.first_from(part.end) * norms_.norms();
  return part;
}

template <class T>
typename HostSum<T>::Layout HostSum<T>::layout_of(const Part& part) {
  const std::size_t doubles = (part.values() * sizeof(T) + sizeof(double) - 1) / sizeof(double);
  const std::size_t value_bytes = doubles * sizeof(double);
  return {.value_bytes = value_bytes,
          .bytes = value_bytes + (part.squares() + kScalars) * sizeof(double)};
}

template <class T>
std::span<const TreeNode> HostSum<T>::roots_of(std::size_t host) const {
  return std::span(roots_).subspan(first_root_[host], first_root_[host + 1] - first_root_[host]);
}

template <class T>
template <class Call>
void HostSum<T>::with_hosts(const Call& call) {
  try {
    call();
  } catch (...) {
    under_way_ = false;
    throw;
  }
}

template <class T>
std::span<const TreeNode> HostSum<T>::begin_step(const StepSize& step) {
  if (generation_ != hosts_.generation()) lay_out();
  RUBATO_CHECK(!under_way_, "a step is finished before another one begins");
  const auto rank = static_cast<std::size_t>(hosts_.rank());
  const HostShares shares = shares_of_hosts(step, weights_);
  const std::vector<std::int64_t>& borders = shares.leaf_borders;
  cores_ = shares.cores_of(rank);
  tree_ = SummationTree(step.leaves);
  roots_.clear();
  first_root_.assign(1, 0);
  most_roots_ = 0;
  for (std::size_t host = 0; host < parts_.size(); ++host) {
    const std::vector<TreeNode> roots = roots_within(tree_, borders[host], borders[host + 1]);
    roots_.insert(roots_.end(), roots.begin(), roots.end());
    first_root_.push_back(roots_.size());
    most_roots_ = std::max(most_roots_, roots.size());
  }
  for (std::size_t host = 0; host < parts_.size(); ++host) {
    out_[host].resize(roots_of(rank).size() * layout_of(parts_[host]).bytes);
    in_[host].resize(roots_of(host).size() * layout_of(parts_[rank]).bytes);
  }
  under_way_ = true;
  with_hosts([&] {
    receive_roots();
    receive_parts();
  });
  return roots_of(rank);
}

template <class T>
void HostSum<T>::receive_roots() {
  const std::size_t bytes = layout_of(parts_[static_cast<std::size_t>(hosts_.rank())]).bytes;
  std::vector<std::span<std::byte>> in(parts_.size());
  for (std::size_t root = 0; root < most_roots_; ++root) {
    for (std::size_t host = 0; host < in.size(); ++host) {
      const std::span<std::byte> all(in_[host]);
      in[host] =
          root < roots_of(host).size() ? all.subspan(root * bytes, bytes) : std::span<std::byte>();
    }
    hosts_.post_receives(in);
  }
}

template <class T>
void HostSum<T>::receive_parts() {
  std::vector<std::span<std::byte>> in(parts_.size());
  for (std::size_t host = 0; host < in.size(); ++host) {
    in[host] = std::as_writable_bytes(values_of(parts_[host]));
  }
  hosts_.post_receives(in);
  if (!has_remainder()) return;
  for (std::size_t host = 0; host < in.size(); ++host) {
    remainders_[host].resize(remainder_bytes(parts_[host]));
    in[host] = remainders_[host];
  }
  hosts_.post_receives(in);
}

template <class T>
void HostSum<T>::scatter(std::size_t root, const StepSum<T>& sum) {
  std::vector<std::span<const std::byte>> out(parts_.size());
  for (std::size_t host = 0; host < parts_.size(); ++host) {
    const Part& part = parts_[host];
    const Layout layout = layout_of(part);
    const std::span<std::byte> bytes =
        std::span(out_[host]).subspan(root * layout.bytes, layout.bytes);
    const RootView view(bytes.data(), layout, part);
    std::ranges::copy(sum.values().subspan(part.begin, part.values()), view.values.begin());
    std::ranges::copy(sum.squares().subspan(part.first_square, part.squares()),
                      view.squares.begin());
    const StepScalars& scalars = sum.scalars();
    const std::array<double, kScalars> numbers{scalars.loss, scalars.weight,
                                               static_cast<double>(scalars.minibatches),
                                               static_cast<double>(scalars.weighted)};
    std::ranges::copy(numbers, view.scalars.begin());
    out[host] = bytes;
  }
  with_hosts([&] { hosts_.post_sends(out); });
}

template <class T>
StepSum<T> HostSum<T>::finish_step(const ExecutorSeconds& seconds) {
  with_hosts([&] {
    const std::size_t own = roots_of(static_cast<std::size_t>(hosts_.rank())).size();
    const std::vector<std::span<const std::byte>> nothing(parts_.size());
    for (std::size_t root = own; root < most_roots_; ++root) hosts_.post_sends(nothing);
    for (std::size_t root = 0; root < most_roots_; ++root) hosts_.wait();
    reduce();
    all_gather();
  });
  under_way_ = false;
  if (result_.scalars.minibatches != tree_.leaves()) {
    throw_error(
        "the hosts have computed {} minibatches of a step of {}; accepted: each of them once",
        result_.scalars.minibatches, tree_.leaves());
  }
  return {result_, seconds};
}

template <class T>
void HostSum<T>::reduce() {
  const auto rank = static_cast<std::size_t>(hosts_.rank());
  const Part& part = parts_[rank];
  const Layout layout = layout_of(part);
  in_[rank].swap(out_[rank]);
  std::vector<RootView> views;
  views.reserve(roots_.size());
  for (std::size_t host = 0; host < parts_.size(); ++host) {
    for (std::size_t root = 0; root < roots_of(host).size(); ++root) {
      views.emplace_back(in_[host].data() + root * layout.bytes, layout, part);
    }
  }
  sum_roots(tree_, roots_, [&](std::size_t left, std::size_t right) {
    const RootView& into = views[left];
    const RootView& from = views[right];
    add(into.values, std::span<const T>(from.values));
    for (std::size_t i = 0; i < into.squares.size(); ++i) into.squares[i] += from.squares[i];
    for (std::size_t i = 0; i < kScalars; ++i) into.scalars[i] += from.scalars[i];
  });
  const RootView& sum = views.front();
  result_.scalars = {.loss = sum.scalars[0],
                     .weight = sum.scalars[1],
                     .minibatches = static_cast<std::int64_t>(sum.scalars[2]),
                     .weighted = static_cast<std::int64_t>(sum.scalars[3])};
  std::ranges::copy(sum.values, values_of(part).begin());
  std::ranges::copy(sum.squares, squares_of(part).begin());
}

template <class T>
void HostSum<T>::all_gather() {
  const Part& part = parts_[static_cast<std::size_t>(hosts_.rank())];
  hosts_.post_sends(
      std::vector(parts_.size(), std::span<const std::byte>(std::as_bytes(values_of(part)))));
  if (has_remainder()) {
    pack_remainder();
    hosts_.post_sends(std::vector(parts_.size(), std::span<const std::byte>(remainder_)));
  }
  hosts_.wait();
  if (!has_remainder()) return;
  hosts_.wait();
  unpack_remainders();
}

template <class T>
void HostSum<T>::pack_remainder() {
  const Part& part = parts_[static_cast<std::size_t>(hosts_.rank())];
  remainder_.resize(remainder_bytes(part));
  const std::span<std::byte> bytes(remainder_);
  std::ranges::copy(std::as_bytes(squares_of(part)), bytes.begin());
  if (tally_.bytes > 0) tally_.write(bytes.last(tally_.bytes));
}

template <class T>
void HostSum<T>::unpack_remainders() {
  for (std::size_t host = 0; host < parts_.size(); ++host) {
    if (host == static_cast<std::size_t>(hosts_.rank())) continue;
    const std::span<const std::byte> bytes(remainders_[host]);
    const std::span<std::byte> squares = std::as_writable_bytes(squares_of(parts_[host]));
    std::ranges::copy(bytes.first(squares.size()), squares.begin());
    if (tally_.bytes > 0) tally_.add(bytes.last(tally_.bytes));
  }
}

template class HostSum<float>;
template class HostSum<double>;

template <class T>
HostExecutor<T>::HostExecutor(FaultyExecutor<T>& executor, Hosts* hosts, const ReducerSize& size,
                              HostTally tally, OnExchange on_exchange)
    : executor_(executor), hosts_(hosts), on_exchange_(std::move(on_exchange)) {
  if (!are_several(hosts)) return;
  host_sum_.emplace(*hosts, size.values, size.norms, std::move(tally));
}

template <class T>
bool HostExecutor<T>::is_for_all(const StepPlan& step) const {
  return host_sum_ && step.index.value() >= hosts_->steps_done();
}

template <class T>
StepSum<T> HostExecutor<T>::run(StepPlan& step, Assignment assignment, const Substep& substep,
                                const OnFault& on_fault, std::int64_t at_once) {
  if (!is_for_all(step)) return executor_.run(step, assignment, substep, on_fault, at_once);
  const SummationTree tree(step.minibatches);
  ExecutorSeconds seconds;
  std::size_t place = 0;
  const StepSize size{
      .leaves = step.minibatches, .cores = step.cores, .host_cores = step.host_cores};
  for (const TreeNode root : host_sum_->begin_step(size)) {
    const auto [first, end] = tree.leaves_below(root);
    StepPlan part = step;
    part.first_minibatch = MinibatchIndex{step.first_minibatch.value() + first};
    part.minibatches = end - first;
    part.cores = host_sum_->cores();
    const StepSum<T> sum = executor_.run(part, assignment, substep, on_fault, at_once);
    seconds.compute += sum.seconds().compute;
    seconds.reduce += sum.seconds().reduce;
    host_sum_->scatter(place++, sum);
  }
  const Stopwatch exchange;
  StepSum<T> sum = host_sum_->finish_step(seconds);
  if (on_exchange_) on_exchange_(exchange.begun());
  return sum;
}

template class HostExecutor<float>;
template class HostExecutor<double>;

}  // namespace rubato
