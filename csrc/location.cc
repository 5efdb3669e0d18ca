#include <Python.h>
#include <frameobject.h>

#include "location.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twofold {
namespace {

constexpr size_t kMostFrames = 16;   // of the user's code in one chain
constexpr size_t kMostLevels = 48;   // frames walked for them, those of the package included
constexpr ptrdiff_t kMostOfOne = 4;  // activations of one function at which a chain is truncated, so that recursion makes few chains
constexpr size_t kMostDeep = 512;    // of the user's code, while chains are not truncated
constexpr size_t kMostNamed = 8;     // callers in a message
// A limit for programs that generate code without end: later code has the location of its caller.
constexpr size_t kMostCodes = 1 << 17;
constexpr size_t kMostLocations = 1 << 20;
constexpr uint32_t kNotKept = UINT32_MAX;

thread_local uint32_t scope = 0;

// The number of a code object, and in the lower half the instruction offset (the line where the interpreter gives no offset).
using Site = uint64_t;

struct Code {
  PyObject* object;  // kept alive, so that its address is not reused
  uint32_t newest;   // the location in this code that was interned last
  bool is_module;
};

struct Location {
  Site site;
  uint32_t parent;  // where this code was called; 0 at the end of the chain
  uint32_t older;   // the location in the same code that was interned before
  uint32_t scope;   // the scope, see set_scope
};

auto& codes = *new std::vector<Code>(1);          // 0: code of the package
auto& locations = *new std::vector<Location>(1);  // 0: unknown

uint32_t code_of(Site site) { return static_cast<uint32_t>(site >> 32); }

const Code& code_at(uint32_t location) { return codes[code_of(locations[location].site)]; }

std::string& package_directory() {
  static auto& directory = *new std::string("\x01");
  return directory;
}

std::string text_attribute(PyObject* code, const char* name) {
  std::string out;
  if (PyObject* value = PyObject_GetAttrString(code, name)) {
    if (const char* text = PyUnicode_AsUTF8(value)) out = text;
    Py_DECREF(value);
  }
  PyErr_Clear();
  return out;
}

// Adds a code object at first sight; 0 if it belongs to the package, kNotKept if there are too many.
uint32_t number_of(PyObject* code) {
  static auto& numbers = *new std::unordered_map<PyObject*, uint32_t>();
  auto found = numbers.find(code);
  if (found != numbers.end()) return found->second;
  if (numbers.size() >= kMostCodes) return kNotKept;
  bool inside = text_attribute(code, "co_filename").rfind(package_directory(), 0) == 0;
  uint32_t number = inside ? 0 : static_cast<uint32_t>(codes.size());
  if (!inside) codes.push_back(Code{code, 0, text_attribute(code, "co_name") == "<module>"});
  numbers.emplace(code, number);
  Py_INCREF(code);
  return number;
}

// A cache of the last stack walk, from the innermost user frame on: most often the next capture from the same code
// finds the same frames.
struct Walk {
  struct Level {
    PyObject* code;
    uint32_t position;
    bool counts;  // whether its position does
  };
  Site start;       // of the code of the innermost
  uint32_t caller;  // the location where it was called
  bool to_the_end;  // nothing calls the last one
  size_t count;
  uint64_t changes;
  Level levels[kMostLevels];  // the first without code: none yet
};

// The code of a frame, as far as a chain needs it.
struct Known {
  PyObject* code;
  Site start;    // the site at offset 0; 0 for code of the package
  uint64_t bit;  // one of 64, shared by other code
  Walk* kept;    // the last walk from this code, or from other code that shares the slot
  bool is_module;
};

[[gnu::noinline]] void look_up(PyObject* code, Known* slot) {
  static Walk walks[32];
  uint32_t number = number_of(code);
  *slot = number == kNotKept ? Known{nullptr, 0, 0, nullptr, false}
                             : Known{code, Site{number} << 32, uint64_t{1} << (number % 64), &walks[number % 32], codes[number].is_module};
}

// Running frames keep their code and callers alive, so borrowed references suffice.
PyObject* code_in(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_DECREF(code);
  return reinterpret_cast<PyObject*>(code);
}

PyFrameObject* back_of(PyFrameObject* frame) {
  PyFrameObject* back = PyFrame_GetBack(frame);
  Py_XDECREF(back);
  return back;
}

uint32_t position_in(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return static_cast<uint32_t>(PyFrame_GetLasti(frame));
#else
  return static_cast<uint32_t>(PyFrame_GetLineNumber(frame));
#endif
}

// Valid until the next call.
[[gnu::always_inline]] inline const Known* known(PyFrameObject* frame) {
  static Known recent[1024];
  PyObject* code = code_in(frame);
  Known* slot = &recent[(reinterpret_cast<size_t>(code) >> 5) % 1024];
  if (slot->code != code) [[unlikely]] look_up(code, slot);
  return slot;
}

// Whether the frame, whose code is that of the innermost of the walk, has the same callers.
[[gnu::always_inline]] inline bool repeats(const Walk& kept, PyFrameObject* frame) {
  const Walk::Level *level = kept.levels, *end = level + kept.count;
  const uint64_t changes = kept.changes;
  while (++level != end) {
    frame = back_of(frame);
    if (!frame || code_in(frame) != level->code) return false;
    if (level->counts && position_in(frame) != level->position) return false;
  }
  if (kept.to_the_end && (back_of(frame) || PyErr_Occurred())) return false;
  return changes == kept.changes;  // else a garbage collection ran code that walked too
}

[[gnu::noinline]] uint32_t intern(Site site, uint32_t parent) {
  struct Hash {
    size_t operator()(const std::pair<Site, uint32_t>& key) const {
      return key.first * 0x9E3779B97F4A7C15ull ^ key.second * 0xC2B2AE3D27D4EB4Full;
    }
  };
  static auto& known = *new std::unordered_map<std::pair<Site, uint32_t>, uint32_t, Hash>();
  auto found = known.find({site, parent});
  if (found != known.end()) return found->second;
  if (locations.size() >= kMostLocations) return parent;
  Code& code = codes[code_of(site)];
  locations.push_back(Location{site, parent, code.newest, 0});
  code.newest = static_cast<uint32_t>(locations.size() - 1);
  known.emplace(std::pair(site, parent), code.newest);
  return code.newest;
}

uint32_t location_of(Site site, uint32_t parent) {
  struct Recent {
    Site site;
    uint32_t parent, location;
  };
  constexpr int kBits = 13;
  static Recent recent[size_t{1} << kBits];
  Recent& slot = recent[(site + parent * 0xC2B2AE3D27D4EB4Full) * 0x9E3779B97F4A7C15ull >> (64 - kBits)];
  if (slot.site != site || slot.parent != parent) [[unlikely]] slot = Recent{site, parent, intern(site, parent)};
  return slot.location;
}

// The location in the current scope.
[[gnu::noinline]] uint32_t scoped(uint32_t location) {
  static auto& known = *new std::unordered_map<uint64_t, uint32_t>();
  const uint64_t key = uint64_t{scope} << 32 | location;
  auto found = known.find(key);
  if (found != known.end()) return found->second;
  if (!location || locations.size() >= kMostLocations) return location;
  Location made = locations[location];
  Code& code = codes[code_of(made.site)];
  made.older = std::exchange(code.newest, static_cast<uint32_t>(locations.size()));
  made.scope = scope;
  locations.push_back(made);
  known.emplace(key, code.newest);
  return code.newest;
}

bool is_recursion(const Site* sites, size_t count, Site start) {
  auto same = [start](Site site) { return code_of(site) == code_of(start); };
  return std::count_if(sites, sites + count, same) == kMostOfOne;
}

// The chain of user frames, up to one of a module; `kept` is the cache of the next walk.
[[gnu::noinline]] uint32_t walk(Walk& kept, PyFrameObject* frame) {
  Walk::Level levels[kMostLevels];
  Site sites[kMostFrames];
  size_t count = 0, depth = 0;
  uint64_t seen = 0;
  bool keeps = true;
  for (bool ends = false; frame && !ends; frame = ends ? frame : back_of(frame)) {
    const Known* code = known(frame);
    const Site start = code->start;
    ends = depth == kMostLevels - 1 || (start && (seen & code->bit) && is_recursion(sites, count, start));
    const bool counts = start && !ends;
    if (counts) {
      seen |= code->bit;
      sites[count++] = start | position_in(frame);
      ends = count == kMostFrames || code->is_module;
    }
    keeps = keeps && code->code;
    levels[depth++] = {code->code, counts ? static_cast<uint32_t>(sites[count - 1]) : 0, counts};
  }
  // From here on no Python code runs.
  uint32_t caller = 0;
  for (size_t i = count; --i > 0;) caller = location_of(sites[i], caller);
  uint32_t location = location_of(sites[0], caller);
  if (!keeps) return location;
  ++kept.changes;
  kept.start = Site{code_of(sites[0])} << 32;
  kept.caller = caller;
  kept.to_the_end = !frame;
  kept.count = depth;
  std::copy(levels, levels + depth, kept.levels);
  return location;
}

Walk nowhere;
Walk* met_last = &nowhere;

[[gnu::noinline]] uint32_t capture_further(PyFrameObject* frame, bool tried) {
  const Known* code = nullptr;
  uint32_t location = 0;
  while (frame && !(code = known(frame))->start) frame = back_of(frame);
  if (frame) {
    Walk& kept = *(met_last = code->kept);
    bool again = !tried && code->code == kept.levels[0].code && repeats(kept, frame);
    location = again ? location_of(kept.start | position_in(frame), kept.caller) : walk(kept, frame);
  }
  if (PyErr_Occurred()) PyErr_Clear();  // no memory for the object of a frame: a shorter chain
  return location;
}

// The whole chain, recursion included.
[[gnu::noinline]] uint32_t capture_deep(PyFrameObject* frame) {
  std::vector<Site> sites;
  for (bool ends = false; frame && !ends; frame = back_of(frame)) {
    const Known* code = known(frame);
    if (!code->start) continue;
    sites.push_back(code->start | position_in(frame));
    ends = code->is_module || sites.size() == kMostDeep;
  }
  if (PyErr_Occurred()) PyErr_Clear();
  uint32_t location = 0;
  for (size_t i = sites.size(); i-- > 0;) location = location_of(sites[i], location);
  return location;
}

int want_whole = 0;  // tools

int line_of(uint32_t location) {
  int position = static_cast<int>(static_cast<uint32_t>(locations[location].site));
#if PY_VERSION_HEX >= 0x030B0000
  return PyCode_Addr2Line(reinterpret_cast<PyCodeObject*>(code_at(location).object), position);
#else
  return position;
#endif
}

bool same_line(uint32_t a, uint32_t b) {
  if (a == b) return true;
  return a && b && code_of(locations[a].site) == code_of(locations[b].site) && line_of(a) == line_of(b);
}

// Compares the common length, as chains may be truncated.
bool same_lines(uint32_t a, uint32_t b) {
  while (a != b && same_line(a, b)) {
    a = locations[a].parent;
    b = locations[b].parent;
  }
  return a == b || !a || !b;
}

// The number of callers that make the location unique on its line.
size_t callers_to_name(uint32_t location) {
  std::vector<uint32_t> others;  // their callers
  uint32_t caller = locations[location].parent;
  const int line = line_of(location);
  for (uint32_t other = code_at(location).newest; other; other = locations[other].older) {
    uint32_t from = locations[other].parent;
    if (from != caller && line_of(other) == line && !same_lines(from, caller)) others.push_back(from);
  }
  size_t count = 0;
  for (; caller && !others.empty(); caller = locations[caller].parent) {
    if (++count > kMostNamed) return 0;
    std::erase_if(others, [caller](uint32_t other) { return !same_line(other, caller); });
    for (uint32_t& other : others) other = locations[other].parent;
  }
  return count;
}

std::string named_line(uint32_t location, bool with_function) {
  const Code code = code_at(location);  // a copy, as reading attributes may run code that adds others
  std::string file = text_attribute(code.object, "co_filename");
  size_t slash = file.find_last_of("/\\");
  std::string out = (slash == std::string::npos ? file : file.substr(slash + 1)) + ":" + std::to_string(line_of(location));
  return with_function && !code.is_module ? out + " in " + text_attribute(code.object, "co_name") : out;
}

// (first column, end column) of the expression, or None if it is unknown or ends on another line.
PyObject* columns_of(uint32_t location) {
#if PY_VERSION_HEX >= 0x030B0000
  int position = static_cast<int>(static_cast<uint32_t>(locations[location].site));
  int line, column, end_line, end_column;
  auto* code = reinterpret_cast<PyCodeObject*>(code_at(location).object);
  if (PyCode_Addr2Location(code, position, &line, &column, &end_line, &end_column) && line == end_line && column >= 0 && end_column >= 0) {
    return Py_BuildValue("ii", column, end_column);
  }
#else
  static_cast<void>(location);
#endif
  Py_RETURN_NONE;
}

}  // namespace

bool is_package_code(PyObject* code) { return number_of(code) == 0; }
void want_whole_chains(int more) { want_whole += more; }

void set_package_directory(const char* directory) { package_directory() = directory; }

size_t location_count() { return locations.size(); }

static uint32_t captured_location() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return 0;
  if (want_whole > 0) [[unlikely]] return capture_deep(frame);
  const Walk& kept = *met_last;  // which may have changed by the time that the frames have been walked
  bool tried = code_in(frame) == kept.levels[0].code;
  if (tried && repeats(kept, frame)) [[likely]] return location_of(kept.start | position_in(frame), kept.caller);
  return capture_further(frame, tried);
}

uint32_t capture_location() {
  const uint32_t location = captured_location();
  return scope ? scoped(location) : location;
}

uint32_t set_scope(uint32_t number) { return std::exchange(scope, number); }

uint32_t scope_of(uint32_t location) { return location < locations.size() ? locations[location].scope : 0; }

CodePosition code_position(uint32_t location) {
  if (location >= locations.size()) return {0, 0, 0};
  const Location& found = locations[location];
  return {code_of(found.site), static_cast<uint32_t>(found.site), found.parent};
}

std::string line_text(uint32_t location) {
  return location == 0 || location >= locations.size() ? "" : named_line(location, false);
}

std::string location_text(uint32_t location) {
  if (location == 0 || location >= locations.size()) return "";
  size_t callers = callers_to_name(location);
  std::string out = named_line(location, callers > 0);
  for (uint32_t at = location; callers > 0; --callers) {
    at = locations[at].parent;
    out += ", called at " + named_line(at, true);
  }
  return out;
}

std::string provenance_text(Provenance provenance) {
  std::string out = location_text(provenance.origin());
  const uint32_t other = provenance.other() & ~Provenance::kByUser;
  if (other) out += (provenance.by_user() ? ", in the backward pass of the call at " : ", in the backward pass at ") + location_text(other);
  return out;
}

PyObject* location_frames(uint32_t location) {
  PyObject* list = PyList_New(0);
  for (uint32_t at = location < locations.size() ? location : 0; list && at; at = locations[at].parent) {
    PyObject* code = code_at(at).object;
    PyObject* name = PyObject_GetAttrString(code, "co_name");
    PyObject* file = PyObject_GetAttrString(code, "co_filename");
    PyObject* frame = name && file ? Py_BuildValue("OiNO", file, line_of(at), columns_of(at), name) : nullptr;
    if (!frame || PyList_Append(list, frame) < 0) Py_CLEAR(list);
    Py_XDECREF(frame);
    Py_XDECREF(file);
    Py_XDECREF(name);
  }
  return list;
}

PyObject* location_codes(uint32_t location) {
  PyObject* list = PyList_New(0);
  for (uint32_t at = location < locations.size() ? location : 0; list && at; at = locations[at].parent) {
    PyObject* pair = Py_BuildValue("OI", code_at(at).object, static_cast<unsigned>(static_cast<uint32_t>(locations[at].site)));
    if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

}  // namespace twofold
