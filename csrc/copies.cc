#include "copies.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "profile.h"

namespace twofold {
namespace {

constexpr int64_t kCopiedBytes = 4096;  // of one work item of a copy
constexpr int64_t kCopyGrain = 16;
constexpr int64_t kPartBytes = 256;  // what it costs to find one part of a copy

#if defined(__x86_64__)
constexpr size_t kStreamedBytes = size_t{1} << 24;  // from here on a copy and its source leave nothing else in a cache

// Past the caches, so that the lines written are not read first: of whole cache lines, to memory that begins where a vector does.
void stream(char* to, const char* from, size_t nbytes) {
  constexpr size_t kLine = 64, kVector = sizeof(__m128i);
  for (size_t line = 0; line < nbytes; line += kLine) {
    __m128i held[kLine / kVector];
    std::memcpy(held, from + line, kLine);
    for (size_t k = 0; k < std::size(held); ++k) _mm_stream_si128(reinterpret_cast<__m128i*>(to + line) + k, held[k]);
  }
  _mm_sfence();
}
#endif

void copy_run(char* to, const char* from, size_t nbytes, size_t whole) {
#if defined(__x86_64__)
  if (whole >= kStreamedBytes && reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) == 0) {
    const size_t lines = nbytes / 64 * 64;
    stream(to, from, lines);
    to += lines, from += lines, nbytes -= lines;
  }
#endif
  std::memcpy(to, from, nbytes);
}

int64_t copy_items(void** buffers, const int64_t* params, int64_t begin, int64_t end) {
  const int64_t first = begin * kCopiedBytes, last = std::min(end * kCopiedBytes, *params);
  copy_run(static_cast<char*>(buffers[0]) + first, static_cast<const char*>(buffers[1]) + first, static_cast<size_t>(last - first),
           static_cast<size_t>(*params));
  return 0;
}

int64_t copy_some(void** buffers, const int64_t*, int64_t begin, int64_t end) {
  const auto* parts = static_cast<const CopiedPart*>(buffers[0]);
  for (int64_t k = begin; k < end; ++k) {
    if (parts[k].nbytes) std::memcpy(parts[k].to, parts[k].from, parts[k].nbytes);
  }
  return 0;
}

}  // namespace

void copy_memory(void* to, const void* from, size_t nbytes) {
  void* buffers[] = {to, const_cast<void*>(from)};  // the kernel only reads it
  const auto size = static_cast<int64_t>(nbytes);
  // pieces would be reported as those of a program
  if (profile::is_on()) {
    std::memcpy(to, from, nbytes);
    return;
  }
  Interrupts interrupts;
  const Interrupts::Held whole(interrupts);
  run_parallel(copy_items, buffers, &size, (size + kCopiedBytes - 1) / kCopiedBytes, 2 * kCopyGrain, interrupts);
}

void copy_parallel(Kernel copy, void* context, int64_t count, int64_t nbytes, Interrupts& interrupts) {
  // pieces would be reported as those of a program
  if (profile::is_on()) copy(&context, nullptr, 0, count);
  else run_parallel(copy, &context, nullptr, count, count * kCopyGrain * kCopiedBytes / (nbytes + count * kPartBytes + 1), interrupts);
}

void copy_parts(const std::vector<CopiedPart>& parts, Interrupts& interrupts) {
  int64_t total = 0;
  for (const CopiedPart& part : parts) total += static_cast<int64_t>(part.nbytes);
  copy_parallel(copy_some, const_cast<CopiedPart*>(parts.data()), static_cast<int64_t>(parts.size()), total, interrupts);
}

}  // namespace twofold
