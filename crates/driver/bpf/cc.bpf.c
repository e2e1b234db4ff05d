/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The congestion control of explicit rate: data leaves at the rate that was granted, whatever is lost, and a socket without a
 * grant goes on with the system's own. */
#include "driver.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The window is no limit: 16 rounds of repair fit in. */
#define WINDOW_ROUNDS 16
#define LEAST_WINDOW 1000
#define MOST_WINDOW (1U << 20)
#define UNLIMITED 0x7fffffff
/* What a router's bucket is filled with, two of which it holds at least. */
#define FULL_PACKET 1500
/* Over a longer round trip TCP adds less than a packet to what the rate lets it hand down at once. */
#define SHORT_RTT_US 4096
/* While ACKs come there is one in a round trip and the time of so many packets. */
#define ACKED_PACKETS 4
/* Of repair, that a buffer is large enough for: a billion packets at the most loss that is allowed for. */
#define MOST_ROUNDS 200
/* Of RFC 6928: what a server sends before it knows whether its client has a grant for it, and the least that one begins with which had a grant. */
#define INITIAL_WINDOW 10
/* So many packets that a server has delivered without an answer mean that there will be none. */
#define WAITING_PACKETS 16

/* As the signalling has it, of packets. */
static __always_inline void key_of(struct sock *sk, struct key *key)
{
	struct sock_common *common = &sk->__sk_common;

	__builtin_memset(key, 0, sizeof(*key));
	key->netns = common->skc_net.net->net_cookie;
	key->local_port = bpf_htons(common->skc_num);
	key->remote_port = common->skc_dport;
	if (common->skc_family == AF_INET) {
		key->local[2] = key->remote[2] = bpf_htonl(0xffff);
		key->local[3] = common->skc_rcv_saddr;
		key->remote[3] = common->skc_daddr;
		return;
	}
	for (int i = 0; i < 4; i++) {
		key->local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		key->remote[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
	}
}

static __always_inline int is_ipv4(const struct key *key)
{
	return !key->remote[0] && !key->remote[1] && key->remote[2] == bpf_htonl(0xffff);
}

/* For those who look when the socket is gone. */
static __noinline void remember(const struct key *key, const struct flow *flow, enum outcome outcome)
{
	struct flow past_flow = {};

	if (flow)
		past_flow = *flow;
	past_flow.outcome = outcome;
	bpf_map_update_elem(&past, key, &past_flow, BPF_ANY);
	bpf_map_delete_elem(&flows, key);
}

/* For good: the socket forgets this congestion control. Where there was a grant, the routers are told, and what was delivered in the last
 * round trip, or so far in this one, is the window that the next one begins with. */
static __always_inline void fall_back(struct sock *sk, const struct key *key, const struct flow *flow, enum outcome why)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct config *config = configured();
	char name[TCP_CA_NAME_LEN] = "reno";

	count(PLAIN + why);
	remember(key, flow, why);
	if (config)
		__builtin_memcpy(name, config->plain, sizeof(name));
	if (flow && flow->round_began) {
		/* srtt_us is in eighths. */
		__u64 window = flow->delivered_rate * (tp->srtt_us >> 3) / (1000 * 1000000ULL);
		__u32 begun = tp->delivered - flow->round_delivered;
		struct talk *talk = bpf_map_lookup_elem(&talks, key);

		if (window < begun)
			window = begun;
		if (window < INITIAL_WINDOW)
			window = INITIAL_WINDOW;
		if (window > MOST_WINDOW)
			window = MOST_WINDOW;
		tp->snd_cwnd = window;
		tp->snd_ssthresh = window;
		sk->sk_pacing_status = flow->paced;
		if (talk) {
			talk->now = request(CLOSE, flow->asked);
			talk->has_now = 1;
		}
		if (config)
			__builtin_memcpy(name, config->fallback, sizeof(name));
	}
	if (bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, name, sizeof(name))) {
		char reno[TCP_CA_NAME_LEN] = "reno";

		bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
	}
}

static __always_inline __u32 window_at(const struct tcp_sock *tp, __u64 rate)
{
	__u64 srtt_us = tp->srtt_us >> 3, window;

	window = WINDOW_ROUNDS * (rate * (srtt_us ?: 1000000) / 1000000) / (tp->mss_cache ?: 536);
	return window < LEAST_WINDOW ? LEAST_WINDOW : window > MOST_WINDOW ? MOST_WINDOW : window;
}

/* What TCP hands down at once is bounded by the window: it has room for half of what a router tolerates beyond what is under way, and TCP never
 * fills more than half of it at once. As `DriverSettings::pace` of the crate farpath-tia1039. Where fq paces, TCP hands down packets until the
 * window is full, and this would clock them by ACKs. So it would where this is not called in time, and only an ACK wakes TCP again: where none come
 * for a while, as none do in the first round trip, the window is no bound unless the round trip is short. */
static __always_inline void bound_burst(struct sock *sk, const struct flow *flow, const struct config *config)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u64 rate = sk->sk_pacing_rate, srtt_ns = (__u64)(tp->srtt_us >> 3) * 1000;
	__u64 wait_ns = srtt_ns + ACKED_PACKETS * FULL_PACKET * 1000000000ULL / (rate ?: 1);
	__u32 in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	__u32 burst = (rate >> (config->burst + 1) >> 1) / FULL_PACKET ?: 1;
	__u32 room = in_flight > burst ? in_flight + burst : 2 * burst;
	__u32 window = window_at(tp, rate);
	int acked = flow->acked_at && bpf_ktime_get_ns() - flow->acked_at < wait_ns;
	int bounded = sk->sk_pacing_status == SK_PACING_NEEDED && (acked || tp->rtt_min.s[0].v < SHORT_RTT_US);

	tp->snd_cwnd = bounded && room < window ? room : window;
}

/* At the rate of the grant, which counts IP packets. Where TCP paces by itself it counts payload; where fq does, it counts
 * headers. */
static __always_inline void send_at_grant(struct sock *sk, const struct flow *flow, const struct config *config, int ipv4)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u64 rate = kbit_of(flow->granted) * 125;
	__u32 mss = tp->mss_cache ?: 536, headers = (ipv4 ? 20 : 40) + tp->tcp_header_len;

	if (sk->sk_pacing_status != SK_PACING_FQ)
		rate = rate * mss / (mss + headers);
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	bound_burst(sk, flow, config);
}

static __always_inline void restart_guard(struct flow *flow, const struct tcp_sock *tp, __u64 now)
{
	flow->last_lost = flow->round_lost = tp->lost;
	flow->last_delivered = flow->round_delivered = tp->delivered;
	flow->last_ce = tp->delivered_ce;
	flow->round_began = now;
	flow->excess = 0;
	flow->queued_rounds = 0;
	flow->delivered_rate = 0;
}

/* Whether the grant is still believed: GRANTED, or why not. As `Guard::check` of the crate farpath-tia1039. */
static __always_inline enum outcome guard(struct flow *flow, const struct tcp_sock *tp, const struct config *config, __u64 now)
{
	__u32 lost = tp->lost - flow->last_lost, delivered = tp->delivered - flow->last_delivered;
	__u32 marked = tp->delivered_ce - flow->last_ce;
	__s64 credit = (__s64)((__u64)tp->packets_out * config->allowed);
	__u64 srtt_us = tp->srtt_us >> 3, min_rtt_us = tp->rtt_min.s[0].v, round = now - flow->round_began;

	flow->last_lost = tp->lost;
	flow->last_delivered = tp->delivered;
	flow->last_ce = tp->delivered_ce;
	if (delivered)
		flow->acked_at = now;
	/* Page's test, in packets. A loss is known later than what was sent around it, by no more than what is under way: so much may
	 * stand to the flow's credit. */
	flow->excess += (__s64)((__u64)lost * 1000000) - (__s64)(((__u64)lost + delivered) * config->allowed);
	if (flow->excess < -credit)
		flow->excess = -credit;
	if (marked)
		return TRIPPED_MARK;
	if (flow->excess > (__s64)((__u64)config->excess * 1000000))
		return TRIPPED_LOSS;
	if (srtt_us && round / 1000 >= srtt_us) {
		__u64 least = min_rtt_us / 4 > config->queue_us ? min_rtt_us / 4 : config->queue_us;
		int queued = srtt_us > min_rtt_us + least;

		lost = tp->lost - flow->round_lost;
		delivered = tp->delivered - flow->round_delivered;
		flow->delivered_rate = (__u64)delivered * 1000000000ULL / (round / 1000);
		flow->round_lost = tp->lost;
		flow->round_delivered = tp->delivered;
		flow->round_began = now;
		if (queued && (__u64)lost * 1000 > ((__u64)lost + delivered) * config->queue_loss_per_mille)
			flow->queued_rounds++;
		else
			flow->queued_rounds = 0;
		if (flow->queued_rounds >= config->queue_rounds)
			return TRIPPED_QUEUE;
	}
	return GRANTED;
}

/* The buffer that keeps a rate over a round trip while losses of so many packets in a thousand are repaired. As `window_for` of the
 * crate farpath-tia1039. */
static __noinline __u64 window_for(__u64 kbit, __u64 rtt_us, __u32 per_mille)
{
	__u64 product = kbit * rtt_us / 8000, left = product / 1448 * 1000;
	__u32 rounds = 1;

	if (per_mille > 900)
		per_mille = 900;
	for (int i = 0; i < MOST_ROUNDS && per_mille && left > 1000; i++) {
		left = left * per_mille / 1000;
		rounds++;
	}
	return product * rounds;
}

/* What a buffer is set to that needs so much; 0 where TCP makes more of it by itself. */
static __always_inline int buffer_for(__u64 needed, __u32 most, __u32 by_itself)
{
	__u64 size = needed < most ? needed : most;

	return size >= by_itself ? size : 0;
}

/* What TCP grows by itself, it grows with the window that it has, which is behind a rate that is there at once. The kernel doubles what is
 * set, for what it needs itself. */
static __always_inline void size_send_buffer(struct sock *sk, const struct flow *flow, const struct config *config)
{
	__u64 srtt_us = ((struct tcp_sock *)sk)->srtt_us >> 3;
	int size;

	if (config->buffer || flow->own_buffers & SOCK_SNDBUF_LOCK)
		return;
	size = buffer_for(window_for(kbit_of(flow->granted), srtt_us, config->loss_per_mille), config->send_most,
			  config->send_by_itself);
	if (size > sk->sk_sndbuf >> 1)
		bpf_setsockopt(sk, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

/* For data that the peer sends, at a rate that this end does not hear of when it changes: for the most that it asks for itself. A buffer that
 * is full of what lies behind a hole is not seen to be too small. */
static __always_inline void size_receive_buffer(struct sock *sk, const struct flow *flow, const struct config *config)
{
	__u64 srtt_us = ((struct tcp_sock *)sk)->srtt_us >> 3;
	__u64 needed = window_for(kbit_of(flow->asked), srtt_us, config->loss_per_mille);
	int size;

	if (config->buffer || flow->own_buffers & SOCK_RCVBUF_LOCK || needed <= FIRST_WINDOW)
		return;
	if (needed < config->receive_by_itself)
		needed = config->receive_by_itself;
	size = buffer_for(needed, config->receive_most, config->receive_by_itself);
	if (size)
		bpf_setsockopt(sk, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

/* What a socket with a grant is told once. */
static __always_inline void begin(struct sock *sk, struct flow *flow, const struct config *config)
{
	int buffer = config->buffer;

	restart_guard(flow, (struct tcp_sock *)sk, bpf_ktime_get_ns());
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	if (buffer) {
		bpf_setsockopt(sk, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
		bpf_setsockopt(sk, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	}
	size_send_buffer(sk, flow, config);
}

/* The handshake is over, and what it said is known: the signalling has seen its packets before TCP did. */
SEC("struct_ops")
void BPF_PROG(erate_init, struct sock *sk)
{
	struct config *config = configured();
	struct flow flow = {};
	struct talk *talk;
	struct key key;

	key_of(sk, &key);
	talk = bpf_map_lookup_elem(&talks, &key);
	if (!config || !config->enabled || !talk || !talk->asked) {
		fall_back(sk, &key, NULL, config && config->enabled ? WAITING : DETACHED);
		return;
	}
	flow.asked = talk->asked;
	flow.asked_at = bpf_ktime_get_ns();
	flow.pending = 1;
	flow.requests = 1;
	flow.min_routers = config->min_routers;
	flow.paced = sk->sk_pacing_status;
	flow.own_buffers = BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	if (talk->has_reply) {
		on_response(&flow, &talk->reply);
		confirm(talk, &flow, &talk->reply);
	} else if (talk->syns) {
		flow.outcome = PEER_INCAPABLE;
	}
	if (flow.outcome > GRANTED) {
		fall_back(sk, &key, &flow, flow.outcome);
		return;
	}
	size_receive_buffer(sk, &flow, config);
	if (flow.outcome == GRANTED) {
		begin(sk, &flow, config);
		send_at_grant(sk, &flow, config, is_ipv4(&key));
	}
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_ANY))
		fall_back(sk, &key, &flow, WAITING);
}

SEC("struct_ops")
void BPF_PROG(erate_control, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct config *config = configured();
	__u64 now = bpf_ktime_get_ns();
	enum outcome outcome;
	struct flow *flow;
	struct key key;

	/* The ACK of the handshake comes before init. */
	if (sk->__sk_common.skc_state == TCP_SYN_SENT || sk->__sk_common.skc_state == TCP_SYN_RECV)
		return;
	key_of(sk, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow || !config || !config->enabled) {
		fall_back(sk, &key, flow, DETACHED);
		return;
	}
	outcome = flow->outcome;
	if (outcome == WAITING) {
		tp->snd_cwnd = INITIAL_WINDOW;
		if (tp->delivered > WAITING_PACKETS)
			fall_back(sk, &key, flow, PEER_INCAPABLE);
		return;
	}
	if (outcome == GRANTED) {
		if (!flow->round_began)
			begin(sk, flow, config);
		outcome = guard(flow, tp, config, now);
	}
	if (outcome == GRANTED) {
		if (flow->round_began == now)
			size_send_buffer(sk, flow, config);
		send_at_grant(sk, flow, config, is_ipv4(&key));
	} else
		fall_back(sk, &key, flow, outcome);
}

/* Loss is repaired and not taken for congestion. */
SEC("struct_ops")
__u32 BPF_PROG(erate_ssthresh, struct sock *sk)
{
	return UNLIMITED;
}

SEC("struct_ops")
__u32 BPF_PROG(erate_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

/* TCP asks this right before it looks at how much room the window has. One packet will do at once, for a router's bucket may be no deeper than
 * two; what TCP adds by itself (tcp_tso_autosize: up to 64 kB, the more the shorter the round trip is) the window bounds. It does so between two
 * calls as well: now and then a kernel skips one, once a second on one of 6.18, and takes what it finds for the answer. */
SEC("struct_ops")
__u32 BPF_PROG(erate_min_tso_segs, struct sock *sk)
{
	struct config *config;
	struct flow *flow;
	struct key key;

	key_of(sk, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	config = configured();
	if (flow && config && flow->outcome == GRANTED)
		bound_burst(sk, flow, config);
	return 1;
}

SEC("struct_ops")
void BPF_PROG(erate_release, struct sock *sk)
{
	struct flow *flow;
	struct key key;

	key_of(sk, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow)
		remember(&key, flow, flow->outcome);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops erate = {
	.init = (void *)erate_init,
	.release = (void *)erate_release,
	.cong_control = (void *)erate_control,
	.ssthresh = (void *)erate_ssthresh,
	.undo_cwnd = (void *)erate_undo_cwnd,
	.min_tso_segs = (void *)erate_min_tso_segs,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "farpath_erate",
};

/* Programs of a control group ask for it without knowing: sockets that connect, and what they listen on. */
const volatile char CONTROL[TCP_CA_NAME_LEN] = "farpath_erate";

SEC("sockops")
int opt_in(struct bpf_sock_ops *ops)
{
	char name[TCP_CA_NAME_LEN];

	if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB || ops->op == BPF_SOCK_OPS_TCP_LISTEN_CB) {
		for (int i = 0; i < TCP_CA_NAME_LEN; i++)
			name[i] = CONTROL[i];
		bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	}
	return 1;
}
