#include "written_pages.h"

#if defined(__linux__)
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>
#endif

namespace twofold {

#if defined(__linux__)
namespace {

// Of linux/fs.h from 6.7 on, which is newer than the headers that packages are built with.
struct ScanRequest {
  uint64_t size, flags, start, end, walk_end, found, found_room, most_pages, inverted, all_of, any_of, returned;
};
struct FoundPages {
  uint64_t start, end, categories;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanRequest);
constexpr uint64_t kProtect = 1 << 0, kCheckWatched = 1 << 1;  // flags
constexpr uint64_t kWritten = 1 << 1, kFile = 1 << 2, kPresent = 1 << 3;  // categories
constexpr uint64_t kAsynchronous = 1 << 15;                    // UFFD_FEATURE_WP_ASYNC: a write is allowed, and noted
constexpr int kUserModeOnly = 1;                               // UFFD_USER_MODE_ONLY, which needs no privileges

class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() { if (descriptor_ >= 0) close(descriptor_); }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// The two files that the system answers by, which are those of one process; closed if they do not work.
struct Files {
  File faults, tables;

  Files() : faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly))), tables(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    uffdio_api api{UFFD_API, kAsynchronous, 0};
    const bool work = faults.descriptor() >= 0 && tables.descriptor() >= 0 && ioctl(faults.descriptor(), UFFDIO_API, &api) == 0;
    if (!work) faults = File(), tables = File();
  }
};

const Files& files() {
  static auto& now = *new std::optional<Files>();
  // A forked process closes them at once: later the numbers may be those of files of the program, as a daemon closes all that it had.
  static const bool watches_forks = pthread_atfork(nullptr, nullptr, [] { now.reset(); }) == 0;
  if (!now) {
    now.emplace();
    if (!watches_forks) now->faults = File(), now->tables = File();
  }
  return *now;
}

bool work() { return files().tables.descriptor() >= 0; }

ScanRequest request(const MemoryRange& range, uint64_t flags) {
  ScanRequest made{};
  made.size = sizeof made;
  made.flags = flags;
  made.start = range.begin;
  made.end = range.end;
  return made;
}

ScanRequest request_of_files(const MemoryRange& range) {
  ScanRequest made = request(range, 0);
  made.all_of = made.returned = kFile;
  return made;
}

// Of pages that were written to, or are not there: the program may have told the system to drop them (MADV_DONTNEED).
ScanRequest request_of_written(const MemoryRange& range, uint64_t flags) {
  ScanRequest made = request(range, flags | kCheckWatched);
  made.inverted = kPresent;
  made.any_of = made.returned = kWritten | kPresent;
  return made;
}

bool has_none(ScanRequest scan) {
  FoundPages found;
  scan.found = reinterpret_cast<uintptr_t>(&found);
  scan.found_room = scan.most_pages = 1;
  return work() && ioctl(files().tables.descriptor(), kScan, &scan) == 0;
}

}  // namespace

bool watch_pages(const MemoryRange& range) {
  uffdio_register wanted{{range.begin, range.end - range.begin}, UFFDIO_REGISTER_MODE_WP, 0};
  return work() && ioctl(files().faults.descriptor(), UFFDIO_REGISTER, &wanted) == 0;
}

void forget_pages(const MemoryRange& range) noexcept {
  uffdio_range given{range.begin, range.end - range.begin};
  if (work()) ioctl(files().faults.descriptor(), UFFDIO_UNREGISTER, &given);
}

std::optional<std::vector<MemoryRange>> restart_pages(const MemoryRange& range) {
  std::vector<MemoryRange> written;
  if (!work()) return std::nullopt;
  for (MemoryRange rest = range; rest.begin < rest.end;) {
    FoundPages found[64];
    ScanRequest scan = request_of_written(rest, kProtect);
    scan.found = reinterpret_cast<uintptr_t>(found);
    scan.found_room = std::size(found);
    const int count = ioctl(files().tables.descriptor(), kScan, &scan);
    if (count < 0 || scan.walk_end <= rest.begin) return std::nullopt;
    for (int k = 0; k < count; ++k) written.push_back({found[k].start, found[k].end});
    rest.begin = scan.walk_end;
  }
  return written;
}

bool are_unwritten(const MemoryRange& range) { return has_none(request_of_written(range, 0)); }

bool are_private(const MemoryRange& range) { return has_none(request_of_files(range)); }

MemoryRange whole_pages(const void* data, size_t nbytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(data);
  const MemoryRange pages{(start + page - 1) / page * page, (start + nbytes) / page * page};
  return pages.begin < pages.end ? pages : MemoryRange{};
}
#else
bool watch_pages(const MemoryRange&) { return false; }
void forget_pages(const MemoryRange&) noexcept {}
std::optional<std::vector<MemoryRange>> restart_pages(const MemoryRange&) { return std::nullopt; }
bool are_unwritten(const MemoryRange&) { return false; }
bool are_private(const MemoryRange&) { return false; }
MemoryRange whole_pages(const void*, size_t) { return {}; }
#endif

}  // namespace twofold
