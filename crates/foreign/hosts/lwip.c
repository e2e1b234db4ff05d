/* lwIP as a host: its raw interface, without an operating system, told the time by Farpath. */
#include "host.h"

#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

/* lwipopts.h: TCP_WND, TCP_RCV_SCALE and TCP_SND_BUF, which elsewhere are numbers of the compiler's. */
u32_t farpath_wnd, farpath_rcv_scale, farpath_snd_buf;

static struct netif card;
static struct tcp_pcb *connection;
static uint64_t written, read_bytes;
static int closing, peer_closed, failed;

u32_t sys_now(void)
{
    return (u32_t)(now / MS);
}

u32_t farpath_isn(void)
{
    return (u32_t)(setup.seed * 2654435761u + (setup.opens ? 1u : 0x80000001u));
}

static err_t card_output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
    static uint8_t packet[65535];
    (void)netif;
    (void)to;
    host_sends(packet, pbuf_copy_partial(p, packet, sizeof packet, 0));
    return ERR_OK;
}

static err_t card_begin(struct netif *netif)
{
    netif->output = card_output;
    netif->mtu = (u16_t)setup.mtu;
    netif->flags = NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
    return ERR_OK;
}

/* Writes as much as there is room for, and closes behind the end. */
static void write_more(void)
{
    static uint8_t bytes[65535];
    if (!connection)
        return;
    while (setup.sends && written < setup.bytes) {
        uint64_t room = tcp_sndbuf(connection), left = setup.bytes - written;
        size_t len = (size_t)(room < left ? room : left);
        if (len > sizeof bytes)
            len = sizeof bytes;
        if (len == 0)
            break;
        pattern(written, bytes, len);
        if (tcp_write(connection, bytes, (u16_t)len, TCP_WRITE_FLAG_COPY) != ERR_OK)
            break;
        written += len;
    }
    tcp_output(connection);
    if (!closing && (setup.sends ? written == setup.bytes : read_bytes == setup.bytes))
        closing = tcp_close(connection) == ERR_OK;
}

static err_t on_sent(void *arg, struct tcp_pcb *pcb, u16_t len)
{
    (void)arg, (void)pcb, (void)len;
    write_more();
    return ERR_OK;
}

static err_t on_data(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
    (void)arg, (void)err;
    if (!p) {
        peer_closed = 1;
        return ERR_OK;
    }
    for (struct pbuf *part = p; part; part = part->next)
        read_bytes = host_reads(part->payload, part->len);
    tcp_recved(pcb, p->tot_len);
    pbuf_free(p);
    write_more();
    return ERR_OK;
}

static void on_error(void *arg, err_t err)
{
    (void)arg;
    connection = NULL;
    /* After a close of ours it is the end of a connection that owes nothing. */
    if (!closing && !failed++)
        host_failed(err == ERR_RST ? "reset" : err == ERR_ABRT ? "timed out" : "aborted");
}

static err_t on_open(void *arg, struct tcp_pcb *pcb, err_t err)
{
    (void)arg, (void)err;
    connection = pcb;
    tcp_sent(pcb, on_sent);
    tcp_recv(pcb, on_data);
    tcp_err(pcb, on_error);
    host_connected();
    write_more();
    return ERR_OK;
}

static const char *host_begin(void)
{
    ip4_addr_t address, mask, gateway;
    farpath_wnd = (u32_t)(setup.receive_buffer < (1u << 30) ? setup.receive_buffer : 1u << 30);
    farpath_snd_buf = (u32_t)(setup.send_buffer < (60u << 20) ? setup.send_buffer : 60u << 20);
    if (farpath_snd_buf < 2 * TCP_MSS)
        farpath_snd_buf = 2 * TCP_MSS;
    while (farpath_wnd >> farpath_rcv_scale > 0xffff)
        farpath_rcv_scale++;
    lwip_init();
    address.addr = setup.local_ip;
    gateway.addr = setup.remote_ip;
    IP4_ADDR(&mask, 255, 255, 255, 0);
    netif_add(&card, &address, &mask, &gateway, NULL, card_begin, ip_input);
    netif_set_default(&card);
    return "lwIP " LWIP_VERSION_STRING;
}

static void host_start(void)
{
    struct tcp_pcb *pcb = tcp_new();
    ip_addr_t local = IPADDR4_INIT(setup.local_ip), remote = IPADDR4_INIT(setup.remote_ip);
    if (!pcb || tcp_bind(pcb, &local, (u16_t)setup.local_port) != ERR_OK)
        host_die("lwIP binds no port");
    if (setup.opens) {
        connection = pcb;
        tcp_err(pcb, on_error);
        if (tcp_connect(pcb, &remote, (u16_t)setup.remote_port, on_open) != ERR_OK)
            host_die("lwIP opens no connection");
    } else {
        tcp_accept(tcp_listen(pcb), on_open);
    }
}

static void host_packet(const uint8_t *packet, size_t len)
{
    struct pbuf *p;
    sys_check_timeouts();
    p = pbuf_alloc(PBUF_RAW, (u16_t)len, PBUF_RAM);
    if (!p)
        host_die("no memory for a packet");
    pbuf_take(p, packet, (u16_t)len);
    if (card.input(p, &card) != ERR_OK)
        pbuf_free(p);
}

static void host_timer(void)
{
    sys_check_timeouts();
}

static uint64_t host_next(void)
{
    u32_t wait = sys_timeouts_sleeptime();
    /* Once closed, a connection is lwIP's alone: it owes nothing when nothing of it is on its list of active ones. */
    if (closing && !tcp_active_pcbs)
        host_closed();
    else if (closing && tcp_active_pcbs->state == FIN_WAIT_2 && setup.sends)
        host_closed();
    return wait == SYS_TIMEOUTS_SLEEPTIME_INFINITE ? NEVER : (now / MS + wait) * MS;
}
