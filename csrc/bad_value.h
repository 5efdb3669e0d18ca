// The first value of a run that is not finite: which call made it.
#pragma once

#include <cstdint>
#include <vector>

#include "executable.h"
#include "finite.h"

namespace twofold {

// The call that made the first bad value on the way to an output. Runs what the output needs once more, one operation at a
// time, and goes back from the output along bad values: to a call that makes NaN or infinity of finite values, or NaN of
// infinite ones that somebody gave. An input whose memory an output has taken over is gone, and with it what is computed of
// it and is no output: such values were finite, as a run that finds others ends before it writes over its inputs.
class BadValueSearch {
 public:
  BadValueSearch(const CanonicalTrace& canonical, void* const* inputs, const std::vector<BufferRef>& outputs, RunProvenance provenance,
                 bool backward_only);

  // The entry, or -1 where infinity was given: by a leaf or a constant. Throws what a run throws.
  Ref origin_of(Ref output, Interrupts& interrupts);
  // Sets the Python error; false where Python finds nothing wrong with the call.
  bool raise(Ref entry);

 private:
  void compute(Ref output, Interrupts& interrupts);
  Ref go_back(Ref entry);
  // The operand whose NaN a call hands on; the call itself where NaN came in there, -1 where none did. `any`: a bad operand.
  Ref nan_into(Ref entry, bool& any);
  Finite state_of(Ref ref);
  bool counts(Ref ref) const { return ref >= 0 && (!backward_only_ || provenance_[static_cast<size_t>(ref)].forward != 0); }
  const char* differentiated(Ref entry) const;
  // Null for what is gone.
  void* data_of(Ref ref) const;

  const Trace& trace_;
  std::vector<void*> inputs_;
  RunProvenance provenance_;
  bool backward_only_;
  std::vector<BufferRef> values_;
  std::vector<uint8_t> visited_;
};

// The values that an entry is called on, as tensors that stand where they were made, and as Python numbers; a new reference,
// or null without an error where there is no memory for them.
PyObject* operands_of(const Trace& trace, const Entry& entry, void* const* pointers, RunProvenance provenance);

}  // namespace twofold
