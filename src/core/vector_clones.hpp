#pragma once

// RUBATO_VECTOR_CLONES before a plain function: one clone of it for each instruction set, picked
// when the program is loaded. Not under the sanitizers, whose run time is not up when the picking
// runs.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUBATO_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RUBATO_SANITIZED
#endif
#endif

#if defined(__x86_64__) && !defined(RUBATO_SANITIZED)
#define RUBATO_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RUBATO_VECTOR_CLONES
#endif
