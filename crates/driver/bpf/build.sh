#!/bin/sh
# Compiles the BPF sources $2 ... into the folder $1; where there are none, the driver's. The same sources, headers and compiler give
# the same bytes, wherever they lie.
set -eu
out=$(cd "$1" && pwd)
shift
own=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- "$own/cc.bpf.c" "$own/tc.bpf.c"
clang=${BPF_CLANG:-clang-14}
# Where Debian has the headers of an architecture; clang looks there for its own target only.
multiarch=$("$clang" -print-target-triple | sed 's/-pc-/-/')
for source; do
	folder=$(cd "$(dirname "$source")" && pwd)
	name=$(basename "$source" .bpf.c)
	(cd "$folder" && "$clang" -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-declarations \
		-isystem "/usr/include/$multiarch" -fdebug-compilation-dir . -ffile-prefix-map="$folder=." \
		-c "$name.bpf.c" -o "$out/$name.bpf.o")
	# What stays is BTF, which loading needs; what goes is DWARF.
	"$(dirname "$(readlink -f "$(command -v "$clang")")")/llvm-strip" --strip-debug "$out/$name.bpf.o"
done
