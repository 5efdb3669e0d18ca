// Preloaded by test_failing_allocations.py: lets one allocation of C++ fail.
#include <cstdlib>
#include <new>

namespace {

thread_local long left = -1;  // allocations until one fails; negative: none will

bool fails() { return left >= 0 && left-- == 0; }

}  // namespace

extern "C" void fail_after(long count) { left = count; }
extern "C" long allocations_left() { return left; }

void* operator new(std::size_t size) {
  void* memory = fails() ? nullptr : std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return fails() ? nullptr : std::malloc(size ? size : 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
