// Which pages of this process's memory have been written to, as the system's page tables know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace twofold {

struct MemoryRange {
  uintptr_t begin = 0, end = 0;

  bool meets(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

// The whole pages of a range; empty if it has none.
MemoryRange whole_pages(const void* data, size_t nbytes);

// All take ranges of whole pages. False, or nothing, where the system cannot tell (Linux can from 6.7 on, if the process may
// use userfaultfd), where the range is not watched in this process, and where memory is shared with files or other processes.
// Writes by the system, such as reading from a file into the range, count. Those of a device to pages that it has pinned
// before do not.
bool watch_pages(const MemoryRange& range);
void forget_pages(const MemoryRange& range) noexcept;
// From now on writes are noticed; returns the parts that had been written to, as one step.
std::optional<std::vector<MemoryRange>> restart_pages(const MemoryRange& range);
// Whether it is known that nobody has written since.
bool are_unwritten(const MemoryRange& range);
// Whether only this process can write to a range whose pages have all been read.
bool are_private(const MemoryRange& range);

}  // namespace twofold
