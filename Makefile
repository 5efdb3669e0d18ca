# make demo and make test are all that a reader needs; both prepare .venv by themselves.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/installed
CORE_PYTHON ?= $(VENV)/bin/python
DEMO ?=
BENCH ?=
SANITIZER ?= address,undefined
SANITIZE_TESTS ?= tests/core tests/runtime
WORKERS ?= 2
MUTATE ?=
EXAMPLES ?= 1000

.PHONY: demo test explore conformance mutate core sanitize bench lint generated format clean

demo: $(STAMP)
	$(VENV)/bin/python -m twofold demo $(DEMO)

# Property tests take the same examples in every run; explore runs random programs until one fails.
test: lint
	$(VENV)/bin/python -m pytest -n $(WORKERS) --durations=10 --hypothesis-profile=ci

explore: $(STAMP)
	TWOFOLD_TEST_EXAMPLES=$(EXAMPLES) $(VENV)/bin/python -m pytest -n $(WORKERS) -x tests/ops/test_compiled_programs.py tests/compiler/schedule/test_same_bits.py

# Small changes of the source that the tests must notice: make mutate [MUTATE="--seed 1 --count 300"]; takes hours.
mutate: $(STAMP)
	$(VENV)/bin/python tools/mutate.py $(MUTATE)

# The comparison with PyTorch, where exactly this version of it can be installed; else nothing.
PYTORCH := 2.13.0
conformance: $(STAMP)
	@if $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'torch==$(PYTORCH)' expecttest; then \
	    $(VENV)/bin/python -m pytest -n $(WORKERS) --hypothesis-profile=ci tests/conformance; \
	else echo "PyTorch $(PYTORCH) cannot be installed here: tests/conformance is left out"; fi

lint: $(STAMP)
	$(VENV)/bin/python tools/stubs.py
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .
	$(VENV)/bin/python -m mypy

# From the operation entries: the index of what each module has, and two things that are not kept in the repository, the
# type stubs, which every build writes, too, and the reference pages in docs/reference.
generated: $(STAMP)
	$(VENV)/bin/python tools/index.py
	$(VENV)/bin/python tools/stubs.py
	$(VENV)/bin/python tools/reference.py

format: $(STAMP)
	$(VENV)/bin/python -m ruff check --fix .
	$(VENV)/bin/python -m ruff format .

bench: $(STAMP)
	$(VENV)/bin/python bench/run.py $(BENCH)

$(STAMP): pyproject.toml CMakeLists.txt $(wildcard csrc/*.cc csrc/*.h)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Twofold needs Python 3.10 or newer.")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[demo,test]'
	touch $@

# Fast, incremental build of the extension into twofold/: make core [CORE_PYTHON=path of a Python with nanobind].
core: $(if $(filter $(VENV)/%,$(CORE_PYTHON)),$(VENV)/developer)
	@mkdir -p build
	PATH="$(dir $(CORE_PYTHON)):$$PATH" cmake -S . -B build/core -G Ninja -DTWOFOLD_IN_PLACE=ON \
	    -DPython_EXECUTABLE="$$(realpath -s $(CORE_PYTHON))" > build/core.log 2>&1 || { cat build/core.log; exit 1; }
	PATH="$(dir $(CORE_PYTHON)):$$PATH" cmake --build build/core
	@if test -e $(STAMP); then touch $(STAMP); fi

$(VENV)/developer: pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check cmake ninja 'nanobind>=2.4' 'numpy>=2' 'llvmlite>=0.44'
	touch $@

# The core under the address and undefined-behaviour sanitizers, or with SANITIZER=thread under that for data races, on a copy
# of the package. Python itself leaks by design, so leaks are not looked for; what is reported of races in Python alone, whose
# code is not instrumented, does not fail, and NumPy's products, which are not either, have one thread. libstdc++ is preloaded for
# the interception of exceptions.
comma := ,
SANITIZED := build/sanitize-$(subst $(comma),-,$(SANITIZER))
preload = $(foreach library,$(1),$(shell g++ -print-file-name=$(library)))
ifeq ($(SANITIZER),thread)
SANITIZED_RUN = OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS="die_after_fork=0:report_signal_unsafe=0:report_thread_leaks=0:exitcode=0" \
    LD_PRELOAD="$(call preload,libtsan.so libstdc++.so)" setarch -R
else
SANITIZED_RUN = ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    LD_PRELOAD="$(call preload,libasan.so libubsan.so libstdc++.so)"
endif
sanitize: $(STAMP) $(VENV)/developer
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake -S . -B $(SANITIZED) -G Ninja -DTWOFOLD_SANITIZE=$(SANITIZER) \
	    -DPython_EXECUTABLE="$(CURDIR)/$(VENV)/bin/python"
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --build $(SANITIZED)
	rm -rf $(SANITIZED)/tree && mkdir -p $(SANITIZED)/tree
	cp -r twofold tests pyproject.toml $(SANITIZED)/tree
	rm -f $(SANITIZED)/tree/twofold/_core*.so && cp $(SANITIZED)/_core*.so $(SANITIZED)/tree/twofold
	cd $(SANITIZED)/tree && PYTHONPATH="$(CURDIR)/tools/without_install:." PYTHONMALLOC=malloc $(SANITIZED_RUN) \
	    "$(CURDIR)/$(VENV)/bin/python" -m pytest --capture=sys -p no:cacheprovider $(SANITIZE_TESTS)

clean:
	rm -rf build $(VENV) twofold/_core*.so twofold/compiler/*.kernels report.html
