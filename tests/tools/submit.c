// SPDX-License-Identifier: GPL-2.0
/*
 * submit - do submissions sleep?
 *
 *   submit DEV [--count N] [--depth N] [--bs BYTES]
 *
 * Random reads by Linux AIO, several at a time.  io_submit() hands each of them
 * to the device itself, and sleeps where the device makes its submitter wait for
 * a tag.  Whether it slept is taken from the thread's voluntary context switches,
 * not from a clock: so the answer does not depend on how fast the machine is.
 *
 * Prints "reads=N sleeps=N errors=N"; exit status 1 if reads failed.
 */
#include "io.h"

#include <linux/aio_abi.h>
#include <sys/syscall.h>

static uint64_t count = 200, reads, sleeps, errors, blocks, seed = 3;
static unsigned int depth = 32;
static size_t bs = 4096;
static int fd;
static aio_context_t context;

static void submit(struct iocb *cb)
{
	struct iocb *list[] = { cb };
	long before = times_slept();

	cb->aio_offset = (int64_t)(next_random(&seed) % blocks * bs);
	if (syscall(SYS_io_submit, context, 1L, list) != 1)
		die("io_submit");
	if (times_slept() != before)
		sleeps++;
}

static struct iocb *reap(void)
{
	struct io_event event;

	if (syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL) != 1)
		die("io_getevents");
	reads++;
	if (event.res != (int64_t)bs)
		errors++;
	return (struct iocb *)(uintptr_t)event.obj;
}

static void run(void)
{
	struct iocb *cb = calloc(depth, sizeof(*cb));
	uint64_t sent = 0;

	if (!cb || syscall(SYS_io_setup, (long)depth, &context))
		die("io_setup");
	for (; sent < depth && sent < count; sent++) {
		cb[sent].aio_lio_opcode = IOCB_CMD_PREAD;
		cb[sent].aio_fildes = (uint32_t)fd;
		cb[sent].aio_buf = (uintptr_t)buffer(bs);
		cb[sent].aio_nbytes = bs;
		submit(&cb[sent]);
	}
	while (reads < sent) {
		struct iocb *next = reap();

		if (sent < count) {
			submit(next);
			sent++;
		}
	}
	for (unsigned int i = 0; i < depth; i++)
		free((void *)(uintptr_t)cb[i].aio_buf);
	free(cb);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: submit DEV [option...]\n");
		return 2;
	}
	for (int i = 2; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--count"))
			count = number(value);
		else if (!strcmp(argv[i], "--depth"))
			depth = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--bs"))
			bs = number(value);
		else {
			fprintf(stderr, "%s: unknown option\n", argv[i]);
			return 2;
		}
	}
	fd = open_direct(argv[1], O_RDONLY);
	blocks = device_bytes(fd) / bs;
	run();
	printf("reads=%llu sleeps=%llu errors=%llu\n", (unsigned long long)reads,
	       (unsigned long long)sleeps, (unsigned long long)errors);
	return errors != 0;
}
