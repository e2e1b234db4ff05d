# Each target does its own set-up. What is needed beforehand: Rust (rustup) and a C compiler to link with.

CARGO ?= cargo
FARPATH = target/release/farpath

.PHONY: demo test lint core unit python docs package setup-python bpf bench bench-dask bench-long oracle truth ns3 setup setup-test setup-bench vendor clean

# The explicit-rate driver links libelf and zlib. Where their headers are not, and are not installed by `make setup`, the
# command is built without it; `farpath driver` then says so.
DRIVER = $(shell pkg-config --exists libelf zlib 2>/dev/null && echo yes)
CLI = $(if $(DRIVER),,--no-default-features)
ALL = --workspace $(if $(DRIVER),,--exclude farpath-driver --no-default-features)

# The main job: the high-BER paper's download, predicted and simulated side by side; and its testbed's, on the TCP of
# this machine's own kernel too, where that may be asked. That one takes the minute that its downloads take. It ends with
# 1 where the machine was too busy to be in time, and says so.
LOSSES = sweep.path.loss.rate.forward=['0 %', '0.01 %', '0.1 %', '1 %']
demo: setup
	$(CARGO) build --release --locked --package farpath-cli $(CLI)
	$(FARPATH) run experiments/noisy-channel.toml
	@echo
	@if $(FARPATH) doctor --json | grep -q '"emulates":true'; then \
		echo "$(FARPATH) run experiments/noisy-testbed.toml --engine predict,simulate,emulate, up to 1 %: about a minute"; \
		$(FARPATH) run experiments/noisy-testbed.toml --engine predict,simulate,emulate --set "$(LOSSES)" \
			|| test $$? = 1; \
	else \
		echo "demo: SKIPPED the running kernel, which may not be asked here: $(FARPATH) doctor says why"; \
	fi
	@echo
	@echo "The claims of the paper, one by one:  $(FARPATH) papers high-ber"

# Everything that must hold: formatting, lints, documentation, tests. Rust's tests wait for clocks more than they compute:
# the Python face and the guide are tried beside them.
test: setup setup-test lint core
	$(MAKE) --no-print-directory -j unit python docs

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps --locked --quiet

# The core owns no clock, socket or thread: it builds where there are none.
CORE = units tcp tia1039 path model sim
core:
	@if rustup target add wasm32-unknown-unknown >/dev/null 2>&1; then \
		$(CARGO) check --locked --quiet --target wasm32-unknown-unknown $(CORE:%=--package farpath-%) && \
		echo "core: builds for wasm32-unknown-unknown"; \
	else \
		echo "core: SKIPPED the build for wasm32-unknown-unknown: rustup cannot add that target here"; \
	fi

unit:
	$(CARGO) test $(ALL) --locked

# The Python face and its tests.
PYTHON = target/python
python: package
	@if [ -e $(PYTHON)/installed ]; then PYTHONPATH=python $(PYTHON)/bin/python -m pytest -q; \
	else echo "python: SKIPPED the tests of the Python face: see setup-python above"; fi

# The user guide, target/docs/html: docs/ with the notebooks run, the Python face from its docstrings and the command from
# its help. A link to nothing ends it, and so does an error in a notebook.
docs: package
	@if [ -e $(PYTHON)/installed ]; then \
		PYTHONPATH=$(CURDIR)/python $(PYTHON)/bin/python -m sphinx -W --keep-going -q -j auto -d target/docs/doctrees docs target/docs/html; \
	else echo "docs: SKIPPED the user guide and its notebooks: see setup-python above"; fi

# The package is the folder python/ with the library in it. It is of what `unit` has compiled: `--examples` is there for the
# features of tests, without which half of the crates would be compiled again.
LIBRARY = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug/libfarpath_python
package: setup setup-python
	@[ ! -e $(PYTHON)/installed ] || { \
		$(CARGO) build $(ALL) --locked --lib --examples && \
		ln -sf "$$(ls $(LIBRARY).so $(LIBRARY).dylib 2>/dev/null | head -n 1)" python/farpath/_farpath.abi3.so; }

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
bench: setup setup-bench
	@$(MAKE) --no-print-directory ns3 || true
	$(CARGO) run --release --locked --package farpath-bench --bin bench -- $(NS3) target/bench.json

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

# Does the simulator tell the truth? Each variant of TCP at the 56 points of experiments/truth.toml, twelve seeds each, simulated
# and on a Linux kernel in virtual time: a quarter of an hour on two cores, after the eight of one core that such a kernel takes
# to make where there is none. The tables stay in target/truth. docs/validation.md has what came out.
LINUX = --set sender.stack=linux-6 --set receiver.stack=linux-6
AGREE = $(FARPATH) agree experiments/truth.toml --engine simulate,emulate
truth: setup
	$(CARGO) build --release --locked --package farpath-cli $(CLI)
	@$(FARPATH) kernel info >/dev/null 2>&1 || $(FARPATH) kernel build
	$(AGREE) --out target/truth/reno --set sender.stack=reno-1990
	$(AGREE) --out target/truth/reno-sack
	$(AGREE) --out target/truth/cubic $(LINUX)
	$(AGREE) --out target/truth/bbr $(LINUX) --set sender.congestion.control=bbr

# ns-3's wheel from PyPI, in an environment of its own. A program of ours is compiled against it with g++.
NS3 = target/ns3
ns3: $(NS3)/installed
$(NS3)/installed:
	@command -v g++ >/dev/null || { echo "ns-3 needs g++ (Debian: apt-get install g++)"; exit 1; }
	@python3 -m venv $(NS3) || { echo "ns-3 needs python3 with venv (Debian: apt-get install python3-venv)"; exit 1; }
	@$(NS3)/bin/pip install --quiet --disable-pip-version-check ns3==3.44.post0
	@touch $@

# The BPF objects of the driver. They are in the repository, so that nothing else needs clang; a test says whether they are
# what the sources give, and needs this clang.
BPF = crates/driver/bpf
BPF_CLANG = clang-14
bpf:
	@command -v $(BPF_CLANG) >/dev/null || { echo "make bpf needs $(BPF_CLANG) (Debian 12: apt-get install clang)"; exit 1; }
	@[ -e /usr/include/bpf/bpf_helpers.h ] || { echo "make bpf needs libbpf's headers (Debian: apt-get install libbpf-dev)"; exit 1; }
	BPF_CLANG=$(BPF_CLANG) $(BPF)/build.sh $(BPF)

setup:
	@command -v $(CARGO) >/dev/null || { echo "farpath needs Rust: https://rustup.rs"; exit 1; }
	@command -v cc >/dev/null || { echo "farpath needs a C compiler named cc (Debian: apt-get install gcc)"; exit 1; }
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	@pkg-config --exists libelf zlib 2>/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			libelf-dev zlib1g-dev pkg-config; } >/dev/null 2>&1; \
	} || echo "setup: no libelf and zlib to build with here, and none installed (Debian, as root: apt-get install libelf-dev" \
		"zlib1g-dev pkg-config); farpath is built without \`farpath driver\`"

# tshark reads captures as somebody else would, chromium shows reports. Where one of them cannot be had, the tests that
# ask it say that they are skipped.
setup-test: setup
	@command -v chromium >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			chromium fonts-dejavu-core; } >/dev/null 2>&1; \
	} || echo "setup: no chromium here, and none installed (Debian, as root: apt-get install chromium); its tests will be SKIPPED"
	@command -v tshark >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tshark; } \
			>/dev/null 2>&1; \
	} || echo "setup: no tshark here, and none installed (Debian, as root: apt-get install tshark); its tests will be SKIPPED"

	@command -v $(BPF_CLANG) >/dev/null && [ -e /usr/include/bpf/bpf_helpers.h ] || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			$(BPF_CLANG) llvm-14 libbpf-dev; } >/dev/null 2>&1; \
	} || echo "setup: no $(BPF_CLANG) and libbpf-dev here, and none installed; whether the BPF objects are what their sources" \
		"give is SKIPPED"

# What draws the figures of a report, again from npm: exact versions, checked against the hashes of package-lock.json.
# The files are in the repository, so that nothing else needs npm; `git diff` shows whether anything moved.
VENDOR = crates/report/vendor
VENDORED = vega vega-lite vega-embed
vendor:
	@command -v npm >/dev/null || { echo "make vendor needs npm (Debian: apt-get install npm)"; exit 1; }
	rm -rf target/vendor && mkdir -p target/vendor
	cp $(VENDOR)/package.json $(VENDOR)/package-lock.json target/vendor/
	cd target/vendor && npm ci --ignore-scripts --no-audit --no-fund
	for name in $(VENDORED); do cp target/vendor/node_modules/$$name/build/$$name.min.js $(VENDOR)/ || exit 1; done
	cd target/vendor && node ../../$(VENDOR)/licences.mjs > ../../$(VENDOR)/LICENSES.txt

# iperf3 is the load of emulated lines.
setup-bench: setup
	@command -v iperf3 >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends iperf3; } \
			>/dev/null 2>&1; \
	} || echo "setup: no iperf3 here, and none installed (Debian, as root: apt-get install iperf3); its rows are not measured"

clean:
	$(CARGO) clean
