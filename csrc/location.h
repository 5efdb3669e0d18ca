// Source locations: code object and instruction offset of the first frame outside the package, resolved late.
#pragma once

#include <cstdint>
#include <string>

typedef struct _object PyObject;

namespace twofold {

// 0 means unknown. Needs the interpreter lock.
uint32_t capture_location();
// "file.py:12", or an empty text.
std::string location_text(uint32_t location);
// (file, line, function) or None; a new reference.
PyObject* location_tuple(uint32_t location);
void set_package_directory(const char* directory);

}  // namespace twofold
