/* The program of a host: what Farpath says to it and what it answers, line by line (docs/hosts.md). It is included once, by the file that
 * has the stack: that one has the five functions below, and calls the rest. Packets and counts that a stack has meanwhile are told at once;
 * the end of an answer is written here. */
#ifndef FARPATH_HOST_H
#define FARPATH_HOST_H

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX
#define MS UINT64_C(1000000)

/* What it is told before the run. Addresses in network order, ports in the machine's. */
static struct {
    int opens, sends;
    uint64_t bytes;
    uint32_t local_ip, remote_ip;
    unsigned local_port, remote_port, mtu;
    uint64_t send_buffer, receive_buffer, seed;
} setup;

/* The time, in ns since the run began. */
static uint64_t now;

/* Of the stack: its name, its beginning, what happens to it, and when it wants to be called, in ns. */
static const char *host_begin(void);
static void host_start(void);
static void host_packet(const uint8_t *packet, size_t len);
static void host_timer(void);
static uint64_t host_next(void);

static void host_die(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static void host_sends(const uint8_t *packet, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    static char line[2 * 65535 + 1];
    if (len > 65535)
        host_die("a packet of more than 65535 B");
    for (size_t i = 0; i < len; i++) {
        line[2 * i] = digits[packet[i] >> 4];
        line[2 * i + 1] = digits[packet[i] & 15];
    }
    printf("packet %.*s\n", (int)(2 * len), line);
}

static void host_connected(void)
{
    static int told;
    if (!told++)
        puts("connected");
}

static void host_closed(void)
{
    static int told;
    if (!told++)
        puts("closed");
}

static void host_failed(const char *why)
{
    printf("failed %s\n", why);
}

/* The bytes of the transfer from `offset` on: those that both ends of Farpath write and expect. */
static void pattern(uint64_t offset, uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t place = (offset + i) % (32749 * 8);
        bytes[i] = (uint8_t)(((place / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> (place % 8 * 8));
    }
}

/* The program has read these: they are the next bytes of the stream. Gives how many that are by now. */
static uint64_t host_reads(const uint8_t *bytes, size_t len)
{
    static uint64_t read;
    static uint8_t expected[65536];
    for (size_t at = 0; at < len; at += sizeof expected) {
        size_t part = len - at < sizeof expected ? len - at : sizeof expected;
        pattern(read + at, expected, part);
        if (memcmp(expected, bytes + at, part) != 0) {
            host_failed("a byte of the stream is not the one that was sent");
            return read;
        }
    }
    read += len;
    printf("read %" PRIu64 "\n", read);
    return read;
}

static const char *option(const char *line, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = line; (at = strstr(at, name)) != NULL; at += len)
        if (at > line && at[-1] == ' ' && at[len] == '=')
            return at + len + 1;
    host_die("an option is missing in the first line");
    return NULL;
}

static void endpoint(const char *text, uint32_t *ip, unsigned *port)
{
    char address[16];
    struct in_addr parsed;
    if (sscanf(text, "%15[0-9.]:%u", address, port) != 2 || inet_pton(AF_INET, address, &parsed) != 1)
        host_die("expected ADDRESS:PORT of IPv4");
    *ip = parsed.s_addr;
}

static void hello(const char *line)
{
    if (strncmp(line, "farpath-host 1 ", 15) != 0)
        host_die("expected version 1 of the protocol");
    setup.opens = strncmp(option(line, "role"), "opens", 5) == 0;
    setup.sends = strncmp(option(line, "task"), "sends", 5) == 0;
    setup.bytes = strtoull(option(line, "bytes"), NULL, 10);
    endpoint(option(line, "local"), &setup.local_ip, &setup.local_port);
    endpoint(option(line, "remote"), &setup.remote_ip, &setup.remote_port);
    setup.mtu = (unsigned)strtoul(option(line, "mtu"), NULL, 10);
    setup.send_buffer = strtoull(option(line, "send_buffer"), NULL, 10);
    setup.receive_buffer = strtoull(option(line, "receive_buffer"), NULL, 10);
    setup.seed = strtoull(option(line, "seed"), NULL, 10);
    printf("name %s\n", host_begin());
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int main(void)
{
    static char line[2 * 65535 + 64];
    static uint8_t packet[65535];
    int begun = 0;
    /* It ends with its standard input. */
    while (fgets(line, sizeof line, stdin)) {
        char *at;
        if (!begun++) {
            hello(line);
        } else if (strncmp(line, "start ", 6) == 0) {
            now = strtoull(line + 6, NULL, 10);
            host_start();
        } else if (strncmp(line, "timer ", 6) == 0) {
            now = strtoull(line + 6, NULL, 10);
            host_timer();
        } else if (strncmp(line, "packet ", 7) == 0) {
            size_t len = 0;
            now = strtoull(line + 7, &at, 10);
            for (at++; digit(at[0]) >= 0 && digit(at[1]) >= 0; at += 2)
                packet[len++] = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
            host_packet(packet, len);
        } else {
            host_die("expected start, timer or packet");
        }
        uint64_t next = begun > 1 ? host_next() : NEVER;
        if (next == NEVER)
            puts("next never");
        else
            printf("next %" PRIu64 "\n", next > now ? next : now + 1);
        fflush(stdout);
    }
    return 0;
}

#endif
