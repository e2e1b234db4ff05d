/*
 * Loaded into a user-mode kernel before the C library, for three of its calls of the host, and so that it ends with the
 * process that started it, FARPATH_PARENT, however that ends.
 *
 * getrandom(): such a kernel takes its entropy from the host. It gets what FARPATH_SEED says in its place: the same number,
 * the same ports, sequence numbers and hashes. Generator: SplitMix64 (Steele, Lea, Flood 2014).
 *
 * ptrace(): Linux 6.12 knows 2696 bytes of a processor's extended state (Intel SDM volume 1, chapter 13). Where a
 * processor has more, as those with AMX do, the host refuses to set a part of it. What is missing is filled up with zeros:
 * it belongs to components that no program of a guest has in use. Processes that the kernel traces, which are stopped most of
 * the time, end with it: what is to happen at a parent's end is not inherited.
 *
 * waitpid(): where FARPATH_CPU_COST is a number above zero, the guest's clock moves on by so many times the processor time that a
 * guest's program had on the host, each time that it comes back to its kernel: time_travel_ndelay(), as a driver that waits. Its
 * first program makes the path and is not charged.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The kernel itself. */
static pid_t kernel;

/* This process ends with its parent, also where that is gone by now. */
static void end_with(pid_t parent)
{
	if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() != parent)
		_exit(0);
}

__attribute__((constructor)) static void end_with_farpath(void)
{
	const char *parent = getenv("FARPATH_PARENT");

	kernel = getpid();
	if (parent)
		end_with(atoi(parent));
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

/* What a second of a program's processor time costs in the guest, and what of the kernel that takes. */
static double cpu_cost;
static void (*delay)(unsigned long ns);
static uintptr_t loop_begins, loop_ends;

/* The function `name` in the symbols of a program's file, which is loaded where it was linked to; NULL where there is none. */
static const Elf64_Sym *symbol(const char *file, const char *name)
{
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);

	for (int i = 0; i < head->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
		const char *names;

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		names = file + sections[sections[i].sh_link].sh_offset;
		for (size_t n = 0; n < sections[i].sh_size / sizeof(*symbols); n++)
			if (ELF64_ST_TYPE(symbols[n].st_info) == STT_FUNC && !strcmp(names + symbols[n].st_name, name))
				return &symbols[n];
	}
	return NULL;
}

__attribute__((constructor)) static void read_cpu_cost(void)
{
	const char *given = getenv("FARPATH_CPU_COST");
	const Elf64_Sym *wait, *loop;
	struct stat size;
	char *file;
	int fd;

	if (!given || !(strtod(given, NULL) > 0))
		return;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &size) &&
	    (file = mmap(NULL, size.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) != MAP_FAILED) {
		wait = symbol(file, "time_travel_ndelay");
		loop = symbol(file, "userspace");
		if (wait && loop) {
			cpu_cost = strtod(given, NULL);
			delay = (void (*)(unsigned long))wait->st_value;
			loop_begins = loop->st_value;
			loop_ends = loop->st_value + loop->st_size;
		}
		munmap(file, size.st_size);
	}
	if (fd >= 0)
		close(fd);
	if (!cpu_cost) {
		fprintf(stderr, "this kernel has no time_travel_ndelay() or userspace(): it cannot charge for processor time\n");
		_exit(1);
	}
}

/* Processor time of a process so far, in ns (MAKE_PROCESS_CPUCLOCK() of Linux's posix-timers.h). */
static uint64_t processor_time(pid_t pid)
{
	struct timespec time;

	if (clock_gettime((clockid_t)(~(unsigned int)pid << 3 | 2), &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

/* The guest's program that was last let run, and its processor time before. */
static struct {
	pid_t pid;
	uint64_t before;
} running;

static void note_start(int request, pid_t pid)
{
	if (request == PTRACE_SYSEMU || request == PTRACE_SYSEMU_SINGLESTEP || request == PTRACE_SYSCALL ||
	    request == PTRACE_CONT || request == PTRACE_SINGLESTEP) {
		running.pid = pid;
		running.before = processor_time(pid);
	}
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	static pid_t (*call)(pid_t pid, int *status, int options);
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	static pid_t first;
	uint64_t now;
	pid_t ended;

	if (!call)
		call = (pid_t(*)(pid_t, int *, int))dlsym(RTLD_NEXT, "waitpid");
	ended = call(pid, status, options);
	if (!cpu_cost || ended <= 0 || ended != running.pid || caller < loop_begins || caller >= loop_ends)
		return ended;
	if (!first)
		first = ended;
	now = processor_time(ended);
	if (ended != first && now > running.before)
		delay((now - running.before) * cpu_cost);
	return ended;
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
	if (request == PTRACE_TRACEME)
		end_with(kernel);
	if (cpu_cost)
		note_start(request, pid);
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
