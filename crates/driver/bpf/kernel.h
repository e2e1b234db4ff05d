/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What these programs know of the kernel: the fields that they use, found in the running kernel by CO-RE, and the numbers of its interface. */
#ifndef FARPATH_KERNEL_H
#define FARPATH_KERNEL_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define AF_INET 2
#define AF_INET6 10
#define SOL_SOCKET 1
#define SOL_TCP 6
#define SO_SNDBUF 7
#define SO_RCVBUF 8
#define TCP_CONGESTION 13
#define TCP_CA_NAME_LEN 16
/* include/net/tcp.h: everybody may choose it. */
#define TCP_CONG_NON_RESTRICTED 1
/* include/net/tcp_states.h */
#define TCP_SYN_SENT 2
#define TCP_SYN_RECV 3
#define TCP_LISTEN 10
#define TCP_NEW_SYN_RECV 12
/* include/net/sock.h: a program has set the buffer itself, in sk_userlocks */
#define SOCK_SNDBUF_LOCK 1
#define SOCK_RCVBUF_LOCK 2
/* enum sk_pacing */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define SK_PACING_FQ 2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net {
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr___kernel {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	union {
		struct {
			__be32 skc_daddr;
			__be32 skc_rcv_saddr;
		};
	};
	union {
		struct {
			__be16 skc_dport;
			__u16 skc_num;
		};
	};
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr___kernel skc_v6_daddr;
	struct in6_addr___kernel skc_v6_rcv_saddr;
	union {
		__u32 skc_rcv_wnd;
	};
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
	int sk_sndbuf;
	__u8 sk_userlocks : 4;
};

struct inet_sock {
	struct sock sk;
};

/* Of a connection whose SYN/ACK is under way. */
struct request_sock {
	struct sock_common __req_common;
};

struct inet_request_sock {
	struct request_sock req;
	__u16 rcv_wscale : 4;
};

struct tcp_request_sock {
	struct inet_request_sock req;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u16 tcp_header_len;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 srtt_us;
	__u32 mss_cache;
	__u32 lost;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 lost_out;
	struct minmax rtt_min;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk);
	char name[TCP_CA_NAME_LEN];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#pragma clang attribute pop

#endif
