// Anomaly detection: the call that made the first value of a run that is not finite.
#pragma once

#include <cstdint>
#include <vector>

#include "executable.h"
#include "finite.h"

namespace twofold {

// The call that made the first bad value on a path to an output. Recomputes the output op by op, and follows bad values
// back to a call that makes NaN or infinity of finite values, or NaN of infinite inputs. An input whose buffer was donated
// is lost, and with it the intermediate values computed from it. These were finite, as a run that finds others ends before
// it overwrites its inputs.
class BadValueSearch {
 public:
  BadValueSearch(const CanonicalTrace& canonical, void* const* inputs, const std::vector<BufferRef>& outputs, RunProvenance provenance,
                 bool backward_only);

  // Whether a backward pass made a value: at the line of a call, or as the sum of cotangents of a leaf.
  bool is_of_pass(Ref ref) const { return ref >= 0 && (!backward_only_ || of_pass_[static_cast<size_t>(ref)]); }
  // The entry, or -1 if an input or constant is infinite, or if the sum of cotangents of a leaf made NaN of infinities in a
  // search of backward passes alone. Throws what a run throws.
  Ref origin_of(Ref output, Interrupts& interrupts);
  // Sets the Python error; false if Python finds nothing wrong with the call.
  bool raise(Ref entry);

 private:
  void compute(Ref output, Interrupts& interrupts);
  Ref go_back(Ref entry);
  // The operand whose NaN a call propagates; the call itself if the NaN is an input, -1 if there is none. `any`: any bad operand.
  Ref nan_into(Ref entry, bool& any);
  Finite state_of(Ref ref);
  const char* differentiated(Ref entry) const;
  // Null for a value whose memory was reused.
  void* data_of(Ref ref) const;

  const Trace& trace_;
  std::vector<void*> inputs_;
  RunProvenance provenance_;
  bool backward_only_;
  std::vector<char> of_pass_;  // of entries, where backward passes alone are searched
  std::vector<BufferRef> values_;
  std::vector<uint8_t> visited_;
};

// The values that an entry is called on, as tensors that stand where they were made, and as Python numbers; a new reference,
// or null without an error where there is no memory for them.
PyObject* operands_of(const Trace& trace, const Entry& entry, void* const* pointers, RunProvenance provenance);

}  // namespace twofold
