"""One framework and one workload in a process of its own, which takes a sample whenever it is asked.

``worker.py FRAMEWORK WORKLOAD`` answers with lines of JSON; it reads ``sample SECONDS`` and ``end``.
``worker.py FRAMEWORK WORKLOAD first`` answers once: seconds from after the import to the first result.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

from frameworks import FRAMEWORKS
from timing import Case, calibrate, sample


def _own_output() -> TextIO:
    """The standard output, while everything that libraries print goes to the standard error."""
    own = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return own


def _serve(case: Case, begin: float, tell: Any) -> None:
    check = [float(value) for value in case.check()]
    tell(ready=True, check=check, first=time.perf_counter() - begin)
    calls = calibrate(case)
    for line in sys.stdin:
        command = line.split()
        if command[0] == "end":
            break
        tell(seconds=sample(case, calls, float(command[1])) / case.operations)
    tell(peak_mib=_peak_mebibytes())


def _peak_mebibytes() -> float:
    """Peak resident memory since this program began; ``ru_maxrss`` would include the process it was forked from."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Answers on the standard output."""
    output = _own_output()

    def tell(**fields: Any) -> None:
        print(json.dumps(fields), file=output, flush=True)

    framework, workload, *rest = sys.argv[1:]
    try:
        make = FRAMEWORKS[framework].load()
        begin = time.perf_counter()
        case = make(workload)
        if case is None:
            tell(skip="no meaning here")
        elif rest:
            case.finish(case.call())
            tell(first=time.perf_counter() - begin)
        else:
            _serve(case, begin, tell)
    except Exception as error:
        traceback.print_exc()
        tell(skip=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160])


if __name__ == "__main__":
    main()
