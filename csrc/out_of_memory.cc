#include "out_of_memory.h"

#include <Python.h>

#include <cstdio>

#include "buffer.h"

namespace twofold {
namespace {

std::string amount(size_t nbytes) {
  char text[64];
  const double size = static_cast<double>(nbytes);
  if (nbytes >= size_t{1} << 30) std::snprintf(text, sizeof text, "%zu bytes (%.1f GiB)", nbytes, size / (1 << 30));
  else std::snprintf(text, sizeof text, "%zu bytes (%.1f MiB)", nbytes, size / (1 << 20));
  return text;
}

}  // namespace

void raise_out_of_memory(size_t nbytes, const std::string& what, Provenance provenance) {
  std::string text = "out of memory: " + amount(nbytes) + " for " + what;
  if (!provenance.location) provenance.location = capture_location();
  std::string where = provenance_text(provenance);
  if (!where.empty()) text += ", at " + where;
  text += ". Make it smaller, or free other tensors: " + amount(pool_statistics().in_use) + " are in use.";
  PyErr_SetString(PyExc_MemoryError, text.c_str());
}

}  // namespace twofold
