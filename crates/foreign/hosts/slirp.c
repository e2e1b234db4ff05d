/* libslirp as a host: 4.4BSD's TCP, as it lives on in QEMU's user networking. Its connection is one of `guestfwd`, which has no
 * socket of this machine behind it; the other host is its guest. */
#include "host.h"

#include <slirp/libslirp.h>

static Slirp *slirp;
static struct in_addr here;
static uint64_t written;
static int running;

static const uint8_t GUEST[6] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };

/* An Ethernet frame to the guest. */
static ssize_t on_frame(const void *frame, size_t len, void *opaque)
{
    const uint8_t *bytes = frame;
    (void)opaque;
    if (len > 14 && bytes[12] == 8 && bytes[13] == 0)
        host_sends(bytes + 14, len - 14);
    return (ssize_t)len;
}

static void on_guest_error(const char *message, void *opaque)
{
    (void)opaque;
    fprintf(stderr, "%s\n", message);
}

static int64_t clock_ns(void *opaque)
{
    (void)opaque;
    return (int64_t)now;
}

/* Timers of IPv6 alone, which is off. */
static void *timer_new(SlirpTimerCb callback, void *callback_opaque, void *opaque)
{
    (void)callback, (void)callback_opaque, (void)opaque;
    return &running;
}
static void timer_free(void *timer, void *opaque) { (void)timer, (void)opaque; }
static void timer_mod(void *timer, int64_t at, void *opaque) { (void)timer, (void)at, (void)opaque; }
static void no_fd(int fd, void *opaque) { (void)fd, (void)opaque; }
static void on_notify(void *opaque) { (void)opaque; }
static int add_poll(int fd, int events, void *opaque) { (void)fd, (void)events, (void)opaque; return 0; }
static int no_events(int index, void *opaque) { (void)index, (void)opaque; return 0; }

static const SlirpCb callbacks = {
    .send_packet = on_frame,
    .guest_error = on_guest_error,
    .clock_get_ns = clock_ns,
    .timer_new = timer_new,
    .timer_free = timer_free,
    .timer_mod = timer_mod,
    .register_poll_fd = no_fd,
    .unregister_poll_fd = no_fd,
    .notify = on_notify,
};

/* What the guest sends. */
static ssize_t on_data(const void *bytes, size_t len, void *opaque)
{
    (void)opaque;
    host_connected();
    host_reads(bytes, len);
    return (ssize_t)len;
}

static void write_more(void)
{
    static uint8_t bytes[65536];
    size_t room;
    while (setup.sends && written < setup.bytes &&
           (room = slirp_socket_can_recv(slirp, here, (int)setup.local_port)) > 0) {
        uint64_t left = setup.bytes - written;
        size_t len = room < sizeof bytes ? room : sizeof bytes;
        if (len > left)
            len = (size_t)left;
        /* There is room before the handshake is over, and what is written then goes with its end. */
        pattern(written, bytes, len);
        slirp_socket_recv(slirp, here, (int)setup.local_port, bytes, (int)len);
        written += len;
    }
}

static const char *host_begin(void)
{
    static char name[64];
    snprintf(name, sizeof name, "libslirp %s", slirp_version_string());
    return name;
}

static void host_start(void)
{
    SlirpConfig config = { 0 };
    /* The guest is known before it speaks: an announcement of ARP. */
    uint8_t frame[42] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    if (setup.opens) {
        host_failed("libslirp opens no connection: let the other end be transfer.opener");
        return;
    }
    config.version = 4;
    config.restricted = 1;
    config.in_enabled = true;
    config.vnetwork.s_addr = setup.local_ip & htonl(0xffffff00);
    config.vnetmask.s_addr = htonl(0xffffff00);
    config.vhost.s_addr = config.vnetwork.s_addr | htonl(254);
    config.vnameserver.s_addr = config.vnetwork.s_addr | htonl(253);
    config.vdhcp_start.s_addr = config.vnetwork.s_addr | htonl(100);
    config.if_mtu = config.if_mru = setup.mtu;
    config.disable_host_loopback = config.disable_dns = config.disable_dhcp = true;
    slirp = slirp_new(&config, &callbacks, NULL);
    here.s_addr = setup.local_ip;
    if (!slirp || slirp_add_guestfwd(slirp, on_data, NULL, &here, (int)setup.local_port) != 0)
        host_die("libslirp makes no host");
    memcpy(frame + 6, GUEST, 6);
    memcpy(frame + 12, (const uint8_t[]){ 8, 6, 0, 1, 8, 0, 6, 4, 0, 1 }, 10);
    memcpy(frame + 22, GUEST, 6);
    memcpy(frame + 28, &setup.remote_ip, 4);
    memcpy(frame + 38, &setup.remote_ip, 4);
    slirp_input(slirp, frame, sizeof frame);
    running = 1;
}

/* What is due by now runs. */
static void run_timers(void)
{
    uint32_t wait = UINT32_MAX;
    slirp_pollfds_fill(slirp, &wait, add_poll, NULL);
    slirp_pollfds_poll(slirp, 0, no_events, NULL);
}

static void host_packet(const uint8_t *packet, size_t len)
{
    static uint8_t frame[14 + 65535];
    if (!running)
        return;
    run_timers();
    memcpy(frame, (const uint8_t[]){ 0x52, 0x55, 10, 0, 0, 254 }, 6);
    memcpy(frame + 6, GUEST, 6);
    frame[12] = 8;
    frame[13] = 0;
    memcpy(frame + 14, packet, len);
    slirp_input(slirp, frame, (int)(14 + len));
    write_more();
}

static void host_timer(void)
{
    if (!running)
        return;
    run_timers();
    write_more();
}

static uint64_t host_next(void)
{
    uint32_t wait = UINT32_MAX;
    char *connections;
    if (!running)
        return NEVER;
    /* It tells nobody what state a connection is in, but people. */
    connections = slirp_connection_info(slirp);
    if (strstr(connections, "TCP[") && !strstr(connections, "TCP[SYN_"))
        host_connected();
    if (setup.sends && written == setup.bytes && !strstr(connections, "TCP["))
        host_closed();
    if (!setup.sends && (!strstr(connections, "TCP[") || strstr(connections, "TCP[TIME_WAIT")))
        host_closed();
    free(connections);
    slirp_pollfds_fill(slirp, &wait, add_poll, NULL);
    return wait == UINT32_MAX ? NEVER : (now / MS + wait) * MS;
}
