// Source locations: the user's line that is running and the chain of calls that led there, resolved late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

typedef struct _object PyObject;

namespace twofold {

// The provenance of an entry of a trace: interned locations of the present run; 0 is unknown.
struct Provenance {
  uint32_t location = 0;
  uint32_t forward = 0;  // of an entry of a backward pass: the call that it differentiates, and maybe the bit below

  static constexpr uint32_t kByUser = uint32_t{1} << 31;  // the user's function that differentiates it has made the entry
  bool by_user() const { return forward & kByUser; }
  uint32_t differentiated() const { return forward & ~kByUser; }
  // The line of the user's to show: that of the forward pass, or of the function that differentiates it.
  uint32_t origin() const { return forward && !by_user() ? forward : location; }
  // The line of the other pass, or 0; with the bit for that of the forward pass.
  uint32_t other() const { return by_user() ? forward : forward ? location : 0; }
};

// The provenance of a canonical trace in the present run of its original trace.
struct RunProvenance {
  const Provenance* entries;  // of that trace
  const int32_t* source;      // canonical entry -> entry of that trace
  const void* leaves;         // what leaf_location reads
  uint32_t (*leaf_location)(const void* leaves, size_t leaf);  // of a canonical input; called for errors only
  Provenance operator[](size_t entry) const { return entries[source[entry]]; }
};

// A location: a position in the code of a function, and the location of its call, or 0.
struct CodePosition {
  uint32_t code, offset, caller;
};
CodePosition code_position(uint32_t location);

// 0 means unknown. Needs the interpreter lock; the interpreter may collect garbage.
uint32_t capture_location();
// Sets the scope of the locations that this thread captures, a number of the caller's; 0: none. Returns the one
// before.
uint32_t set_scope(uint32_t number);
uint32_t scope_of(uint32_t location);
// "file.py:12", or an empty string.
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
// Adds to the number of tools that need full call chains: while there are any, chains have no bound, in all threads.
void want_whole_chains(int more);
void set_package_directory(const char* directory);
size_t location_count();

}  // namespace twofold
