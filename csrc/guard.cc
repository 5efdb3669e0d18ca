#include "guard.h"

#include <cxxabi.h>

#include <exception>
#include <new>

#include "interrupts.h"
#include "out_of_memory.h"
#include "program.h"

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

void report_exception() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  set_error_of_exception();
  PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, traceback);
}

}  // namespace twofold
