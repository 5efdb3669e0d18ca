#include "untraced.h"

namespace nb = nanobind;

namespace twofold {
namespace {

void hide(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030B0000
  PyThreadState_EnterTracing(thread);
#else
  thread->tracing++;
  thread->cframe->use_tracing = 0;
#endif
}

void show(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030B0000
  PyThreadState_LeaveTracing(thread);
#else
  thread->tracing--;
  thread->cframe->use_tracing = thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr;
#endif
}

struct Hidden {
  PyThreadState* thread = PyThreadState_Get();
  Hidden() { hide(thread); }
  ~Hidden() { show(thread); }
};

struct Shown {
  PyThreadState* thread = PyThreadState_Get();
  Shown() { show(thread); }
  ~Shown() { hide(thread); }
};

}  // namespace

nb::object call_untraced(nb::callable function, nb::args arguments, nb::kwargs named) {
  Hidden hidden;
  return function(*arguments, **named);
}

nb::object call_traced(nb::callable function, nb::args arguments, nb::kwargs named) {
  Shown shown;
  return function(*arguments, **named);
}

int hide_frames(int change) {
  PyThreadState* thread = PyThreadState_Get();
  for (; change > 0; --change) hide(thread);
  for (; change < 0 && thread->tracing > 0; ++change) show(thread);
  return thread->tracing;
}

}  // namespace twofold
