#include "batch_numbers.h"

#include <cstring>
#include <utility>

#include "pair_numbers.h"

namespace twofold {
namespace {

class Numbers {
 public:
  Numbers(const Trace& trace, void* const* leaves) : trace_(trace), leaves_(leaves), differs_(trace.leaves.size()) {}

  // Finds numbers for which other calls of the same line have others. Positions that numbers move do not count.
  void compare_calls(RunProvenance provenance) {
    uint32_t location = 0;  // of the line
    CodePosition line{};
    for (uint32_t i = 0; i < trace_.entries.size(); ++i) {
      const Entry& entry = trace_.entries[i];
      const Ref* refs = trace_.inputs(entry);
      for (uint32_t k = 0; k < entry.count; ++k) {
        if (refs[k] >= 0 || !is_number(static_cast<size_t>(~refs[k])) || entry.instance->traits->movement) continue;
        const Provenance here = provenance[i];
        if (here.origin() != location) line = code_position(location = here.origin());
        const uint64_t call = reinterpret_cast<uintptr_t>(entry.instance.get()) ^ uint64_t{k} << 57 ^ uint64_t{here.forward != 0} << 63;
        add_use(static_cast<uint32_t>(~refs[k]), call, uint64_t{line.code} << 32 | line.offset);
      }
    }
    for (const auto& [leaf, site] : uses_) differs_[leaf] |= sites_[site].second;
  }

  std::vector<uint32_t> united() const {
    std::vector<uint32_t> same(differs_.size());
    PairNumbers known(same.size());
    for (uint32_t k = 0; k < same.size(); ++k) {
      same[k] = is_number(k) && !differs_[k] ? known.find(trace_.leaves[k]->id, bits_of(k), k) : k;
    }
    return same;
  }

 private:
  bool is_number(size_t leaf) const {
    const Type* type = trace_.leaves[leaf];
    return type->weak && type->shape.empty() && type->nbytes <= static_cast<int64_t>(sizeof(uint64_t));
  }

  uint64_t bits_of(size_t leaf) const {
    uint64_t bits = 0;
    std::memcpy(&bits, leaves_[leaf], static_cast<size_t>(trace_.leaves[leaf]->nbytes));
    return bits;
  }

  void add_use(uint32_t leaf, uint64_t call, uint64_t line) {
    const uint32_t number = site_numbers_.find(call, line, static_cast<uint32_t>(sites_.size()));
    if (number == sites_.size()) sites_.emplace_back(bits_of(leaf), 0);
    auto& [first, differs] = sites_[number];
    differs |= first != bits_of(leaf);
    uses_.emplace_back(leaf, number);
  }

  const Trace& trace_;
  void* const* leaves_;
  std::vector<uint8_t> differs_;                      // by leaf
  PairNumbers site_numbers_{64};                      // of operands of the calls of a line
  std::vector<std::pair<uint64_t, uint8_t>> sites_;   // by number: the first operand, and whether there are others
  std::vector<std::pair<uint32_t, uint32_t>> uses_;   // a leaf, and the number of a site
};

}  // namespace

std::vector<uint32_t> united_numbers(const Trace& trace, void* const* leaves, RunProvenance provenance) {
  Numbers numbers(trace, leaves);
  numbers.compare_calls(provenance);
  return numbers.united();
}

}  // namespace twofold
