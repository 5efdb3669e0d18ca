#include <Python.h>
#include <frameobject.h>

#include "location.h"

#include <unordered_map>
#include <vector>

namespace twofold {
namespace {

struct Location {
  PyObject* code;
  int position;  // instruction offset, or the line where the interpreter gives no offset

  bool operator==(const Location&) const = default;
};

struct LocationHash {
  size_t operator()(const Location& l) const {
    return (reinterpret_cast<size_t>(l.code) >> 4) * 31 + static_cast<size_t>(l.position);
  }
};

std::string& package_directory() {
  static auto& directory = *new std::string("\x01");
  return directory;
}
std::vector<Location>& table() {
  static auto& locations = *new std::vector<Location>(1, Location{nullptr, 0});
  return locations;
}

std::string file_of(PyObject* code) {
  std::string out;
  if (PyObject* name = PyObject_GetAttrString(code, "co_filename")) {
    if (const char* text = PyUnicode_AsUTF8(name)) out = text;
    Py_DECREF(name);
  }
  PyErr_Clear();
  return out;
}

// Code objects are kept alive by the cache, so an address never comes to mean another one.
bool is_inside(PyObject* code) {
  static auto& known = *new std::unordered_map<PyObject*, bool>();
  auto found = known.find(code);
  if (found != known.end()) return found->second;
  bool inside = file_of(code).rfind(package_directory(), 0) == 0;
  Py_INCREF(code);
  return known[code] = inside;
}

int line_of(const Location& location) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyCode_Addr2Line(reinterpret_cast<PyCodeObject*>(location.code), location.position);
#else
  return location.position;
#endif
}

}  // namespace

void set_package_directory(const char* directory) { package_directory() = directory; }

uint32_t capture_location() {
  static auto& known = *new std::unordered_map<Location, uint32_t, LocationHash>();
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return 0;
  Py_INCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // the frame keeps it
    if (!is_inside(reinterpret_cast<PyObject*>(code))) break;
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  if (!frame) return 0;
  PyCodeObject* code = PyFrame_GetCode(frame);
#if PY_VERSION_HEX >= 0x030B0000
  int position = PyFrame_GetLasti(frame);
#else
  int position = PyFrame_GetLineNumber(frame);
#endif
  Py_DECREF(frame);
  Py_DECREF(code);
  Location location{reinterpret_cast<PyObject*>(code), position};
  auto [slot, fresh] = known.try_emplace(location, static_cast<uint32_t>(table().size()));
  if (fresh) table().push_back(location);
  return slot->second;
}

std::string location_text(uint32_t location) {
  if (location == 0 || location >= table().size()) return "";
  const Location& l = table()[location];
  std::string file = file_of(l.code);
  size_t slash = file.find_last_of("/\\");
  return (slash == std::string::npos ? file : file.substr(slash + 1)) + ":" + std::to_string(line_of(l));
}

PyObject* location_tuple(uint32_t location) {
  if (location == 0 || location >= table().size()) Py_RETURN_NONE;
  const Location& l = table()[location];
  PyObject* name = PyObject_GetAttrString(l.code, "co_name");
  PyObject* file = PyObject_GetAttrString(l.code, "co_filename");
  if (!name || !file) {
    Py_XDECREF(name);
    Py_XDECREF(file);
    return nullptr;
  }
  return Py_BuildValue("NiN", file, line_of(l), name);
}

}  // namespace twofold
