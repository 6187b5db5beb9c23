#include "c10d/watch.hpp"

#include <fmt/format.h>

namespace rubato::c10d_hosts_detail {

std::string life_key(HostNumber host) {
  return fmt::format("life/{}", host);
}
std::string process_key(HostNumber host) {
  return fmt::format("process/{}", host);
}
std::string greeting_key(HostNumber host) {
  return fmt::format("greeting/{}", host);
}
std::string proof_key(HostNumber host) {
  return fmt::format("proof/{}", host);
}
std::string refusal_key(HostNumber host) {
  return fmt::format("refusal/{}", host);
}

Watch::Seen& Watch::seen_of(HostNumber host) {
  const auto [found, is_new] = seen_.try_emplace(host);
  if (is_new) found->second.first_look = found->second.last_sign = Clock::now();
  return found->second;
}

Watch::Life Watch::life_of(HostNumber host) {
  Seen& seen = seen_of(host);
  if (seen.is_gone) return Life::gone;
  const auto sign = store_.find(life_key(host));
  if (!seen.process) seen.process = store_.find(process_key(host));
  const ProcessState process =
      seen.process ? state_of_process(*seen.process) : ProcessState::unknown;
  const Clock::time_point now = Clock::now();
  if (sign != seen.sign) {
    seen.has_moved = seen.has_moved || seen.sign.has_value();
    seen.sign = sign;
    seen.last_sign = now;
  }
  seen.is_gone =
      sign == kLeft || process == ProcessState::ended || now - seen.last_sign >= kSilence;
  if (seen.is_gone) return Life::gone;
  return process == ProcessState::running || seen.has_moved ? Life::alive : Life::unknown;
}

}  // namespace rubato::c10d_hosts_detail
