/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the signalling (tc.bpf.c), the congestion control (cc.bpf.c) and the loader (src/abi.rs) share. */
#ifndef FARPATH_DRIVER_H
#define FARPATH_DRIVER_H

#include "kernel.h"

#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL
/* All that a SYN/ACK can announce: its window is not scaled. */
#define FIRST_WINDOW 65535

/* ---- A QoS Structure ---- */

#define DSCP_SIGNAL 3
#define DSCP_FLOW 7

enum message {
	FORWARD,
	REQUEST,
	RESPONSE,
	CONFIRMATION,
	MISSED_START,
	RENEGOTIATE,
	RESEND_START,
	CLOSE,
};

/* Of TP: with the codes from here on, GR counts and AR does not. */
#define MAXIMUM_RATE 2

#define STRUCTURE_LEN 16
/* Of the 16 bytes the last 12 are alike in both forms. The first four are the requester's address in IPv4; in IPv6 the
 * head of the extension header, or padding, and the head of the option. */
struct structure {
	__u8 head[4];
	__be16 available;
	__be16 guaranteed;
	__u8 preemption;
	__u8 delay;
	__u8 message_and_type;
	__u8 charging_and_burst;
	__be16 version_and_mark;
	__be16 source;
};

_Static_assert(sizeof(struct structure) == STRUCTURE_LEN, "as on the wire");

static __always_inline int message_of(const struct structure *s)
{
	return s->message_and_type >> 4;
}

static __always_inline int mark_of(const struct structure *s)
{
	return bpf_ntohs(s->version_and_mark) & 0xf;
}

/* kbit/s of a rate word, a fraction cut off. */
static __always_inline __u64 kbit_of(__be16 wire)
{
	__u16 word = bpf_ntohs(wire);

	if (!(word & 0x4000))
		return 0;
	return ((__u64)(512 + (word & 511)) << (word >> 9 & 31)) >> 9;
}

/* ---- What is shared ---- */

/* One connection, seen from this end. IPv4 addresses are mapped into IPv6, as sockets have them. */
struct key {
	__u64 netns;
	__be32 local[4];
	__be32 remote[4];
	__be16 local_port;
	__be16 remote_port;
	__u32 zero;
};

/* What was said in a connection's name by whoever can send packets: bounded, the oldest forgotten. */
struct talk {
	struct structure answer; /* to the peer's request of the handshake */
	struct structure now; /* to what was said later: leaves with the next packet */
	struct structure reply; /* the peer's, to our request of the handshake */
	__u32 own_isn;
	__u32 peer_isn;
	__be16 asked; /* the rate of our request; 0: none was made */
	__u8 has_answer;
	__u8 has_now;
	__u8 has_reply;
	__u8 syns;
	__u8 answers_left;
	__u8 zero;
};

enum outcome {
	WAITING,
	GRANTED,
	PEER_INCAPABLE,
	NO_ROUTER,
	REFUSED,
	WITHDRAWN,
	TRIPPED_LOSS,
	TRIPPED_QUEUE,
	TRIPPED_MARK,
	DETACHED,
	OUTCOMES,
};

/* A socket's grant: made and removed by its congestion control, so that nobody else can fill the table. */
struct flow {
	__u64 asked_at;
	__u64 last_data_at;
	__be16 asked;
	__be16 granted;
	__u8 outcome;
	__u8 pending; /* an answer to what was asked is due: only such a one may raise the rate */
	__u8 resend;
	__u8 min_routers;
	__u32 packets; /* data packets since the last request */
	/* Counters, for those who look. */
	__u32 requests;
	__u32 responses;
	__u32 cuts;
	__u32 raises;
	/* The guard's. */
	__u32 last_lost;
	__u32 last_delivered;
	__u32 last_ce;
	__u32 round_lost;
	__u32 round_delivered;
	__u32 queued_rounds;
	__u8 paced; /* SK_PACING_ of the socket before */
	__u8 own_buffers; /* SOCK_SNDBUF_LOCK, SOCK_RCVBUF_LOCK: its program has set them */
	__u8 zero[2];
	__u64 round_began;
	__s64 excess; /* packets lost beyond what is allowed, in millionths */
	__u64 delivered_rate; /* packets in 1000 s, over the last round trip */
	__u64 acked_at; /* when data were acknowledged last */
};

/* What the loader says, for all devices. */
struct config {
	__u32 enabled; /* 0: sockets go back to plain TCP at their next ACK */
	__u32 packets_between;
	__u32 allowed; /* guard: of a million packets so many may be lost */
	__u32 excess; /* guard: so many lost beyond it trip it */
	__u32 queue_us; /* guard: a queue of so much, or of a quarter of the RTT */
	__u32 queue_loss_per_mille;
	__u32 queue_rounds;
	__u32 buffer; /* SO_SNDBUF and SO_RCVBUF of sockets with a grant; 0: by the rule */
	/* What these may be set to, as far as the kernel allows it; 0: nothing is set. And what TCP makes of them by itself, as they would
	 * be set. */
	__u32 send_most;
	__u32 send_by_itself;
	__u32 receive_most;
	__u32 receive_by_itself;
	__u32 loss_per_mille;
	__u8 preemption;
	__u8 delay;
	__u8 burst;
	__u8 version;
	__u8 min_routers;
	__u8 option_type; /* of IPv6 */
	__u8 early_window;
	__u8 rate_type; /* TP of requests: any but the composite one, which has two rates */
	char plain[TCP_CA_NAME_LEN]; /* congestion control of who never had a grant */
	char fallback[TCP_CA_NAME_LEN]; /* of who has given one up */
};

enum counter {
	SENT_REQUESTS,
	SENT_RESPONSES,
	SENT_RENEGOTIATIONS,
	SENT_RESENDS,
	SENT_MISSED,
	SENT_CLOSES,
	SENT_WINDOWS,
	TAKEN_REQUESTS,
	TAKEN_RESPONSES,
	TAKEN_RENEGOTIATIONS,
	TAKEN_MISSED,
	TAKEN_OTHER,
	MALFORMED, /* dropped, or their structures taken off */
	UNKNOWN, /* well-formed, of no connection here */
	IMPLAUSIBLE, /* numbers that no packet of the connection can have */
	ABOVE_REQUEST,
	UNASKED_RAISES,
	UNEXPECTED,
	FAILED, /* the kernel refused to change a packet */
	/* Sockets that went on with plain TCP, by why: this and the outcome. */
	PLAIN,
	COUNTERS = PLAIN + OUTCOMES,
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct key);
	__type(value, struct talk);
} talks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct key);
	__type(value, struct flow);
} flows SEC(".maps");

/* Of sockets that are gone or went on with plain TCP, what `flows` had last: bounded, the oldest forgotten. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct key);
	__type(value, struct flow);
} past SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		(*counter)++;
}

static __always_inline struct config *configured(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&config, &first);
}

/* What this end asks, or says of what it has asked. */
static __always_inline struct structure request(enum message message, __be16 rate)
{
	struct config *config = configured();
	struct structure s = { .message_and_type = message << 4 };

	if (config && config->rate_type >= MAXIMUM_RATE)
		s.guaranteed = rate;
	else
		s.available = rate;
	if (config) {
		s.message_and_type |= config->rate_type;
		s.preemption = config->preemption << 2;
		s.delay = config->delay << 2;
		s.charging_and_burst = config->burst & 0xf;
		s.version_and_mark = bpf_htons(config->version << 4);
	}
	return s;
}

/* The rate that a structure of ours or the answer to it is about. */
static __always_inline __be16 rate_in(const struct structure *s)
{
	return (s->message_and_type & 0xf) >= MAXIMUM_RATE ? s->guaranteed : s->available;
}

/* An answer to what this end asked. A lower rate is obeyed at once, whoever asked for it; a higher one only where it was asked for, up
 * to what was. As `Asking::on_response` of the crate farpath-tia1039. */
static __always_inline void on_response(struct flow *flow, const struct structure *response)
{
	struct config *config = configured();
	__be16 rate = rate_in(response);
	__u64 asked = kbit_of(flow->asked), granted = kbit_of(flow->granted), told = kbit_of(rate);
	int type = response->message_and_type & 0xf;
	int proven = mark_of(response) >= flow->min_routers || (told < asked && flow->min_routers <= 1);
	int answers = flow->pending;

	flow->responses++;
	if (flow->outcome > GRANTED) {
		count(UNEXPECTED);
		return;
	}
	if (told > asked || !config || type != config->rate_type) {
		count(ABOVE_REQUEST);
		return;
	}
	flow->pending = 0;
	if (flow->outcome == WAITING && !proven) {
		flow->outcome = NO_ROUTER;
	} else if (!told) {
		flow->outcome = flow->outcome == WAITING ? REFUSED : WITHDRAWN;
	} else if (flow->outcome == WAITING) {
		flow->granted = rate;
		flow->outcome = GRANTED;
	} else if (told < granted) {
		flow->cuts++;
		flow->granted = rate;
	} else if (told > granted) {
		if (answers && proven) {
			flow->raises++;
			flow->granted = rate;
		} else {
			count(UNASKED_RAISES);
		}
	}
}

/* With less than the guarantee that was asked for, routers before the one that has refused it let go of theirs (CD 3). */
static __always_inline void confirm(struct talk *talk, const struct flow *flow, const struct structure *response)
{
	if (kbit_of(rate_in(response)) >= kbit_of(flow->asked) || (response->message_and_type & 0xf) < MAXIMUM_RATE)
		return;
	talk->now = request(CONFIRMATION, rate_in(response));
	talk->has_now = 1;
}

#endif
