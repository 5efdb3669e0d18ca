// MemoryError: how much was asked for, for what, and by which line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "location.h"

namespace twofold {

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(size_t nbytes) : nbytes(nbytes) {}
  const char* what() const noexcept override { return "out of memory"; }
  const size_t nbytes;
};

// Sets the MemoryError; `what` tells what the memory is for, an unknown provenance stands for the line that is running.
void raise_out_of_memory(size_t nbytes, const std::string& what, Provenance provenance = {});

}  // namespace twofold
