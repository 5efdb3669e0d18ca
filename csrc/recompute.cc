#include <Python.h>

#include "recompute.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace twofold {
namespace {

constexpr int64_t kLarge = 1 << 20;  // bytes of a value: smaller ones are not worth a call
constexpr int64_t kMost = 64 << 20;  // bytes of large values that may be live at once
constexpr size_t kDeepest = 4;       // calls that are rematerialised for one value

class Chooser {
 public:
  explicit Chooser(const CanonicalTrace& canonical)
      : trace_(canonical.trace), count_(trace_.entries.size()), last_(count_), reads_(count_), again_(count_, count_) {
    for (size_t i = 0; i < count_; ++i) {
      const Entry& entry = trace_.entries[i];
      for (uint32_t k = 0; k < entry.count; ++k) {
        const Ref ref = trace_.inputs(entry)[k];
        if (ref >= 0) reads_[static_cast<size_t>(ref)].push_back(i);
      }
    }
    for (size_t i = 0; i < count_; ++i) last_[i] = reads_[i].empty() ? i : reads_[i].back();
    for (Ref ref : canonical.outputs) {
      if (ref >= 0) last_[static_cast<size_t>(ref)] = count_;
    }
  }

  // Rematerialised entries, by the entry before which they run.
  std::map<size_t, std::vector<size_t>> choose() {
    std::map<size_t, std::vector<size_t>> found;
    const size_t peak = find_peak();
    for (size_t i = 0; i < peak; ++i) {
      if (bytes(i) < kLarge || last_[i] <= peak || last_[i] == count_ || reads_[i].front() > peak) continue;
      const size_t reader = *std::upper_bound(reads_[i].begin(), reads_[i].end(), peak);
      std::vector<size_t> calls;
      if (!add(i, reader, calls)) continue;
      for (size_t call : calls) again_[call] = reader;
      std::vector<size_t>& before = found[reader];
      before.insert(before.end(), calls.begin(), calls.end());
      std::sort(before.begin(), before.end());
    }
    return found;
  }

 private:
  int64_t bytes(size_t i) const { return trace_.entries[i].instance->output->nbytes; }

  // The entry of peak memory; 0 if that is not large.
  size_t find_peak() const {
    std::vector<int64_t> changes(count_ + 2);
    for (size_t i = 0; i < count_; ++i) {
      if (bytes(i) < kLarge) continue;
      changes[i] += bytes(i);
      changes[last_[i] + 1] -= bytes(i);
    }
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    const auto most = std::max_element(changes.begin(), changes.end());
    return *most > kMost ? static_cast<size_t>(most - changes.begin()) : 0;
  }

  bool is_there(size_t i, size_t reader) const {
    if (last_[i] < reader) return false;
    return again_[i] == count_ || again_[i] <= reader;
  }

  // Adds the calls, last one first, that rematerialise an entry from values that are live at `reader`; false if
  // there are too many, or one is not cheap.
  bool add(size_t i, size_t reader, std::vector<size_t>& calls) const {
    if (std::find(calls.begin(), calls.end(), i) != calls.end()) return true;
    if (calls.size() == kDeepest || again_[i] != count_ || last_[i] == count_) return false;
    const Entry& entry = trace_.entries[i];
    const int cheap = is_cheap(entry.instance);
    if (cheap < 0) throw PythonError{};
    if (!cheap) return false;
    calls.push_back(i);
    for (uint32_t k = 0; k < entry.count; ++k) {
      const Ref ref = trace_.inputs(entry)[k];
      if (ref >= 0 && !is_there(static_cast<size_t>(ref), reader) && !add(static_cast<size_t>(ref), reader, calls)) return false;
    }
    return true;
  }

  const Trace& trace_;
  const size_t count_;
  std::vector<size_t> last_;                // last use of each entry; `count_` for an output of the trace
  std::vector<std::vector<size_t>> reads_;  // uses of each entry, ascending
  std::vector<size_t> again_;               // the entry before which each is rematerialised; `count_` for none
};

}  // namespace

std::vector<uint32_t> steps_of(const CanonicalTrace& canonical) {
  const std::vector<Entry>& entries = canonical.trace.entries;
  std::vector<uint32_t> steps;
  steps.reserve(entries.size());
  int64_t large = 0;
  for (const Entry& entry : entries) {
    if (entry.instance->output->nbytes >= kLarge) large += entry.instance->output->nbytes;
  }
  std::map<size_t, std::vector<size_t>> again;
  if (large > kMost) again = Chooser(canonical).choose();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (auto found = again.find(i); found != again.end()) steps.insert(steps.end(), found->second.begin(), found->second.end());
    steps.push_back(static_cast<uint32_t>(i));
  }
  return steps;
}

}  // namespace twofold
