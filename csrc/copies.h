// Copies of memory by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads.h"

namespace twofold {

// std::memcpy, shared between threads where there is much to copy.
void copy_memory(void* to, const void* from, size_t nbytes);

// Runs a kernel that copies `count` parts, of `nbytes` bytes in all; the context is its only buffer.
void copy_parallel(Kernel copy, void* context, int64_t count, int64_t nbytes, Interrupts& interrupts);

// A part of what is copied together.
struct CopiedPart {
  char* to;
  const char* from;
  size_t nbytes;
};

// std::memcpy of each part, shared between threads where there is much to copy.
void copy_parts(const std::vector<CopiedPart>& parts, Interrupts& interrupts);

}  // namespace twofold
