# make build      the release program, at build/weft
# make run        builds, fetches the default model and answers a prompt: make run PROMPT="Once upon a time"
# make test       the suite without its slow tests
# make check      format, layers, instruction sets, sources alone, dumps of the docs, sizes,
#                 instruction counts, all slow tests
# make sanitize   the suite under AddressSanitizer and UndefinedBehaviorSanitizer, threaded tests under ThreadSanitizer
# make fuzz       every fuzz target for FUZZ_SECONDS (60)
# make install    to PREFIX (/usr/local)
# make format     formats the sources in place
#
# On Debian each installs the packages it lacks (tools/setup.sh; root or sudo). What is up to date costs nothing: the
# stamps in build/ remember it.

PROMPT ?= The capital of France is
MODEL ?= smollm2-135m
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
export PROMPT
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
# Once there is a program, a build that finds nothing to do says nothing.
QUIETLY := $(if $(wildcard build/weft),--quiet weft | sed '/no work to do/d',weft)

.DEFAULT_GOAL := build
.PHONY: build run test check sanitize fuzz install format clean model

build: build/build.ninja
	@ninja -C build $(QUIETLY) >&2

run: build model
	@build/weft complete $(MODEL) -p "$$PROMPT" -n 64 --temp 0 --stats

model: build/.ready-build
	@$(PYTHON) -I tools/fetch_model.py smollm2-135m

test: build/.ready-test model
	ninja -C build
	$(PYTHON) tools/run_tests.py build -L '^fast$$'

check: build/.ready-check model
	tools/check_format.sh
	$(PYTHON) tools/check_layers.py
	ninja -C build
	$(PYTHON) tools/check_isa.py build
	$(PYTHON) tools/check_alone.py build
	$(PYTHON) tools/check_design.py build
	$(PYTHON) tools/size_report.py
	$(PYTHON) tools/instruction_counts.py
	$(PYTHON) tools/run_tests.py build -L '^slow$$'

sanitize: build/.ready-check model
	cmake --preset asan
	ninja -C build/asan
	$(PYTHON) tools/run_tests.py build/asan
	cmake --preset tsan
	ninja -C build/tsan threaded_tests
	$(PYTHON) tools/run_tests.py build/tsan -L threaded

fuzz: build/.ready-check
	cmake --preset fuzz
	ninja -C build/fuzz fuzz_targets
	tools/run_fuzzers.sh $(FUZZ_SECONDS)

install: build
	@ninja -C build --quiet weft_shared
	cmake --install build --prefix $(PREFIX)

format: build/.ready-check
	tools/check_format.sh --fix

clean:
	rm -rf build

build/build.ninja: build/.ready-build
	cmake --preset release >&2

# A stamp's level also configures: a library that was missing before is found now.
build/.ready-build: tools/setup.sh
	@tools/setup.sh build
	@mkdir -p build && touch $@

build/.ready-test build/.ready-check: build/.ready-%: tools/setup.sh tools/fetch_nvcc.py
	@tools/setup.sh $*
	@$(PYTHON) -I tools/fetch_nvcc.py
	@mkdir -p build && touch build/.ready-build
	cmake --preset release >&2
	@touch $@
