#!/bin/sh
# Compiles the BPF objects into the folder $1. The same sources, headers and compiler give the same bytes, wherever they lie.
set -eu
cd "$(dirname "$0")"
out=$1
case $out in /*) ;; *) out=$OLDPWD/$out ;; esac
clang=${BPF_CLANG:-clang-14}
# Where Debian has the headers of an architecture; clang looks there for its own target only.
multiarch=$("$clang" -print-target-triple | sed 's/-pc-/-/')
for name in cc tc; do
	"$clang" -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-declarations \
		-isystem "/usr/include/$multiarch" -fdebug-compilation-dir . -ffile-prefix-map="$PWD=." \
		-c $name.bpf.c -o "$out/$name.bpf.o"
	# What stays is BTF, which loading needs; what goes is DWARF.
	"$(dirname "$(readlink -f "$(command -v "$clang")")")/llvm-strip" --strip-debug "$out/$name.bpf.o"
done
