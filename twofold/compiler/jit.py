"""The just-in-time compiler: from the LLVM IR of kernels to addresses, through caches in memory, package and disk.

The key of a kernel is the hash of its IR without the name of the function. Kernels that miss together are compiled as
one object file, which saves the fixed cost of the code generator; on disk each kernel has an index file that names its
object file. A function that several kernels call (a tile of matrix products, which is most of their code, or a long
operation) is a kernel in this sense, and is compiled once.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from twofold import _core
from twofold.cache import Cache
from twofold.compiler.disk_cache import Archive, DiskCache, archive_of, default_directory
from twofold.compiler.lower.values import SHARED
from twofold.config import config
from twofold.hashing import content_hash

_CODE_VERSION = "3"
_DEFINE = re.compile(r"^define (?:i64|<16 x \w+>) @(\w*)\(", re.MULTILINE)
"""The definition of a kernel, or of a function that kernels call; those inside of them are internal."""

_BATCH = 32
_LIBRARY_MEMORY = 384 << 20
_LEAST_MEMORY = 64 << 20
_MEMORY_PER_CHARACTER = 400
_OBJECT_KEY = re.compile(rb"[0-9a-f]{64}")

_KERNEL_BYTES = 512  # of the names of a kernel, beside its code


class _Code:
    """The machine code of an object file: addresses of kernels by key. It is unmapped with its ``owner``."""

    __slots__ = ("__weakref__", "addresses", "nbytes", "owner")

    def __init__(self, addresses: dict[str, int], owner: Any, nbytes: int) -> None:
        self.addresses = addresses
        self.owner = owner
        self.nbytes = nbytes


class Kernel(int):
    """The address of a kernel, which stays mapped as long as this object, or a program that has it, lives."""

    _code: _Code
    key: str
    """The hash of its IR."""

    @classmethod
    def of(cls, code: _Code, key: str) -> Kernel:
        """The kernel of ``code`` with a key."""
        made = cls(code.addresses[key])
        made._code = code
        made.key = key
        return made

    @property
    def nbytes(self) -> int:
        """Approximate bytes of its code: its share of the object file."""
        return self._code.nbytes // len(self._code.addresses) + _KERNEL_BYTES


def _llvm_identity() -> str:
    """A hash of the version of llvmlite, without importing it, which takes 50 ms."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("Twofold needs the package llvmlite, which is not installed.")
    with open(os.path.join(next(iter(spec.submodule_search_locations)), "_version.py"), "rb") as file:
        return content_hash(file.read()).hexdigest()


class _InsideCodeGenerator:
    """While a thread is inside the code generator, the exit of the process waits with static destructors."""

    def __enter__(self) -> None:
        _core.at_work(True)

    def __exit__(self, *error: object) -> None:
        _core.at_work(False)


class _CodeGenerator:
    """The LLVM target machine, which is made on the first miss; used under the lock of the compiler."""

    def __init__(self, processor: str | None = None) -> None:
        _check_memory(_LIBRARY_MEMORY)
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm = llvm
        self._processor = processor
        self._triple = llvm.get_process_triple()
        self._machine = self._make_machine()
        self._linker: Any = None
        self._linked = 0

    def _make_machine(self) -> Any:
        # opt=0 aborts the process on wide vectors; the default code model makes every constant a 64-bit move
        return self._llvm.Target.from_triple(self._triple).create_target_machine(
            cpu=self._processor or self._llvm.get_host_cpu_name(),
            features="" if self._processor else self._llvm.get_host_cpu_features().flatten(),
            opt=2,
            jit=True,
            reloc="pic",
            codemodel="small",
        )

    def emit(self, texts: Mapping[str, str]) -> bytes:
        """Compile kernels to one object file.

        Args:
            texts: The IR of each kernel, by its symbol.

        Raises:
            RuntimeError: LLVM rejects a text.
            MemoryError: Too little memory is left.
        """
        _check_memory(_LEAST_MEMORY + _MEMORY_PER_CHARACTER * sum(map(len, texts.values())))
        whole = None
        for symbol, text in texts.items():
            module = self._llvm.parse_assembly(_renamed(text, symbol))
            module.triple = self._triple
            # an invalid module would abort the process inside the code generator
            module.verify()
            if whole is None:
                whole = module
            else:
                whole.link_in(module)
        return bytes(self._machine.emit_object(whole))

    def link(self, image: bytes, symbols: list[str], known: Mapping[str, int]) -> tuple[dict[str, int], Any]:
        """Load an object file with LLVM's linker, where the loader of the core does not support it.

        Args:
            image: The object file.
            symbols: The symbols that it defines.
            known: The addresses of symbols that it refers to.

        Returns:
            The addresses of its symbols, and the owner of the code.
        """
        if self._linker is None:
            self._linker = self._llvm.create_lljit_compiler(self._make_machine(), use_jit_link=True)
        library = self._llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for symbol in symbols:
            library = library.export_symbol(symbol)
        for symbol, address in known.items():
            library = library.import_symbol(symbol, address)
        # a name may be used only once, even after its code is gone
        self._linked += 1
        tracker = library.link(self._linker, f"kernels{self._linked}")
        return {symbol: int(tracker[symbol]) for symbol in symbols}, (tracker, self._linker)


def _check_memory(wanted: int) -> None:
    """Raise MemoryError unless so many bytes are available: LLVM aborts the process if it gets none."""
    try:
        mmap.mmap(-1, wanted).close()
    except OSError:
        raise MemoryError(
            f"out of memory: {wanted} bytes ({wanted >> 20} MiB) to compile kernels. Free tensors first."
        ) from None


def _renamed(text: str, symbol: str) -> str:
    """The IR with another symbol of its kernel, which is its only definition and not recursive."""
    found = _DEFINE.search(text)
    if not found:
        raise ValueError("a kernel's text needs a line that defines it")
    return text[: found.start(1)] + symbol + text[found.end(1) :]


def key_of_text(text: str) -> str:
    """The key of the kernel that an IR text defines, independent of its symbol."""
    return content_hash(f"{_CODE_VERSION} {_renamed(text, '')}".encode()).hexdigest()


def payload_of(keys: Sequence[str], called: Sequence[str], image: bytes) -> bytes:
    """Serialise an object file.

    Args:
        keys: The keys of the kernels that it defines.
        called: Those of the kernels that it calls.
        image: The object file.
    """
    return b"\n".join([",".join(keys).encode(), ",".join(called).encode(), image])


def _calling(kernel: str, function: str, symbol: str) -> str:
    """The IR of a kernel with another symbol of a shared function that it calls."""
    found = _DEFINE.search(function)
    assert found is not None
    return kernel.replace(f"@{found[1]}(", f"@{symbol}(")


class Jit:
    """Finds or generates the machine code of kernels; safe to use from several threads.

    Args:
        directory: The directory of the disk cache.
        processor: LLVM's name of the processor to generate code for, in place of that of this machine.
        name: The name of its cache in memory, for statistics.
        archive: Prebuilt machine code.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        processor: str | None = None,
        name: str = "kernels of another jit",
        archive: Archive | None = None,
    ) -> None:
        self.disk = DiskCache(default_directory() if directory is None else directory)
        self._processor = processor
        self.archive = archive
        target = processor or _core.host_cpu_identity()
        self.salt = f"{_llvm_identity()} {target}".encode()
        self._kernels: Cache[Kernel] = Cache(name, 2, lambda key, kernel: kernel.nbytes)
        self._objects: WeakValueDictionary[str, _Code] = WeakValueDictionary()
        self._generator: _CodeGenerator | None = None
        self.made: list[bytes] | None = None  # a list while compiled object files are recorded
        self.compiled = self.prebuilt = self.disk_hits = self.disk_misses = 0
        self.renew_locks()

    def acquire(self) -> None:
        """Wait for the compile in progress, and block others until ``release``."""
        self._held = self._lock.acquire()

    def release(self) -> None:
        """Unblock compiles after ``acquire``."""
        if self._held:
            self._held = False
            self._lock.release()

    def renew_locks(self) -> None:
        """Replace all locks by free ones, as in a child process."""
        self._lock = threading.RLock()
        self._held = False
        # loading has a separate lock, so that a warm start never waits for a compile in the background
        self._load_lock = threading.RLock()

    def _file(self, key: str) -> str:
        """The file name of a kernel, which differs between processors."""
        return content_hash(self.salt + key.encode()).hexdigest()

    def cached_only(self, texts: Mapping[str, str]) -> dict[str, Kernel]:
        """Look up kernels without compiling; returns those that are found."""
        found = {}
        for name, text in texts.items():
            kernel = self._find(key_of_text(text))
            if kernel is not None:
                found[name] = kernel
        return found

    def compile_kernels(self, texts: Mapping[str, str]) -> dict[str, Kernel]:
        """Look up or compile kernels.

        Args:
            texts: The IR of each kernel, by a name of the caller's.

        Raises:
            RuntimeError: LLVM rejects a text.
        """
        keys = {name: key_of_text(text) for name, text in texts.items()}
        found = {key: self._find(key) for key in keys.values()}
        missing = {key: texts[name] for name, key in keys.items() if found[key] is None}
        if missing:
            shared = self._shared_by(missing)
            with self._lock:
                # another thread may have compiled some of them in the meantime
                found |= {key: self._kernels.get(key) for key in missing}
                todo = [key for key in missing if found[key] is None]
                for batch in _batches(todo):
                    found |= self._compile({key: missing[key] for key in batch}, shared)
        return {name: kernel for name, key in keys.items() if (kernel := found[key]) is not None}

    def _shared_by(self, texts: Mapping[str, str]) -> dict[str, Kernel]:
        """The shared functions that kernels call, by their IR."""
        called = [shared for text in texts.values() for shared in text.split(SHARED)[1:]]
        return self.compile_kernels({shared: shared for shared in called}) if called else {}

    def counts(self) -> JitCounts:
        """Counts so far."""
        return JitCounts(
            self._kernels.numbers()[0], self.compiled, self.prebuilt, self.disk_hits, self.disk_misses
        )

    def _find(self, key: str) -> Kernel | None:
        kernel = self._kernels.get(key)
        if kernel is not None:
            return kernel
        kernel = self._archived(key)
        if kernel is not None:
            self.prebuilt += 1
            return self._kernels.keep(key, kernel)
        file = self._file(key)
        index = self.disk.read(file)
        if index is None:
            self.disk_misses += 1
            return None
        code = self._object(index.decode()) if _OBJECT_KEY.fullmatch(index) else None
        if code is None or key not in code.addresses:
            # the object file was deleted from the cache, or cannot be loaded
            self.disk.delete(file)
            self.disk_misses += 1
            return None
        self.disk_hits += 1
        return self._kernels.keep(key, Kernel.of(code, key))

    def _archived(self, key: str) -> Kernel | None:
        """The kernel in the archive; None if there is none or it cannot be loaded."""
        payload = None if self.archive is None else self.archive.read(key)
        if payload is None:
            return None
        try:
            return Kernel.of(self._load_payload(payload), key)
        except (RuntimeError, LookupError, ValueError):
            return None

    def _object(self, object_key: str) -> _Code | None:
        """The code of an object file on disk; None if there is none or it cannot be loaded."""
        with self._load_lock:
            known = self._objects.get(object_key)
            if known is None:
                payload = self.disk.read(object_key)
                if payload is None:
                    return None
                try:
                    known = self._load_payload(payload)
                except (RuntimeError, LookupError, ValueError):
                    self.disk.delete(object_key)
                    return None
                self._objects[object_key] = known
            return known

    def _load_payload(self, payload: bytes) -> _Code:
        """Load a serialised object file; raises LookupError if a kernel that it calls is in no cache."""
        keys, called, image = payload.split(b"\n", 2)
        kernels = [self.known(key) for key in called.decode().split(",") if key]
        return self._load(image, keys.decode().split(","), kernels)

    def _load(self, image: bytes, keys: list[str], called: Sequence[Kernel]) -> _Code:
        owner: Any
        known = {_symbol(kernel.key): int(kernel) for kernel in called}
        try:
            owner = _core.LoadedObject(image, known)
            addresses = {key: owner.address(_symbol(key)) for key in keys}
        except RuntimeError:
            with self._lock, _InsideCodeGenerator():
                linked, owner = self._code_generator().link(image, [_symbol(key) for key in keys], known)
            addresses = {key: linked[_symbol(key)] for key in keys}
        return _Code(addresses, (owner, *called), len(image))

    def adopt(self, payload: bytes) -> None:
        """Add an object file of the ``made`` list of another process, which has written it to disk."""
        code = self._load_payload(payload)
        self._objects[content_hash(self.salt + payload).hexdigest()] = code
        self.compiled += len(code.addresses)
        for key in code.addresses:
            self._kernels.replace(key, Kernel.of(code, key))

    def known(self, key: str) -> Kernel:
        """Look up a kernel by key; raises LookupError if it is in no cache."""
        found = self._find(key)
        if found is None:
            raise LookupError(f"no kernel {key}")
        return found

    def _code_generator(self) -> _CodeGenerator:
        if self._generator is None:
            self._generator = _CodeGenerator(self._processor)
        return self._generator

    def _compile(self, texts: dict[str, str], shared: Mapping[str, Kernel]) -> dict[str, Kernel]:
        own, called = {}, {}
        for key, text in texts.items():
            kernel, *functions = text.split(SHARED)
            for function in functions:
                called[shared[function].key] = shared[function]
                kernel = _calling(kernel, function, _symbol(shared[function].key))
            own[_symbol(key)] = kernel
        with _InsideCodeGenerator():
            image = self._code_generator().emit(own)
        keys = list(texts)
        code = self._load(image, keys, list(called.values()))
        self.compiled += len(keys)
        payload = payload_of(keys, list(called), image)
        object_key = content_hash(self.salt + payload).hexdigest()
        self._objects[object_key] = code
        made = {key: self._kernels.keep(key, Kernel.of(code, key)) for key in keys}
        if self.made is not None:
            self.made.append(payload)
        # object file first: an index never names a file that is not there yet
        self.disk.write(object_key, payload)
        for key in keys:
            self.disk.write(self._file(key), object_key.encode())
        return made


def _symbol(key: str) -> str:
    """The symbol of a kernel (symbols do not start with a digit)."""
    return f"k{key}"


class _Shared:
    """The jit of this process, made at first use."""

    jit: Jit | None = None
    lock = threading.Lock()


def shared() -> Jit:
    """The jit of this process."""
    if _Shared.jit is None:
        with _Shared.lock:
            if _Shared.jit is None:
                archive = None if config.target_cpu else archive_of(_core.processor_level())
                _Shared.jit = Jit(processor=config.target_cpu, name="machine code", archive=archive)
    return _Shared.jit


def _batches(keys: list[str]) -> Iterator[list[str]]:
    """Batches of keys that are compiled together, with a progress bar if there are several."""
    if len(keys) <= _BATCH:
        yield from [keys] if keys else []
        return
    with import_module("twofold.progress").Progress("compiling", len(keys), "kernel") as shown:
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            yield batch
            shown.advance(len(batch))


class JitCounts(NamedTuple):
    """Numbers of kernels: in memory, compiled by LLVM, prebuilt, and hits and misses of the disk cache."""

    known: int
    compiled: int
    prebuilt: int
    disk_hits: int
    disk_misses: int


def counts() -> JitCounts:
    """The counts of this process so far.

    >>> counts().compiled >= 0
    True
    """
    jit = _Shared.jit
    return JitCounts(0, 0, 0, 0, 0) if jit is None else jit.counts()


def compile_kernels(texts: Mapping[str, str]) -> dict[str, Kernel]:
    """Look up or compile kernels.

    Args:
        texts: The IR of each kernel, by a name of the caller's.

    Raises:
        RuntimeError: LLVM rejects a text.
        ValueError: A text defines no kernel.

    >>> from twofold.compiler.lower.builder import Builder
    >>> list(compile_kernels({"nothing": Builder().finish()}))
    ['nothing']
    """
    return shared().compile_kernels(texts)


def cached_only(texts: Mapping[str, str]) -> dict[str, Kernel]:
    """Look up kernels without compiling; returns those that are found."""
    return shared().cached_only(texts)


def _before_fork() -> None:
    """Wait for the compile in progress: the child would inherit the code generator in an inconsistent state."""
    if _Shared.jit is not None:
        _Shared.jit.acquire()


def _after_fork_in_parent() -> None:
    if _Shared.jit is not None:
        _Shared.jit.release()


def _after_fork_in_child() -> None:
    """Replace locks: one that another thread held during the fork would stay locked in the child."""
    _Shared.lock = threading.Lock()
    if _Shared.jit is not None:
        _Shared.jit.renew_locks()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
