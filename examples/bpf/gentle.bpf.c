/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A congestion control to begin with: Reno whose window, after a loss, is seven eighths of what it was and not half. Slow start and the growth
 * of a segment a round trip are the kernel's own functions. `make bpf` compiles it; so does
 *
 *   clang -target bpf -mcpu=v3 -O2 -g -I/usr/include/x86_64-linux-gnu -c gentle.bpf.c -o gentle.bpf.o
 *
 * Of the kernel's structures only what is used here is written down: where it lies in the kernel that runs is found as it is loaded. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* The kernel's functions for congestion controls are for programs under the GPL. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TCP_CA_NAME_LEN 16

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* One field at least, or it is not the kernel's type to its functions. */
struct sock {
	__u32 sk_pacing_status;
};

struct tcp_sock {
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[TCP_CA_NAME_LEN];
};

#pragma clang attribute pop

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* What is left of the window after a loss, in eighths; two segments at the least. */
#define KEPT_EIGHTHS 7

SEC("struct_ops")
__u32 BPF_PROG(gentle_ssthresh, struct sock *sk)
{
	__u32 kept = ((struct tcp_sock *)sk)->snd_cwnd * KEPT_EIGHTHS / 8;

	return kept > 2 ? kept : 2;
}

/* For each ACK of new data; `acked` is how many segments it covers. */
SEC("struct_ops")
void BPF_PROG(gentle_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(gentle_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops gentle = {
	.ssthresh = (void *)gentle_ssthresh,
	.cong_avoid = (void *)gentle_cong_avoid,
	.undo_cwnd = (void *)gentle_undo_cwnd,
	.name = "gentle",
};
