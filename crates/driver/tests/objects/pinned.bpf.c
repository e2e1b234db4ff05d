/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The example of a congestion control, with a map that would stay on the machine. */
#include "../../../../examples/bpf/gentle.bpf.c"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u64);
} kept SEC(".maps");
