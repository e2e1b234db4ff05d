/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The signalling of explicit rate (TIA-1039): structures are put into packets that leave, and taken out of those that arrive, below TCP
 * on both sides. Loaded once for each device. */
#include "driver.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Other programs at the same hook have their say. */
#define NEXT (-1)
#define DROP 2

/* Of the device, filled in by the loader. */
const volatile struct {
	__u64 netns;
	__u32 ip_at; /* length of the link-layer header */
	__be16 wanted; /* the most that is asked for, as a rate word */
	char control[TCP_CA_NAME_LEN];
} device;

/* On the data that leaves before its signal: it has been here already. A field of the kernel's own packet, which no other
 * program of today uses, and which is not a mark that somebody routes by. */
#define OWN 0x1039

/* After so many SYNs without an answer the request is left out: a box on the way may drop a SYN with payload. */
#define SYNS_WITH_REQUEST 2
/* So many ACKs carry the answer of the handshake, at most. */
#define ANSWERS 32
/* With less than was asked for, more is asked for after so long, or eight round trips, however few packets it was. */
#define SLOW (500 * NS_PER_MS)
#define IDLE NS_PER_S
/* What ACKs may be older than the last one by, beyond what is under way; and sequence numbers. */
#define ACK_SLACK (1 << 24)
#define SEQ_SLACK (1 << 30)
/* A signal's sequence number lies so far before what its receiver has acknowledged. */
#define BEHIND STRUCTURE_LEN

/* TCP's options (IANA, TCP parameters), the longest that they can be, and where its flags are. */
#define OPTION_END 0
#define OPTION_NONE 1
#define OPTION_TIMESTAMPS 8
#define MOST_OPTIONS 40
#define FLAGS_AT 13
#define FLAG_ACK 0x10

#define IPV6_LEN 40
#define HOP_BY_HOP 0
#define OPTION 0x20
#define OPTION_EXPERIMENT 0x3e
#define OPTION_LEN 12

struct packet {
	struct key key;
	struct tcphdr tcp;
	__u32 tcp_at;
	__u32 payload_at;
	__u32 end;
	__u32 options; /* length of a hop-by-hop header of ours */
	__u32 flow_label;
	__u8 ipv4;
	__u8 class; /* the byte of codepoint and ECN */
};

static __always_inline __u32 ip_at(void)
{
	return device.ip_at;
}

static __always_inline int dscp_of(const struct packet *packet)
{
	return packet->class >> 2;
}

static __always_inline __u32 payload_len(const struct packet *packet)
{
	return packet->end - packet->payload_at;
}

/* ---- Reading ---- */

static __always_inline int read_ipv4(struct __sk_buff *skb, struct packet *packet, int egress)
{
	struct iphdr ip;
	__be32 local, remote;

	if (bpf_skb_load_bytes(skb, ip_at(), &ip, sizeof(ip)))
		return -1;
	/* More fragments, or an offset. */
	if (ip.version != 4 || ip.ihl < 5 || ip.protocol != IPPROTO_TCP || ip.frag_off & bpf_htons(0x3fff))
		return -1;
	packet->ipv4 = 1;
	packet->class = ip.tos;
	packet->tcp_at = ip_at() + ip.ihl * 4;
	/* One of more than 64 kB, to be cut into packets further down, says none. */
	packet->end = !ip.tot_len && skb->gso_segs ? skb->len : ip_at() + bpf_ntohs(ip.tot_len);
	local = egress ? ip.saddr : ip.daddr;
	remote = egress ? ip.daddr : ip.saddr;
	packet->key.local[2] = packet->key.remote[2] = bpf_htonl(0xffff);
	packet->key.local[3] = local;
	packet->key.remote[3] = remote;
	return 0;
}

static __always_inline int read_ipv6(struct __sk_buff *skb, struct packet *packet, int egress)
{
	struct {
		__be32 class_and_label;
		__be16 payload;
		__u8 next;
		__u8 hops;
		__be32 source[4];
		__be32 destination[4];
	} ip;
	__u32 first;

	if (bpf_skb_load_bytes(skb, ip_at(), &ip, sizeof(ip)))
		return -1;
	first = bpf_ntohl(ip.class_and_label);
	if (first >> 28 != 6)
		return -1;
	packet->class = first >> 20;
	packet->flow_label = first & 0xfffff;
	packet->tcp_at = ip_at() + IPV6_LEN;
	packet->end = ip_at() + IPV6_LEN + bpf_ntohs(ip.payload);
	if (ip.next == HOP_BY_HOP) {
		__u8 head[4];

		if (bpf_skb_load_bytes(skb, packet->tcp_at, head, sizeof(head)))
			return -1;
		/* Of another protocol, or before something else than TCP. */
		if (head[0] != IPPROTO_TCP || (head[2] != OPTION && head[2] != OPTION_EXPERIMENT))
			return -1;
		packet->options = (head[1] + 1) * 8;
		packet->tcp_at += packet->options;
	} else if (ip.next != IPPROTO_TCP) {
		return -1;
	}
	__builtin_memcpy(packet->key.local, egress ? ip.source : ip.destination, 16);
	__builtin_memcpy(packet->key.remote, egress ? ip.destination : ip.source, 16);
	return 0;
}

/* 0 for a whole TCP packet whose headers are sound. */
static __noinline int read_packet(struct __sk_buff *skb, struct packet *packet, int egress)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (read_ipv4(skb, packet, egress))
			return -1;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if (read_ipv6(skb, packet, egress))
			return -1;
	} else {
		return -1;
	}
	if (bpf_skb_load_bytes(skb, packet->tcp_at, &packet->tcp, sizeof(packet->tcp)))
		return -1;
	packet->payload_at = packet->tcp_at + packet->tcp.doff * 4;
	if (packet->tcp.doff < 5 || packet->payload_at > packet->end || packet->end > skb->len)
		return -1;
	packet->key.netns = device.netns;
	packet->key.local_port = egress ? packet->tcp.source : packet->tcp.dest;
	packet->key.remote_port = egress ? packet->tcp.dest : packet->tcp.source;
	return 0;
}

/* Whether it is a structure: codes that are not assigned, and versions that are not known, are refused. As `Structure::decode_v4` and
 * `HopByHop::decode` of the crate farpath-tia1039. */
static __always_inline int is_sound(const struct structure *s, int ipv4)
{
	__u16 version = bpf_ntohs(s->version_and_mark) >> 4;
	int response = message_of(s) == RESPONSE;

	if (s->message_and_type & 0x80 || (s->message_and_type & 0xf) > 3 || s->charging_and_burst >> 4 > 1)
		return 0;
	if (version != 1 && version != 2)
		return 0;
	/* Over the M of an IPv6 response lies the flow label. */
	return (!ipv4 && response) || version == 2 || mark_of(s) <= 1;
}

/* How many structures it carries: 1, 2; 0 of an ordinary packet; negative where it says so and does not. */
static __always_inline int read_structures(struct __sk_buff *skb, const struct packet *packet, struct structure *s)
{
	__u32 len, at;

	if (packet->ipv4) {
		if (dscp_of(packet) != DSCP_SIGNAL || !payload_len(packet))
			return 0;
		len = payload_len(packet);
		at = packet->payload_at;
	} else {
		if (!packet->options)
			return 0;
		len = packet->options;
		at = ip_at() + IPV6_LEN;
	}
	if ((len != STRUCTURE_LEN && len != 2 * STRUCTURE_LEN) || bpf_skb_load_bytes(skb, at, &s[0], STRUCTURE_LEN))
		return -1;
	if (len == 2 * STRUCTURE_LEN && bpf_skb_load_bytes(skb, at + STRUCTURE_LEN, &s[1], STRUCTURE_LEN))
		return -1;
	if (!packet->ipv4) {
		/* PadN of two bytes aligns the second option. */
		if (s[0].head[3] != OPTION_LEN)
			return -1;
		if (len == 2 * STRUCTURE_LEN &&
		    (s[1].head[0] != 1 || s[1].head[1] || s[1].head[2] != s[0].head[2] || s[1].head[3] != OPTION_LEN))
			return -1;
	}
	if (!is_sound(&s[0], packet->ipv4) || (len == 2 * STRUCTURE_LEN && !is_sound(&s[1], packet->ipv4)))
		return -1;
	return len / STRUCTURE_LEN;
}

/* ---- Writing ---- */

/* The codepoint; ECN stays. */
static __noinline void set_dscp(struct __sk_buff *skb, struct packet *packet, int dscp)
{
	__u8 class = (packet->class & 3) | dscp << 2;

	if (class == packet->class)
		return;
	if (packet->ipv4) {
		/* The checksum goes by words: version and header length are the other byte. */
		__u8 first = 0x40 | (packet->tcp_at - ip_at()) / 4;

		bpf_l3_csum_replace(skb, ip_at() + 10, bpf_htons(first << 8 | packet->class), bpf_htons(first << 8 | class), 2);
		bpf_skb_store_bytes(skb, ip_at() + 1, &class, 1, 0);
	} else {
		__be32 first = bpf_htonl(6U << 28 | (__u32)class << 20 | packet->flow_label);

		bpf_skb_store_bytes(skb, ip_at(), &first, 4, 0);
	}
	packet->class = class;
}

/* The payload has become longer, or shorter, by so much: what IP and TCP's pseudo header say of it. */
static __noinline void payload_grew(struct __sk_buff *skb, struct packet *packet, int by)
{
	__u32 tcp_len = packet->end - packet->tcp_at;
	__be16 old, new;

	bpf_l4_csum_replace(skb, packet->tcp_at + offsetof(struct tcphdr, check), bpf_htons(tcp_len), bpf_htons(tcp_len + by),
			    BPF_F_PSEUDO_HDR | 2);
	if (packet->ipv4) {
		old = bpf_htons(packet->end - ip_at());
		new = bpf_htons(packet->end - ip_at() + by);
		bpf_l3_csum_replace(skb, ip_at() + 10, old, new, 2);
		bpf_skb_store_bytes(skb, ip_at() + 2, &new, 2, 0);
	} else {
		new = bpf_htons(packet->end - ip_at() - IPV6_LEN + by);
		bpf_skb_store_bytes(skb, ip_at() + 4, &new, 2, 0);
	}
	packet->end += by;
}

/* TCP's checksum with other bytes in the payload. One that the device will finish is left to it; one that the device has summed
 * itself is kept to what is there. */
static __noinline void payload_changed(struct __sk_buff *skb, const struct packet *packet, __s64 difference)
{
	__u32 at = packet->tcp_at + offsetof(struct tcphdr, check);
	__u16 old = 0, new = 0;

	bpf_skb_load_bytes(skb, at, &old, 2);
	bpf_l4_csum_replace(skb, at, 0, difference, 0);
	bpf_skb_load_bytes(skb, at, &new, 2);
	bpf_csum_update(skb, (__u32)new + (__u16)~old);
}

/* Puts `count` structures into a packet without payload. */
static __noinline int insert(struct __sk_buff *skb, struct packet *packet, struct structure *s, int count)
{
	__u32 len = count * STRUCTURE_LEN;
	__u8 hop_by_hop = HOP_BY_HOP;

	if (packet->ipv4) {
		__s64 difference = bpf_csum_diff(NULL, 0, (__be32 *)s, count == 2 ? 32 : 16, 0);

		if (bpf_skb_change_tail(skb, packet->end + len, 0))
			return -1;
		bpf_skb_store_bytes(skb, packet->end, s, count == 2 ? 32 : 16, 0);
		payload_changed(skb, packet, difference);
		payload_grew(skb, packet, len);
	} else {
		__be16 payload = bpf_htons(packet->end - ip_at() - IPV6_LEN + len);

		s[0].head[0] = IPPROTO_TCP;
		s[0].head[1] = len / 8 - 1;
		s[1].head[0] = 1;
		s[1].head[1] = 0;
		for (int i = 0; i < 2; i++) {
			s[i].head[2] = configured() ? configured()->option_type : OPTION;
			s[i].head[3] = OPTION_LEN;
		}
		if (bpf_skb_adjust_room(skb, len, BPF_ADJ_ROOM_NET, 0))
			return -1;
		bpf_skb_store_bytes(skb, ip_at() + IPV6_LEN, s, count == 2 ? 32 : 16, 0);
		bpf_skb_store_bytes(skb, ip_at() + 4, &payload, 2, 0);
		bpf_skb_store_bytes(skb, ip_at() + 6, &hop_by_hop, 1, 0);
		packet->options = len;
		packet->tcp_at += len;
		packet->payload_at += len;
		packet->end += len;
	}
	set_dscp(skb, packet, DSCP_SIGNAL);
	return 0;
}

/* Takes what it carries out again, and leaves the packet as TCP made it. `s` is what was read. */
static __noinline int strip(struct __sk_buff *skb, struct packet *packet, struct structure *s, int count)
{
	__u32 len = packet->ipv4 ? payload_len(packet) : packet->options;

	set_dscp(skb, packet, 0);
	if (packet->ipv4) {
		__u32 end = packet->payload_at;

		if (count > 0)
			payload_changed(skb, packet, bpf_csum_diff((__be32 *)s, count == 2 ? 32 : 16, NULL, 0, 0));
		payload_grew(skb, packet, -(int)len);
		return bpf_skb_change_tail(skb, end, 0) ? -1 : 0;
	}
	__be16 payload = bpf_htons(packet->end - ip_at() - IPV6_LEN - len);
	__u8 tcp = IPPROTO_TCP;

	bpf_skb_store_bytes(skb, ip_at() + 4, &payload, 2, 0);
	bpf_skb_store_bytes(skb, ip_at() + 6, &tcp, 1, 0);
	packet->options = 0;
	packet->tcp_at -= len;
	packet->payload_at -= len;
	packet->end -= len;
	return bpf_skb_adjust_room(skb, -(__s32)len, BPF_ADJ_ROOM_NET, 0) ? -1 : 0;
}

/* ---- Out ---- */

/* The rate word that is no less than so many bytes/s. */
__noinline __u16 word_up(__u64 bytes_per_s)
{
	__u64 kbit = bytes_per_s / 125 + !!(bytes_per_s % 125), mantissa;
	__u32 exponent = 0;

	/* Its highest bit, by halves: what a program has set is below 2^40. */
	for (int step = 32; step; step >>= 1)
		if (kbit >> exponent >> step)
			exponent += step;
	mantissa = ((kbit << 9) + (1ULL << exponent) - 1) >> exponent;
	if (mantissa >= 1024) {
		mantissa = 512;
		exponent++;
	}
	if (exponent > 31)
		return 0x7fff;
	return kbit ? 0x4000 | exponent << 9 | (mantissa - 512) : 0;
}

/* What a socket asks for: the device's rate, or less where its program has said so. */
static __always_inline __be16 wanted(unsigned long program)
{
	__u16 word;

	if (program == ~0UL || program >> 40)
		return device.wanted;
	word = word_up(program);
	return word < bpf_ntohs(device.wanted) ? bpf_htons(word) : device.wanted;
}

/* Whether that socket has the congestion control of explicit rate: what it asks for, or 0. */
static __always_inline __be16 asks_for(struct tcp_sock *tp)
{
	const struct tcp_congestion_ops *control;

	if (!tp)
		return 0;
	control = tp->inet_conn.icsk_ca_ops;
	if (!control)
		return 0;
	for (int i = 0; i < TCP_CA_NAME_LEN; i++) {
		if (control->name[i] != device.control[i])
			return 0;
		if (!device.control[i])
			break;
	}
	return wanted(tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate);
}

static __noinline int leaving_syn(struct __sk_buff *skb, struct packet *packet)
{
	struct talk *talk = bpf_map_lookup_elem(&talks, &packet->key), fresh = {};
	struct structure s[2] = {};
	struct bpf_sock *sk = skb->sk;
	__be16 asked;

	/* With data (TCP Fast Open) there is no room. */
	if (!sk || payload_len(packet))
		return NEXT;
	asked = asks_for(bpf_skc_to_tcp_sock(sk));
	if (!asked) {
		bpf_map_delete_elem(&talks, &packet->key);
		return NEXT;
	}
	if (talk && talk->own_isn == packet->tcp.seq && talk->syns) {
		if (talk->syns >= SYNS_WITH_REQUEST)
			return NEXT;
		talk->syns++;
	} else {
		fresh.own_isn = packet->tcp.seq;
		fresh.asked = asked;
		fresh.syns = 1;
		bpf_map_update_elem(&talks, &packet->key, &fresh, BPF_ANY);
	}
	s[0] = request(REQUEST, asked);
	if (insert(skb, packet, s, 1))
		count(FAILED);
	else
		count(SENT_REQUESTS);
	return NEXT;
}

/* Sends the packet as it is. What is left in `skb` is a copy, to make another packet of: the checksum of what TCP sends is always
 * finished below here. Where it fails nothing is sent, and `skb` is the packet still. */
static __always_inline int send_first(struct __sk_buff *skb)
{
	int failed;

	skb->tc_index = OWN;
	failed = bpf_clone_redirect(skb, skb->ifindex, 0);
	skb->tc_index = 0;
	if (failed)
		count(FAILED);
	return failed;
}

/* Leaves timestamps alone of the options, as in any packet that is no SYN. */
static __noinline void drop_syn_options(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 at = packet->tcp_at + sizeof(struct tcphdr), len;
	__u8 option[2], none[MOST_OPTIONS];

	__builtin_memset(none, OPTION_NONE, sizeof(none));
	for (int i = 0; i < MOST_OPTIONS && at < packet->payload_at; i++) {
		if (bpf_skb_load_bytes(skb, at, option, sizeof(option)) || option[0] == OPTION_END)
			return;
		len = option[0] == OPTION_NONE ? 1 : option[1];
		if (!len || len > MOST_OPTIONS)
			return;
		if (option[0] != OPTION_TIMESTAMPS)
			bpf_skb_store_bytes(skb, at, none, len, 0);
		at += len;
	}
}

/* Right behind a SYN/ACK with `n` structures, an ACK that announces what TCP has set aside to receive into: the window of
 * a SYN/ACK is not scaled, and that of TCP's own next packet comes a round trip later. Its sequence number is the next one, so that the peer
 * takes the window from it; where it is lost, or comes first, the peer has the window of the SYN/ACK. */
static __noinline int announce_window(struct __sk_buff *skb, struct packet *packet, struct structure *s, int n)
{
	struct tcp_request_sock *connection = skb->sk ? bpf_skc_to_tcp_request_sock(skb->sk) : NULL;
	__be32 seq = bpf_htonl(bpf_ntohl(packet->tcp.seq) + 1);
	__u32 set_aside, scale, window;
	__u8 flags = FLAG_ACK;
	__be16 field;

	if (!connection)
		return NEXT;
	set_aside = connection->req.req.__req_common.skc_rcv_wnd;
	scale = BPF_CORE_READ_BITFIELD(&connection->req, rcv_wscale);
	window = set_aside >> scale;
	if (window > 0xffff)
		window = 0xffff;
	if (window << scale <= FIRST_WINDOW)
		return NEXT;
	if (send_first(skb))
		return NEXT;
	if (strip(skb, packet, s, n)) {
		count(FAILED);
		return DROP;
	}
	field = bpf_htons(window);
	bpf_skb_store_bytes(skb, packet->tcp_at + offsetof(struct tcphdr, seq), &seq, sizeof(seq), 0);
	bpf_skb_store_bytes(skb, packet->tcp_at + FLAGS_AT, &flags, sizeof(flags), 0);
	bpf_skb_store_bytes(skb, packet->tcp_at + offsetof(struct tcphdr, window), &field, sizeof(field), 0);
	drop_syn_options(skb, packet);
	count(SENT_WINDOWS);
	return NEXT;
}

static __noinline int leaving_syn_ack(struct __sk_buff *skb, struct packet *packet)
{
	struct talk *talk = bpf_map_lookup_elem(&talks, &packet->key);
	struct config *config = configured();
	struct structure s[2] = {};
	struct bpf_sock *sk = skb->sk;
	__be16 asked = 0;
	int n = 1;

	/* A peer that did not ask would not understand. */
	if (!talk || !talk->has_answer || payload_len(packet))
		return NEXT;
	if (bpf_htonl(bpf_ntohl(talk->peer_isn) + 1) != packet->tcp.ack_seq)
		return NEXT;
	if (sk) {
		sk = bpf_get_listener_sock(sk);
		if (sk)
			asked = asks_for(bpf_skc_to_tcp_sock(sk));
	}
	s[0] = talk->answer;
	talk->own_isn = packet->tcp.seq;
	talk->asked = asked;
	if (asked) {
		s[1] = request(REQUEST, asked);
		n = 2;
	}
	if (insert(skb, packet, s, n)) {
		count(FAILED);
		return NEXT;
	}
	count(SENT_RESPONSES);
	if (asked)
		count(SENT_REQUESTS);
	return config && config->early_window ? announce_window(skb, packet, s, n) : NEXT;
}

/* What there is to be said in a packet of its own: in `s`, and whether there is something. */
static __always_inline int due(struct packet *packet, struct flow *flow, struct talk *talk, __u64 srtt, int segments,
			       struct structure *s)
{
	__u64 now = bpf_ktime_get_ns(), waited;
	struct config *config = configured();
	int idle, slow, enough;

	if (flow && flow->outcome == GRANTED && config && config->enabled) {
		waited = now - flow->asked_at;
		if (payload_len(packet)) {
			idle = flow->last_data_at && now - flow->last_data_at > (srtt > IDLE ? srtt : IDLE);
			flow->packets += segments;
			flow->last_data_at = now;
			/* A newcomer's first grant may be a trickle: 128 packets of it take seconds, in which there has long been
			 * room. */
			slow = kbit_of(flow->granted) < kbit_of(flow->asked) && waited >= (srtt * 8 > SLOW ? srtt * 8 : SLOW);
			enough = flow->packets >= config->packets_between;
			if (!flow->resend && (idle || slow || enough) && waited >= srtt) {
				*s = request(RENEGOTIATE, flow->asked);
				count(SENT_RENEGOTIATIONS);
				goto asked;
			}
		}
		if (flow->resend) {
			flow->resend = 0;
			*s = request(RESEND_START, flow->asked);
			count(SENT_RESENDS);
			goto asked;
		}
	}
	if (talk && talk->has_now) {
		talk->has_now = 0;
		*s = talk->now;
		count(message_of(s) == MISSED_START ? SENT_MISSED : message_of(s) == CLOSE ? SENT_CLOSES : SENT_RESPONSES);
		return 1;
	}
	return 0;
asked:
	flow->asked_at = now;
	flow->pending = 1;
	flow->packets = 0;
	flow->requests++;
	return 1;
}

/* A structure in a packet of its own, right behind this one: its headers, without the payload. TCP never sees it where the peer has a
 * driver; where it has none any more, the sequence number is one that its TCP has acknowledged, so that nothing is taken for data. */
static __noinline int send_behind(struct __sk_buff *skb, struct packet *packet, __u32 acknowledged, struct structure *s)
{
	__u32 len = payload_len(packet), at = packet->tcp_at + offsetof(struct tcphdr, seq);
	__be32 seq = bpf_htonl(acknowledged - BEHIND);
	struct structure two[2] = { *s };

	if (send_first(skb))
		return NEXT;
	/* From here on this is the signal, or nothing. The payload is in no checksum. */
	if (len) {
		payload_grew(skb, packet, -(int)len);
		if (bpf_skb_change_tail(skb, packet->payload_at, 0)) {
			count(FAILED);
			return DROP;
		}
	}
	bpf_l4_csum_replace(skb, packet->tcp_at + offsetof(struct tcphdr, check), packet->tcp.seq, seq, 4);
	bpf_skb_store_bytes(skb, at, &seq, 4, 0);
	if (insert(skb, packet, two, 1)) {
		count(FAILED);
		return DROP;
	}
	return NEXT;
}

SEC("tc")
int erate_egress(struct __sk_buff *skb)
{
	struct structure s[2] = {};
	struct bpf_tcp_sock *tp;
	struct packet packet;
	struct bpf_sock *sk;
	struct flow *flow;
	struct talk *talk;
	__u32 una;
	__u64 srtt;

	if (skb->tc_index == OWN) {
		skb->tc_index = 0;
		return NEXT;
	}
	/* Whose socket is elsewhere speaks for itself. */
	sk = skb->sk;
	if (!sk || read_packet(skb, &packet, 1) || packet.options)
		return NEXT;
	if (packet.tcp.syn)
		return packet.tcp.ack ? leaving_syn_ack(skb, &packet) : leaving_syn(skb, &packet);
	flow = bpf_map_lookup_elem(&flows, &packet.key);
	talk = bpf_map_lookup_elem(&talks, &packet.key);
	if (packet.tcp.rst)
		return NEXT;
	if (!flow) {
		/* The compiler would or the pointers, which the verifier forbids. */
		barrier_var(talk);
		if (!talk)
			return NEXT;
	}
	sk = bpf_sk_fullsock(sk);
	tp = sk ? bpf_tcp_sock(sk) : NULL;
	if (!tp)
		return NEXT;
	una = tp->snd_una;
	srtt = (__u64)(tp->srtt_us >> 3) * 1000;
	if (flow && flow->outcome == GRANTED)
		set_dscp(skb, &packet, DSCP_FLOW);
	if (packet.tcp.fin || packet.end - ip_at() > 0xffff)
		return NEXT;
	if (talk && talk->has_answer && talk->syns && !payload_len(&packet)) {
		/* The third packet of the handshake answers the server's request: if it is lost, the next ones do. */
		if (talk->answers_left) {
			talk->answers_left--;
			s[0] = talk->answer;
			if (insert(skb, &packet, s, 1))
				count(FAILED);
			else
				count(SENT_RESPONSES);
			return NEXT;
		}
	}
	if (due(&packet, flow, talk, srtt, skb->gso_segs ?: 1, s))
		return send_behind(skb, &packet, una, s);
	return NEXT;
}

/* ---- In ---- */

/* What became of the connection's numbers. */
enum place {
	FOREIGN, /* of no connection here */
	IMPOSSIBLE, /* no packet of the connection has such numbers */
	HANDSHAKE,
	OLD, /* its sequence number is one that TCP has had: a packet of the peer's driver */
	IN_ORDER,
};

static __noinline enum place place_of(struct __sk_buff *skb, const struct packet *packet, const struct talk *talk)
{
	struct bpf_sock_tuple tuple = {};
	__u32 seq = bpf_ntohl(packet->tcp.seq), ack = bpf_ntohl(packet->tcp.ack_seq);
	enum place place = FOREIGN;
	struct bpf_tcp_sock *tp;
	struct bpf_sock *sk;

	if (packet->ipv4) {
		tuple.ipv4.saddr = packet->key.remote[3];
		tuple.ipv4.daddr = packet->key.local[3];
		tuple.ipv4.sport = packet->tcp.source;
		tuple.ipv4.dport = packet->tcp.dest;
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, packet->key.remote, 16);
		__builtin_memcpy(tuple.ipv6.daddr, packet->key.local, 16);
		tuple.ipv6.sport = packet->tcp.source;
		tuple.ipv6.dport = packet->tcp.dest;
	}
	sk = packet->ipv4 ? bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0)
			  : bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return FOREIGN;
	if (sk->state == TCP_LISTEN || sk->state == TCP_NEW_SYN_RECV) {
		if (talk)
			place = bpf_ntohl(talk->own_isn) + 1 == ack ? HANDSHAKE : IMPOSSIBLE;
		goto release;
	}
	tp = bpf_tcp_sock(sk);
	if (!tp)
		goto release;
	/* Blind guesses: RFC 5961 §5.2. */
	if ((__s32)(tp->snd_nxt - ack) < 0 || (__s32)(ack - (tp->snd_una - (tp->snd_nxt - tp->snd_una) - ACK_SLACK)) < 0 ||
	    (__s32)(tp->rcv_nxt + SEQ_SLACK - seq) < 0 || (__s32)(seq + SEQ_SLACK - tp->rcv_nxt) < 0)
		place = IMPOSSIBLE;
	else
		place = (__s32)(seq - tp->rcv_nxt) < 0 ? OLD : IN_ORDER;
release:
	bpf_sk_release(sk);
	return place;
}

/* Who asked, as this end sees it. */
static __always_inline void name_source(const struct packet *packet, struct structure *s)
{
	if (packet->ipv4) {
		__builtin_memcpy(s->head, &packet->key.remote[3], 4);
		s->source = packet->tcp.source;
	} else if (message_of(s) == RESPONSE) {
		/* All 20 bits of the flow label, over M. */
		s->version_and_mark = bpf_htons((bpf_ntohs(s->version_and_mark) & 0xfff0) | packet->flow_label >> 16);
		s->source = bpf_htons(packet->flow_label);
	} else {
		s->source = bpf_htons(packet->flow_label) ?: bpf_htons(1);
	}
}

static __always_inline int names_nobody(const struct packet *packet, const struct structure *s)
{
	return !s->source && (!packet->ipv4 || !(s->head[0] | s->head[1] | s->head[2] | s->head[3]));
}

/* One structure. Whether TCP has a reason to see the packet. */
static __noinline int take(struct packet *packet, struct flow *flow, struct talk *talk, struct structure *s)
{
	struct structure answer = *s;

	switch (message_of(s)) {
	case REQUEST:
	case RENEGOTIATE:
	case RESEND_START:
		count(message_of(s) == REQUEST ? TAKEN_REQUESTS : TAKEN_RENEGOTIATIONS);
		answer.message_and_type = RESPONSE << 4 | (s->message_and_type & 0xf);
		name_source(packet, &answer);
		if (packet->tcp.syn) {
			talk->answer = answer;
			talk->has_answer = 1;
			talk->answers_left = ANSWERS;
		} else {
			talk->now = answer;
			talk->has_now = 1;
		}
		return 0;
	case RESPONSE:
		count(TAKEN_RESPONSES);
		if (!packet->ipv4) {
			/* The flow label lies over M: a rate below what was asked for is all that it can prove. */
			answer.version_and_mark = bpf_htons(bpf_ntohs(s->version_and_mark) & 0xfff0);
		}
		if (flow) {
			on_response(flow, &answer);
			confirm(talk, flow, &answer);
		} else if (talk->asked && !talk->has_reply) {
			talk->reply = answer;
			talk->has_reply = 1;
		} else {
			count(UNEXPECTED);
		}
		return 1;
	case MISSED_START:
		count(TAKEN_MISSED);
		if (names_nobody(packet, s)) {
			/* From a router, for the other end: it goes back there, with whom it is about. */
			name_source(packet, &answer);
			talk->now = answer;
			talk->has_now = 1;
		} else if (flow) {
			flow->resend = 1;
		}
		return 0;
	default:
		count(TAKEN_OTHER);
		return 0;
	}
}

static __noinline int arriving_malformed(struct __sk_buff *skb, struct packet *packet, struct structure *s)
{
	/* TCP never sees the hop-by-hop header of IPv6. */
	if (!packet->ipv4)
		goto counted;
	if (packet->tcp.syn) {
		/* What a SYN carries is no data to anybody but TCP Fast Open, which sends it again. */
		count(MALFORMED);
		if (strip(skb, packet, s, 0))
			return DROP;
		return NEXT;
	}
	/* Others may use the codepoint for whatever they like. */
	if (!bpf_map_lookup_elem(&flows, &packet->key) && !bpf_map_lookup_elem(&talks, &packet->key))
		return NEXT;
	count(MALFORMED);
	return DROP;
counted:
	count(MALFORMED);
	return NEXT;
}

SEC("tc")
int erate_ingress(struct __sk_buff *skb)
{
	struct talk *talk, fresh = {};
	struct structure s[2] = {};
	struct packet packet;
	struct flow *flow;
	enum place place;
	int n, wanted_by_tcp;

	if (read_packet(skb, &packet, 0))
		return NEXT;
	n = read_structures(skb, &packet, s);
	if (n < 0)
		return arriving_malformed(skb, &packet, s);
	if (!n && !packet.tcp.syn && dscp_of(&packet) != DSCP_FLOW)
		return NEXT;
	talk = bpf_map_lookup_elem(&talks, &packet.key);
	if (!n) {
		if (talk && packet.tcp.syn && !packet.tcp.ack && talk->peer_isn != packet.tcp.seq)
			/* Another connection than that of which there was talk. */
			bpf_map_delete_elem(&talks, &packet.key);
		else if (talk && !packet.tcp.syn)
			/* The peer sends by a grant: it has our answer. */
			talk->has_answer = 0;
		return NEXT;
	}
	if (packet.tcp.syn && !packet.tcp.ack) {
		place = HANDSHAKE;
		if (!talk || talk->peer_isn != packet.tcp.seq || talk->syns) {
			fresh.peer_isn = packet.tcp.seq;
			bpf_map_update_elem(&talks, &packet.key, &fresh, BPF_ANY);
		}
	} else if (packet.tcp.syn) {
		place = FOREIGN;
		if (talk && talk->syns)
			place = bpf_ntohl(talk->own_isn) + 1 == bpf_ntohl(packet.tcp.ack_seq) ? HANDSHAKE : IMPOSSIBLE;
	} else {
		place = place_of(skb, &packet, talk);
		if (!talk && place > IMPOSSIBLE)
			bpf_map_update_elem(&talks, &packet.key, &fresh, BPF_NOEXIST);
	}
	if (place <= IMPOSSIBLE) {
		count(place == FOREIGN ? UNKNOWN : IMPLAUSIBLE);
		/* A SYN/ACK that is not for us is answered by TCP with a reset. */
		if (!packet.tcp.syn)
			return DROP;
		return strip(skb, &packet, s, n) ? DROP : NEXT;
	}
	talk = bpf_map_lookup_elem(&talks, &packet.key);
	flow = bpf_map_lookup_elem(&flows, &packet.key);
	if (!talk)
		return DROP;
	wanted_by_tcp = take(&packet, packet.tcp.syn ? NULL : flow, talk, &s[0]);
	if (n == 2)
		wanted_by_tcp |= take(&packet, packet.tcp.syn ? NULL : flow, talk, &s[1]);
	if (!packet.tcp.syn && (place == OLD || (place == IN_ORDER && !wanted_by_tcp)))
		return DROP;
	if (strip(skb, &packet, s, n)) {
		count(FAILED);
		return DROP;
	}
	return NEXT;
}
