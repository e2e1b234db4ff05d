/* What lwIP asks of a compiler; all of it is C's own. */
#ifndef LWIP_ARCH_CC_H
#define LWIP_ARCH_CC_H

#include <stdio.h>
#include <stdlib.h>

#define LWIP_PLATFORM_DIAG(message) do { } while (0)
#define LWIP_PLATFORM_ASSERT(message) do { fprintf(stderr, "lwIP: %s\n", message); abort(); } while (0)

#endif
