/* lwIP for a host of Farpath: without an operating system, IPv4 and TCP alone, memory from malloc(). What is not here is lwIP's default. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#include <stdint.h>

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_SOCKET 0
#define LWIP_NETCONN 0
#define LWIP_ARP 0
#define LWIP_ETHERNET 0
#define LWIP_UDP 0
#define LWIP_RAW 0
#define LWIP_ICMP 1
#define LWIP_STATS 0
#define IP_REASSEMBLY 0
#define IP_FRAG 0
#define MEM_LIBC_MALLOC 1
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT 8
#define LWIP_CHKSUM_ALGORITHM 2
/* htons() and the like are the C library's. */
#define LWIP_DONT_PROVIDE_BYTEORDER_FUNCTIONS 1

/* A full segment of Ethernet; a shorter MTU makes shorter ones. */
#define TCP_MSS 1460
/* The next number is all that TCP_OVERSIZE is by default; a name would not do there. */
#define TCP_OVERSIZE 1460
#define LWIP_WND_SCALE 1
#ifdef FARPATH_CHECKS
/* init.c checks numbers at compile time, and uses none of these. */
#define TCP_WND 65535
#define TCP_RCV_SCALE 0
#define TCP_SND_BUF 65535
#else
/* The experiment's buffers, once they are known. */
extern uint32_t farpath_wnd, farpath_rcv_scale, farpath_snd_buf;
#define TCP_WND farpath_wnd
#define TCP_RCV_SCALE farpath_rcv_scale
#define TCP_SND_BUF farpath_snd_buf
#endif
#define TCP_SND_QUEUELEN 65000
#define LWIP_DISABLE_TCP_SANITY_CHECKS 1
/* Segments that arrive out of order are kept, and reported: off by default, as the default is for machines of some kB. */
#define TCP_QUEUE_OOSEQ 1
#define LWIP_TCP_SACK_OUT 1

extern uint32_t farpath_isn(void);
#define LWIP_HOOK_TCP_ISN(local, local_port, remote, remote_port) farpath_isn()
#define LWIP_RAND() farpath_isn()

#endif
