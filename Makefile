# Each target does its own set-up. What is needed beforehand: Rust (rustup), Python 3.11+ and a C compiler.

CARGO ?= cargo
FARPATH = target/release/farpath

.PHONY: demo test lint unit bench setup clean

# The main job: the high-BER paper's download, predicted and simulated side by side.
demo: setup
	$(CARGO) build --release --locked --package farpath-cli
	$(FARPATH) run experiments/noisy-channel.toml
	@echo
	@echo "The claims of the paper, one by one:  $(FARPATH) papers high-ber"

# Everything that must hold: formatting, lints, documentation, tests.
test: setup lint unit

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

unit:
	$(CARGO) test --workspace --locked

# One line a figure. Compare ratios within one run; machines differ, and share their cores.
bench: setup
	$(CARGO) run --release --locked --package farpath-sim --example speed

setup:
	@command -v $(CARGO) >/dev/null || { echo "farpath needs Rust: https://rustup.rs"; exit 1; }
	@command -v cc >/dev/null || { echo "farpath needs a C compiler named cc (Debian: apt-get install gcc)"; exit 1; }
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy

clean:
	$(CARGO) clean
