// Source locations: the user's line that is running and the chain of calls that led there, resolved late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

typedef struct _object PyObject;

namespace twofold {

// Where an entry of a trace was recorded in the present run. Interned locations; 0 means unknown.
struct Provenance {
  uint32_t location = 0;
  uint32_t forward = 0;  // of what a backward pass records: the call that it differentiates

  // The line of the forward pass.
  uint32_t origin() const { return forward ? forward : location; }
};

// Where the entries of a canonical trace stand in the present run of a trace that it came from.
struct RunProvenance {
  const Provenance* entries;  // of that trace
  const int32_t* source;      // canonical entry -> entry of that trace
  const void* leaves;         // what leaf_location reads
  uint32_t (*leaf_location)(const void* leaves, size_t leaf);  // of a canonical leaf; asked for when an error is worded
  Provenance operator[](size_t entry) const { return entries[source[entry]]; }
};

// A location as its position in the code of one function, and the location where that was called, 0 if nothing called it.
struct CodePosition {
  uint32_t code, offset, caller;
};
CodePosition code_position(uint32_t location);

// 0 means unknown. Needs the interpreter lock; the interpreter may collect garbage.
uint32_t capture_location();
// What this thread captures from now on stands in this scope, a number of the caller's own; 0: in none. Returns the one
// before.
uint32_t set_scope(uint32_t number);
uint32_t scope_of(uint32_t location);
// "file.py:12", or an empty text.
std::string line_text(uint32_t location);
// As line_text; "file.py:12 in f, called at main.py:3" where other calls led to that line too.
std::string location_text(uint32_t location);
// As location_text, of the forward line; then that of the backward pass.
std::string provenance_text(Provenance provenance);
// [(file, line, (first column, end column) or None, function)], innermost call first; a new reference.
PyObject* location_frames(uint32_t location);
// [(code object, instruction offset, or the line where the interpreter gives no offset)], innermost call first; a new reference.
PyObject* location_codes(uint32_t location);
// Whether a code object belongs to the package. Needs the interpreter lock.
bool is_package_code(PyObject* code);
// So many more tools, or fewer, show every call: for them chains have no bound, in all threads.
void want_whole_chains(int more);
void set_package_directory(const char* directory);
size_t location_count();

}  // namespace twofold
