#pragma once

namespace rubato::test {

// Whether AddressSanitizer or ThreadSanitizer is in the program. They map terabytes of addresses
// when it starts, so that nothing can be tried out under `ulimit -v`, and take many times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace rubato::test
