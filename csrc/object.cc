#include "object.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unordered_map.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#if defined(__linux__)
#include <dlfcn.h>
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace twofold {

#if defined(__linux__) && defined(__x86_64__)

namespace {

constexpr std::size_t kLargestImage = std::size_t{1} << 28;
constexpr std::size_t kStubSize = 8;

[[noreturn]] void fail(std::string what) {
  // a name in a corrupt file must still make a valid message
  for (char& c : what) {
    if (c < ' ' || c > '~') c = '?';
  }
  throw std::runtime_error("cannot load object: " + what);
}

std::size_t round_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

void* resolve(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  // an interpreter linked statically may not have the mathematical library in its global scope
  static void* library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) fail(std::string("undefined symbol ") + name);
  return found;
}

}  // namespace

// Three steps: read headers, lay out sections, copy and relocate them.
class ObjectLoader {
 public:
  ObjectLoader(std::span<const std::byte> image, const LoadedObject::Symbols& known, LoadedObject& target)
      : image_(image), known_(known), target_(target) {}

  void run() {
    read_sections();
    read_symbols();
    find_relocations();
    lay_out();
    copy_sections();
    fill_table();
    for (const Relocation& r : relocations_) relocate(r);
    protect();
    publish();
  }

 private:
  enum Segment { kCode, kConstants, kData, kSegments };

  struct Relocation {
    std::size_t section;
    Elf64_Rela entry;
  };

  // A symbol reached through a table slot and, when called, a stub that jumps through the slot.
  struct External {
    std::string name;
    std::uint64_t symbol;
  };

  template <class T>
  T read(std::uint64_t offset) const {
    check(offset, sizeof(T));
    T value;
    std::memcpy(&value, image_.data() + offset, sizeof(T));
    return value;
  }

  void check(std::uint64_t offset, std::uint64_t size) const {
    if (offset > image_.size() || size > image_.size() - offset) fail("truncated");
  }

  std::string text_at(const Elf64_Shdr& strings, std::uint64_t offset) const {
    if (strings.sh_type != SHT_STRTAB || offset >= strings.sh_size) fail("name out of range");
    const char* first = reinterpret_cast<const char*>(image_.data() + strings.sh_offset + offset);
    const std::size_t room = strings.sh_size - offset;
    const std::size_t length = strnlen(first, room);
    if (length == room) fail("name without end");
    return {first, length};
  }

  const Elf64_Shdr& section(std::uint64_t index) const {
    if (index >= sections_.size()) fail("section index out of range");
    return sections_[index];
  }

  void read_sections() {
    if (image_.size() > kLargestImage) fail("too large");
    const auto header = read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail("not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) fail("wrong class");
    if (header.e_type != ET_REL || header.e_machine != EM_X86_64) fail("wrong type or machine");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) fail("wrong section header size");
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
      const Elf64_Shdr& s = sections_.back();
      if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL) check(s.sh_offset, s.sh_size);
      if (s.sh_flags & (SHF_TLS | SHF_COMPRESSED)) fail("section with unsupported flags");
    }
    places_.resize(sections_.size());
  }

  void read_symbols() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_SYMTAB) continue;
      if (!symbols_.empty()) fail("more than one symbol table");
      if (s.sh_entsize != sizeof(Elf64_Sym) || s.sh_size % sizeof(Elf64_Sym) != 0) fail("wrong symbol size");
      names_ = section(s.sh_link);
      for (std::uint64_t at = 0; at < s.sh_size; at += sizeof(Elf64_Sym)) {
        symbols_.push_back(read<Elf64_Sym>(s.sh_offset + at));
      }
    }
    external_of_.resize(symbols_.size());
  }

  void find_relocations() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type == SHT_REL) fail("relocation without addend");
      if (s.sh_type != SHT_RELA || !(section(s.sh_info).sh_flags & SHF_ALLOC)) continue;
      if (s.sh_entsize != sizeof(Elf64_Rela) || s.sh_size % sizeof(Elf64_Rela) != 0) fail("wrong relocation size");
      for (std::uint64_t at = 0; at < s.sh_size; at += sizeof(Elf64_Rela)) {
        const auto entry = read<Elf64_Rela>(s.sh_offset + at);
        const std::uint64_t symbol = ELF64_R_SYM(entry.r_info);
        if (symbol >= symbols_.size()) fail("symbol index out of range");
        relocations_.push_back({s.sh_info, entry});
        // every symbol that may need the table gets a slot, so that the layout is known before relocating
        const bool indirect = needs_slot(ELF64_R_TYPE(entry.r_info));
        if (!external_of_[symbol] && (symbols_[symbol].st_shndx == SHN_UNDEF || indirect)) {
          external_of_[symbol] = externals_.size();
          externals_.push_back({name_of(symbol), symbol});
        }
      }
    }
  }

  static bool needs_slot(std::uint64_t type) {
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
  }

  std::string name_of(std::uint64_t symbol) const { return text_at(names_, symbols_[symbol].st_name); }

  static Segment segment_of(const Elf64_Shdr& s) {
    if (s.sh_flags & SHF_EXECINSTR) return kCode;
    return s.sh_flags & SHF_WRITE ? kData : kConstants;
  }

  void lay_out() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t at = 0;
    for (int segment = 0; segment < kSegments; ++segment) {
      starts_[segment] = at;
      for (std::size_t i = 0; i < sections_.size(); ++i) {
        const Elf64_Shdr& s = sections_[i];
        if (!(s.sh_flags & SHF_ALLOC) || segment_of(s) != segment) continue;
        if (s.sh_type != SHT_PROGBITS && s.sh_type != SHT_NOBITS && s.sh_type != SHT_X86_64_UNWIND) {
          fail("section of unknown type");
        }
        const std::uint64_t alignment = s.sh_addralign == 0 ? 1 : s.sh_addralign;
        if ((alignment & (alignment - 1)) != 0 || alignment > page) fail("wrong alignment");
        if (s.sh_size > kLargestImage) fail("section too large");
        at = round_up(at, alignment);
        places_[i] = at;
        at += s.sh_size;
        if (at > kLargestImage) fail("too large");
      }
      if (segment == kCode) {
        stubs_ = at = round_up(at, kStubSize);
        at += externals_.size() * kStubSize;
      } else if (segment == kConstants) {
        table_ = at = round_up(at, sizeof(std::uint64_t));
        at += externals_.size() * sizeof(std::uint64_t);
      }
      at = round_up(at, page);
    }
    starts_[kSegments] = at;
    if (at == 0) fail("empty");
    void* mapped = mmap(nullptr, at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    target_.base_ = static_cast<std::byte*>(mapped);
    target_.size_ = at;
  }

  void copy_sections() {
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (!places_[i] || s.sh_type == SHT_NOBITS || s.sh_size == 0) continue;
      std::memcpy(target_.base_ + *places_[i], image_.data() + s.sh_offset, s.sh_size);
    }
  }

  std::uint64_t runtime(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(target_.base_) + offset; }

  // The run-time address of a symbol that the object defines itself.
  std::uint64_t defined(std::uint64_t symbol) const {
    const Elf64_Sym& s = symbols_[symbol];
    const unsigned kind = ELF64_ST_TYPE(s.st_info);
    if (kind == STT_TLS || kind == STT_GNU_IFUNC || kind == STT_COMMON) fail("symbol of unsupported kind");
    if (s.st_shndx >= SHN_LORESERVE) fail("symbol in a special section");
    const Elf64_Shdr& home = section(s.st_shndx);
    if (!places_[s.st_shndx] || s.st_value > home.sh_size) fail("symbol out of range");
    return runtime(*places_[s.st_shndx] + s.st_value);
  }

  std::uintptr_t address_of(const std::string& name) const {
    const auto found = known_.find(name);
    return found != known_.end() ? found->second : reinterpret_cast<std::uintptr_t>(resolve(name.c_str()));
  }

  void fill_table() {
    for (std::size_t i = 0; i < externals_.size(); ++i) {
      const std::uint64_t symbol = externals_[i].symbol;
      const bool outside = symbols_[symbol].st_shndx == SHN_UNDEF;
      const std::uint64_t value = outside ? address_of(externals_[i].name) : defined(symbol);
      const std::size_t slot = table_ + i * sizeof(std::uint64_t);
      const std::size_t stub = stubs_ + i * kStubSize;
      std::memcpy(target_.base_ + slot, &value, sizeof value);
      // jmp *slot(%rip)
      const auto distance = static_cast<std::int32_t>(slot - (stub + 6));
      target_.base_[stub] = std::byte{0xFF};
      target_.base_[stub + 1] = std::byte{0x25};
      std::memcpy(target_.base_ + stub + 2, &distance, sizeof distance);
    }
  }

  void relocate(const Relocation& r) {
    const std::uint64_t type = ELF64_R_TYPE(r.entry.r_info);
    const std::uint64_t symbol = ELF64_R_SYM(r.entry.r_info);
    const std::size_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
    const Elf64_Shdr& where = section(r.section);
    if (!places_[r.section] || where.sh_type == SHT_NOBITS) fail("relocation of an empty section");
    if (r.entry.r_offset > where.sh_size || width > where.sh_size - r.entry.r_offset) {
      fail("relocation out of range");
    }
    const std::size_t offset = *places_[r.section] + r.entry.r_offset;
    const std::uint64_t value = target_value(type, symbol) + static_cast<std::uint64_t>(r.entry.r_addend);
    switch (type) {
      case R_X86_64_64:
        return write(offset, value);
      case R_X86_64_PC64:
        return write(offset, value - runtime(offset));
      case R_X86_64_32:
        if (value > 0xFFFFFFFFu) fail("address does not fit");
        return write(offset, static_cast<std::uint32_t>(value));
      case R_X86_64_32S:
        return write_signed(offset, value);
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        return write_signed(offset, value - runtime(offset));
      default:
        fail("unknown relocation " + std::to_string(type));
    }
  }

  std::uint64_t target_value(std::uint64_t type, std::uint64_t symbol) const {
    if (needs_slot(type)) return runtime(table_ + *external_of_[symbol] * sizeof(std::uint64_t));
    if (symbols_[symbol].st_shndx != SHN_UNDEF) return defined(symbol);
    const std::size_t index = *external_of_[symbol];
    if (type == R_X86_64_PLT32) return runtime(stubs_ + index * kStubSize);
    std::uint64_t value;
    std::memcpy(&value, target_.base_ + table_ + index * sizeof value, sizeof value);
    return value;
  }

  template <class T>
  void write(std::size_t offset, T value) {
    std::memcpy(target_.base_ + offset, &value, sizeof value);
  }

  void write_signed(std::size_t offset, std::uint64_t value) {
    const auto wide = static_cast<std::int64_t>(value);
    if (wide != static_cast<std::int32_t>(wide)) fail("address does not fit");
    write(offset, static_cast<std::int32_t>(wide));
  }

  void protect() {
    const int rights[kSegments] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
    for (int segment = 0; segment < kSegments; ++segment) {
      const std::size_t length = starts_[segment + 1] - starts_[segment];
      if (length != 0 && mprotect(target_.base_ + starts_[segment], length, rights[segment]) != 0) {
        fail("memory may not be made executable");
      }
    }
  }

  void publish() {
    for (std::uint64_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& s = symbols_[i];
      if (ELF64_ST_BIND(s.st_info) != STB_GLOBAL || s.st_shndx == SHN_UNDEF) continue;
      target_.symbols_[name_of(i)] = defined(i);
    }
  }

  std::span<const std::byte> image_;
  const LoadedObject::Symbols& known_;
  LoadedObject& target_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::optional<std::size_t>> places_;
  std::vector<Elf64_Sym> symbols_;
  Elf64_Shdr names_{};
  std::vector<Relocation> relocations_;
  std::vector<External> externals_;
  std::vector<std::optional<std::size_t>> external_of_;
  std::size_t starts_[kSegments + 1] = {};
  std::size_t stubs_ = 0;
  std::size_t table_ = 0;
};

LoadedObject::LoadedObject(std::span<const std::byte> image, const Symbols& known) {
  try {
    ObjectLoader(image, known, *this).run();
  } catch (...) {
    if (base_ != nullptr) munmap(base_, size_);
    throw;
  }
}

LoadedObject::~LoadedObject() {
  if (base_ != nullptr) munmap(base_, size_);
}

#else

LoadedObject::LoadedObject(std::span<const std::byte>, const Symbols&) {
  throw std::runtime_error("cannot load object: no loader for this machine");
}

LoadedObject::~LoadedObject() = default;

#endif

std::uintptr_t LoadedObject::address(std::string_view symbol) const {
  return symbols_.at(std::string(symbol));
}

std::string host_cpu_identity() {
  std::string identity;
  const auto append = [&identity](unsigned long word) {
    char text[20];
    std::snprintf(text, sizeof text, "%lx.", word);
    identity += text;
  };
#if defined(__x86_64__)
  identity = "x86-64.";
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid(0, a, b, c, d);
  for (unsigned word : {b, c, d}) append(word);
  __cpuid(1, a, b, c, d);
  // the second word has the number of the current core
  for (unsigned word : {a, c, d}) append(word);
  if (c & bit_OSXSAVE) {
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    append(low);
  }
  for (unsigned leaf : {0u, 1u}) {
    if (__get_cpuid_count(7, leaf, &a, &b, &c, &d)) {
      for (unsigned word : {a, b, c, d}) append(word);
    }
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) {
    for (unsigned word : {c, d}) append(word);
  }
#elif defined(__linux__)
  identity = "linux.";
  append(getauxval(AT_HWCAP));
  append(getauxval(AT_HWCAP2));
#else
  identity = "unknown.";
#endif
  return identity;
}

std::string processor_level() {
#if defined(__x86_64__)
  // features that are not checked are present on every processor with these
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return "";
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid(1, a, b, c, d);
  if (!(c & bit_F16C) || !(c & bit_MOVBE)) return "";
  const bool has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl");
  return has_512 ? "x86-64-v4" : "x86-64-v3";
#else
  return "";
#endif
}

void register_object(nanobind::module_& m) {
  namespace nb = nanobind;
  nb::class_<LoadedObject>(m, "LoadedObject", "Machine code mapped from the bytes of an object file.")
      .def(
          "__init__",
          [](LoadedObject* self, nb::bytes image, const LoadedObject::Symbols& known) {
            new (self) LoadedObject({static_cast<const std::byte*>(image.data()), image.size()}, known);
          },
          nb::arg("image"), nb::arg("known") = LoadedObject::Symbols{}, "``known`` are addresses of symbols that the object refers to.")
      .def("address", &LoadedObject::address, nb::arg("symbol"), "The address of a symbol that the object defines.");
  m.def("host_cpu_identity", &host_cpu_identity, "What distinguishes the instruction set of this processor.");
  m.def("processor_level", &processor_level, "LLVM's name of the highest level of processors that this one reaches.");
}

}  // namespace twofold
