// Copies of memory that foreign code may write to: what a trace reads of it is what it held when the call was recorded.
#pragma once

#include "buffer.h"

namespace twofold {

// A copy of what shared memory holds now. One that is asked for again and again is kept, and given for as long as the system's
// page tables say that nobody has written to the memory. May throw std::bad_alloc.
BufferRef copy_of_shared(Buffer* shared);
// Whether `copy` is that of the memory, and nobody has written to it since.
bool is_current_copy(const Buffer* shared, const Buffer* copy);
// The memory ends.
void forget_shared_copy(Buffer* shared) noexcept;

}  // namespace twofold
