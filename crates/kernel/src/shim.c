/*
 * Loaded into a user-mode kernel before the C library, for two of its calls of the host, and so that it ends with the
 * process that started it, FARPATH_PARENT, however that ends.
 *
 * getrandom(): such a kernel takes its entropy from the host. It gets what FARPATH_SEED says in its place: the same number,
 * the same ports, sequence numbers and hashes. Generator: SplitMix64 (Steele, Lea, Flood 2014).
 *
 * ptrace(): Linux 6.12 knows 2696 bytes of a processor's extended state (Intel SDM volume 1, chapter 13). Where a
 * processor has more, as those with AMX do, the host refuses to set a part of it. What is missing is filled up with zeros:
 * it belongs to components that no program of a guest has in use.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

__attribute__((constructor)) static void end_with_parent(void)
{
	const char *parent = getenv("FARPATH_PARENT");

	if (!parent || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return;
	if (getppid() != atoi(parent))
		_exit(0);
}

static uint64_t state;
static int seeded;

static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *bytes = buffer;

	(void)flags;
	if (!seeded) {
		const char *seed = getenv("FARPATH_SEED");

		state = seed ? strtoull(seed, NULL, 10) : 0;
		seeded = 1;
	}
	for (size_t i = 0; i < length; i++)
		bytes[i] = next() >> 56;
	return length;
}

typedef long (*ptrace_call)(int request, pid_t pid, void *address, void *data);

/* Bytes of extended state here; what it was when it was last asked for is of no use. */
static size_t extended_size(ptrace_call call, pid_t pid, unsigned char *room, size_t length)
{
	static size_t size;
	struct iovec all = { room, length };

	if (!size && !call(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &all))
		size = all.iov_len;
	return size;
}

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_call call;
	static unsigned char whole[1 << 16] __attribute__((aligned(64)));
	struct iovec *part, filled = { whole, 0 };
	va_list arguments;
	void *address, *data;
	pid_t pid;

	va_start(arguments, request);
	pid = va_arg(arguments, pid_t);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);

	if (!call)
		call = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
	if (request != PTRACE_SETREGSET || (uintptr_t)address != NT_X86_XSTATE)
		return call(request, pid, address, data);
	part = data;
	filled.iov_len = extended_size(call, pid, whole, sizeof(whole));
	if (part->iov_len >= filled.iov_len)
		return call(request, pid, address, data);
	memcpy(whole, part->iov_base, part->iov_len);
	memset(whole + part->iov_len, 0, filled.iov_len - part->iov_len);
	return call(request, pid, address, &filled);
}
