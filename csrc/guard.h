// Guards of entry points that C calls: C++ exceptions become Python errors.
#pragma once

#include <Python.h>

#include <type_traits>

namespace twofold {

// In a catch block: sets the Python error of the C++ exception, unless one is set.
void set_error_of_exception();
// Reports an error that cannot be raised, as in a deallocator.
void report_exception();

// Where an error of the package comes back to the user's code: leaves out the frames of the package that raised it, which end
// at the user's line.
void trim_traceback() noexcept;

template <auto function>
struct Guarded;

template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Guarded<function> {
  static Result call(Arguments... arguments) {
    try {
      if constexpr (std::is_pointer_v<Result>) {
        Result result = function(arguments...);
        if (!result) [[unlikely]] trim_traceback();
        return result;
      } else {
        return function(arguments...);
      }
    } catch (...) {
      if constexpr (std::is_void_v<Result>) {
        report_exception();
      } else {
        set_error_of_exception();
        if constexpr (std::is_pointer_v<Result>) return nullptr;
        else return static_cast<Result>(-1);
      }
    }
  }
};

// The function as C may call it: an error is a null pointer or -1, as the interpreter expects.
template <auto function>
inline constexpr auto guarded = &Guarded<function>::call;

// A level of recursion; raises RecursionError if the stack is exhausted.
class Recursion {
 public:
  explicit Recursion(const char* where) : entered_(Py_EnterRecursiveCall(where) == 0) {}
  ~Recursion() { if (entered_) Py_LeaveRecursiveCall(); }
  Recursion(const Recursion&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  const bool entered_;
};

// As an entry of a table of slots, and of a table of methods that do not take (self, arguments).
template <auto function>
void* slot() { return reinterpret_cast<void*>(guarded<function>); }
template <auto function>
PyCFunction method() { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(guarded<function>)); }

}  // namespace twofold
