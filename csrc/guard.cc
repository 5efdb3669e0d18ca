#include "guard.h"

#include <Python.h>
#include <cxxabi.h>
#include <frameobject.h>

#include <exception>
#include <new>

#include "interrupts.h"
#include "location.h"
#include "out_of_memory.h"
#include "owned.h"
#include "program.h"
#include "op_instance.h"

namespace twofold {

void set_error_of_exception() {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    stop_here();
  } catch (const PythonError&) {
  } catch (const OutOfMemory& error) {
    if (!PyErr_Occurred()) raise_out_of_memory(error.nbytes, "a tensor");
  } catch (const std::bad_alloc&) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "internal error: %s", error.what());
  } catch (...) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "internal error of unknown kind");
  }
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "internal error: a Python error was announced but is not set");
}

void trim_traceback() noexcept {
  if (!PyErr_Occurred() || !hooks.error_class || !PyErr_ExceptionMatches(hooks.error_class)) return;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Owned here(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  auto* first = reinterpret_cast<PyTracebackObject*>(traceback);
  const bool to_user = !is_package_code(here.object);
  if (to_user) {
    for (; first; first = first->tb_next) {
      const Owned code(reinterpret_cast<PyObject*>(PyFrame_GetCode(first->tb_frame)));
      if (!is_package_code(code.object)) break;
    }
    const bool ends_here = first && !first->tb_next && first->tb_frame == frame;  // which the interpreter adds itself
    PyObject* rest = ends_here ? nullptr : Py_XNewRef(reinterpret_cast<PyObject*>(first));
    Py_XDECREF(traceback);
    traceback = rest;
    if (value) static_cast<void>(PyException_SetTraceback(value, traceback ? traceback : Py_None));
  }
  PyErr_Restore(type, value, traceback);
}

void report_exception() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  set_error_of_exception();
  PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, traceback);
}

}  // namespace twofold
