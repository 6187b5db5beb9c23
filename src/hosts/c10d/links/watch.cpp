#include "watch.hpp"

namespace rubato::c10d_hosts_detail {

Watch::Seen& Watch::seen_of(HostNumber host) {
  const auto [found, is_new] = seen_.try_emplace(host);
  if (is_new) found->second.first_look = found->second.last_sign = Clock::now();
  return found->second;
}

Life Watch::life_of(HostNumber host) {
  Seen& seen = seen_of(host);
  if (seen.is_gone) return Life::gone;
  const auto sign = store_.find(keys_.life(host));
  if (!seen.process) seen.process = store_.find(keys_.process(host));
  const ProcessState process =
      seen.process ? state_of_process(*seen.process) : ProcessState::unknown;
  const Clock::time_point now = Clock::now();
  if (sign != seen.sign) {
    seen.has_moved = seen.has_moved || seen.sign.has_value();
    seen.sign = sign;
    seen.last_sign = now;
  }
  seen.is_gone = sign == kLeft || process == ProcessState::ended;
  // A host that was only stopped, or cut off, may be heard of again.
  if (seen.is_gone || now - seen.last_sign >= kSilence) return Life::gone;
  return process == ProcessState::running || seen.has_moved ? Life::alive : Life::unknown;
}

milliseconds Watch::looked_for(HostNumber host) {
  return std::chrono::floor<milliseconds>(Clock::now() - seen_of(host).first_look);
}

}  // namespace rubato::c10d_hosts_detail
