// SPDX-License-Identifier: GPL-2.0
/*
 * uring - requests that must not sleep, and polled reads, through io_uring.
 *
 *   uring nowait|poll DEV [--count N] [--depth N] [--bs BYTES] [--writes]
 *
 * nowait: every request carries RWF_NOWAIT.  It may end with EAGAIN, but not
 * with another error, and its submission must not sleep: the number of times
 * that io_uring_enter() did is printed (the thread's voluntary context
 * switches, which no slow machine adds to).  poll: an IORING_SETUP_IOPOLL ring, so
 * completions are found by polling the device only.  The device carries stamps
 * (load fill), writes write them again.
 *
 * Prints "done=N again=N wrong=N errors=N errno=E sleeps=N"; exit
 * status 1 unless wrong and errors are 0.
 */
#include "io.h"

#include <liburing.h>

struct request {
	char *data;
	uint64_t sector;
	bool write;
};

static uint64_t count = 2000, done, again, wrong, errors, sleeps;
static unsigned int depth = 16;
static size_t bs = 4096;
static bool writes, nowait;
static int fd, first_error;
static uint64_t blocks, seed = 5;

static void prepare(struct io_uring *ring, struct request *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	r->sector = next_random(&seed) % blocks * (bs / SECTOR);
	r->write = writes && next_random(&seed) % 2;
	if (r->write)
		stamp(r->data, r->sector, bs);
	else
		memset(r->data, 0, bs);
	if (r->write)
		io_uring_prep_write(sqe, fd, r->data, (unsigned int)bs, r->sector * SECTOR);
	else
		io_uring_prep_read(sqe, fd, r->data, (unsigned int)bs, r->sector * SECTOR);
	if (nowait)
		sqe->rw_flags = RWF_NOWAIT;
	io_uring_sqe_set_data(sqe, r);
}

static void submit(struct io_uring *ring)
{
	long before = times_slept();
	int n = io_uring_submit(ring);

	if (times_slept() != before)
		sleeps++;
	if (n < 0) {
		errno = -n;
		die("io_uring_submit");
	}
}

static struct request *reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	struct request *r;
	int error = io_uring_wait_cqe(ring, &cqe);

	if (error) {
		errno = -error;
		die("io_uring_wait_cqe");
	}
	r = io_uring_cqe_get_data(cqe);
	if (cqe->res == -EAGAIN) {
		again++;
	} else if (cqe->res != (int)bs) {
		errors++;
		if (!first_error)
			first_error = cqe->res < 0 ? -cqe->res : EIO;
	} else {
		done++;
		if (!r->write && stamp_wrong(r->data, r->sector, bs) >= 0)
			wrong++;
	}
	io_uring_cqe_seen(ring, cqe);
	return r;
}

static void run(struct io_uring *ring)
{
	struct request *request = calloc(depth, sizeof(*request));
	unsigned int out = 0;
	uint64_t sent = 0;

	if (!request)
		die("requests");
	for (; out < depth && sent < count; out++, sent++) {
		request[out].data = buffer(bs);
		prepare(ring, &request[out]);
		submit(ring);
	}
	while (out) {
		struct request *r = reap(ring);

		if (sent < count) {
			prepare(ring, r);
			submit(ring);
			sent++;
		} else {
			free(r->data);
			out--;
		}
	}
	free(request);
}

int main(int argc, char **argv)
{
	struct io_uring ring;
	bool poll = argc > 2 && !strcmp(argv[1], "poll");
	int error;

	nowait = argc > 2 && !strcmp(argv[1], "nowait");
	if (!poll && !nowait) {
		fprintf(stderr, "usage: uring nowait|poll DEV [option...]\n");
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--writes")) {
			writes = true;
			continue;
		}
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
		i++;
	}
	fd = open_direct(argv[2], writes ? O_RDWR : O_RDONLY);
	blocks = device_bytes(fd) / bs;
	error = io_uring_queue_init(depth, &ring, poll ? IORING_SETUP_IOPOLL : 0);
	if (error) {
		errno = -error;
		die("io_uring_queue_init");
	}
	run(&ring);
	io_uring_queue_exit(&ring);
	printf("done=%llu again=%llu wrong=%llu errors=%llu errno=%s sleeps=%llu\n",
	       (unsigned long long)done, (unsigned long long)again,
	       (unsigned long long)wrong, (unsigned long long)errors,
	       first_error ? strerrorname_np(first_error) : "0",
	       (unsigned long long)sleeps);
	return wrong || errors;
}
