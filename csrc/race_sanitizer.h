// What kernels access, for the sanitizer of data races (make sanitize SANITIZER=thread): machine code that is made at run time is not
// instrumented.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_read_range(void* memory, unsigned long nbytes);
extern "C" void __tsan_write_range(void* memory, unsigned long nbytes);
#endif

namespace twofold::race_sanitizer {

#if defined(__SANITIZE_THREAD__)
constexpr bool kIsOn = true;
inline void note_read(void* memory, size_t nbytes) { __tsan_read_range(memory, nbytes); }
inline void note_written(void* memory, size_t nbytes) { __tsan_write_range(memory, nbytes); }
#else
constexpr bool kIsOn = false;
inline void note_read(void*, size_t) {}
inline void note_written(void*, size_t) {}
#endif

}  // namespace twofold::race_sanitizer
