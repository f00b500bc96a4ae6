// SPDX-License-Identifier: GPL-2.0
/*
 * openloop: reads at random places of a device at Poisson arrivals, whether or
 * not earlier reads have ended, and the response times that come of it.
 *
 * The arrivals are a schedule in absolute time, made before the first read. A
 * response time counts from the scheduled arrival: a device that makes the
 * sender late cannot hide it. One thread, one io_uring: submit what is due, then
 * wait for a completion or for the next arrival, whichever comes first. All
 * reads share one buffer, as nobody looks at the data.
 *
 * Confidence intervals are by batch means: response times of neighbours depend
 * on each other, the means of 20 long batches hardly do.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <liburing.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <linux/fs.h>
#include <time.h>
#include <unistd.h>

#define NS		1000000000ULL
#define BATCHES		20
#define T_95		2.093		/* Student's t, 19 degrees of freedom */
#define SQ_ENTRIES	1024
#define MAX_OUT		32768		/* the largest completion queue */

struct options {
	const char *device;
	double rate;
	uint64_t count, warmup, bs, seed, limit;
	bool json;
};

struct run {
	struct options opt;
	int fd;
	uint64_t blocks;
	void *buffer;
	struct io_uring ring;
	uint64_t random;
	uint64_t total;		/* warmup and count */
	uint64_t *due;		/* scheduled arrivals */
	uint64_t *latency;
	uint64_t sent, done, begin, end;
	bool over;		/* more than the limit were out at a time */
};

static const char usage[] =
"usage: openloop --rate R --count N [OPTION]... DEVICE\n"
"  --rate R     reads a second\n"
"  --count N    reads that are measured\n"
"  --warmup N   reads before those (default: a tenth of count)\n"
"  --bs BYTES   size of a read (default 4096)\n"
"  --seed N     of the arrivals and places (default 1)\n"
"  --limit N    if so many reads are out send no more, and print unstable=1\n"
"  --json       print JSON instead of name=value lines; times in ns\n";

static void die(const char *what, int error)
{
	if (error)
		fprintf(stderr, "openloop: %s: %s\n", what, strerror(error));
	else
		fprintf(stderr, "openloop: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS + ts.tv_nsec;
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static double next_exponential(uint64_t *state)
{
	return -log((double)((next_random(state) >> 11) + 1) * 0x1p-53);
}

static void wrong_usage(const char *what)
{
	fprintf(stderr, "openloop: %s\n%s", what, usage);
	exit(2);
}

static uint64_t number(const char *text, const char *name)
{
	char *end;
	uint64_t x;

	errno = 0;
	x = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-') {
		fprintf(stderr, "openloop: --%s: expected a number, not '%s'\n",
			name, text);
		exit(2);
	}
	return x;
}

static void parse(struct options *opt, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "rate", required_argument, NULL, 'r' },
		{ "count", required_argument, NULL, 'c' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "bs", required_argument, NULL, 'b' },
		{ "seed", required_argument, NULL, 's' },
		{ "limit", required_argument, NULL, 'l' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 }
	};
	int c, i;

	*opt = (struct options){
		.bs = 4096, .seed = 1, .warmup = UINT64_MAX, .limit = MAX_OUT
	};
	while ((c = getopt_long(argc, argv, "", longs, &i)) != -1) {
		switch (c) {
		case 'r':
			opt->rate = strtod(optarg, NULL);
			break;
		case 'c':
			opt->count = number(optarg, longs[i].name);
			break;
		case 'w':
			opt->warmup = number(optarg, longs[i].name);
			break;
		case 'b':
			opt->bs = number(optarg, longs[i].name);
			break;
		case 's':
			opt->seed = number(optarg, longs[i].name);
			break;
		case 'l':
			opt->limit = number(optarg, longs[i].name);
			break;
		case 'j':
			opt->json = true;
			break;
		default:
			wrong_usage("unknown option");
		}
	}
	if (opt->warmup == UINT64_MAX)
		opt->warmup = opt->count / 10;
	if (optind != argc - 1)
		wrong_usage("expected one device");
	opt->device = argv[optind];
	if (!(opt->rate > 0) || opt->rate > 1e7)
		wrong_usage("--rate: expected a number above 0");
	if (opt->count < BATCHES || opt->count > 100000000 ||
	    opt->warmup > 100000000)
		wrong_usage("--count: expected 20 to 100000000");
	if (!opt->bs || opt->bs % 512 || opt->bs > 64 << 20)
		wrong_usage("--bs: expected a multiple of 512");
	if (!opt->limit || opt->limit > MAX_OUT)
		wrong_usage("--limit: expected 1 to 32768");
}

static void open_device(struct run *run)
{
	uint64_t bytes = 0;
	struct stat st;

	run->fd = open(run->opt.device, O_RDONLY | O_DIRECT);
	if (run->fd < 0 || fstat(run->fd, &st))
		die(run->opt.device, errno);
	if (S_ISBLK(st.st_mode)) {
		if (ioctl(run->fd, BLKGETSIZE64, &bytes))
			die(run->opt.device, errno);
	} else {
		bytes = st.st_size;
	}
	run->blocks = bytes / run->opt.bs;
	if (!run->blocks)
		die("the device is smaller than one read", 0);
}

/* Files and buffers are registered, so that a read costs less to send. */
static void open_ring(struct run *run)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE,
		.cq_entries = MAX_OUT,
	};
	struct iovec iov = { .iov_len = run->opt.bs };
	int r;

	run->buffer = aligned_alloc(4096, (run->opt.bs + 4095) & ~4095ULL);
	if (!run->buffer)
		die("no memory", 0);
	iov.iov_base = run->buffer;

	r = io_uring_queue_init_params(SQ_ENTRIES, &run->ring, &params);
	if (!r)
		r = io_uring_register_files(&run->ring, &run->fd, 1);
	if (!r)
		r = io_uring_register_buffers(&run->ring, &iov, 1);
	if (r)
		die("io_uring", -r);
}

static void schedule(struct run *run)
{
	uint64_t state = run->opt.seed;
	double at = 0;

	run->total = run->opt.warmup + run->opt.count;
	run->due = calloc(run->total, sizeof(*run->due));
	run->latency = calloc(run->total, sizeof(*run->latency));
	if (!run->due || !run->latency)
		die("no memory", 0);

	run->random = ~run->opt.seed;
	for (uint64_t i = 0; i < run->total; i++) {
		at += next_exponential(&state) / run->opt.rate;
		run->due[i] = (uint64_t)(at * NS);
		run->latency[i] = 0;	/* no page faults while it runs */
	}
	run->begin = now_ns() + NS / 1000;
	for (uint64_t i = 0; i < run->total; i++)
		run->due[i] += run->begin;
}

/* Submits what is due, and returns how long until the next arrival. */
static uint64_t submit_due(struct run *run)
{
	uint64_t now = now_ns();
	bool any = false;

	while (run->sent < run->total && run->due[run->sent] <= now) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&run->ring);
		uint64_t block = next_random(&run->random) % run->blocks;

		if (!sqe)
			break;
		io_uring_prep_read_fixed(sqe, 0, run->buffer, run->opt.bs,
					 block * run->opt.bs, 0);
		sqe->flags |= IOSQE_FIXED_FILE;
		io_uring_sqe_set_data64(sqe, run->sent++);
		any = true;
	}
	if (run->sent - run->done >= run->opt.limit) {
		if (run->opt.limit == MAX_OUT)
			die("the device cannot keep up: 32768 reads are out", 0);
		run->over = true;
	}
	if (any) {
		int r = io_uring_submit(&run->ring);

		if (r < 0)
			die("io_uring_submit", -r);
		now = now_ns();
	}
	if (run->sent == run->total)
		return NS;
	return run->due[run->sent] > now ? run->due[run->sent] - now : 0;
}

static void reap(struct run *run)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;
	uint64_t now = now_ns();

	io_uring_for_each_cqe(&run->ring, head, cqe) {
		uint64_t i = io_uring_cqe_get_data64(cqe);

		if (cqe->res < 0)
			die("read", -cqe->res);
		if ((uint64_t)cqe->res != run->opt.bs)
			die("read: short", 0);
		run->latency[i] = now - run->due[i];
		n++;
	}
	io_uring_cq_advance(&run->ring, n);
	run->done += n;
	run->end = now;
}

/* Lets all end that were sent: the device is to be removed after this. */
static void drain(struct run *run)
{
	while (run->done < run->sent) {
		struct io_uring_cqe *cqe;
		int r = io_uring_wait_cqe(&run->ring, &cqe);

		if (r && r != -EINTR)
			die("io_uring_wait_cqe", -r);
		reap(run);
	}
}

static void measure(struct run *run)
{
	while (run->done < run->total && !run->over) {
		uint64_t wait = submit_due(run);
		struct __kernel_timespec ts = { wait / NS, wait % NS };
		struct io_uring_cqe *cqe;
		int r = 0;

		if (wait && !io_uring_cq_ready(&run->ring))
			r = io_uring_wait_cqe_timeout(&run->ring, &cqe, &ts);
		if (r && r != -ETIME && r != -EINTR)
			die("io_uring_wait_cqe_timeout", -r);
		reap(run);
	}
}

static double mean(const uint64_t *x, uint64_t n)
{
	double sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += x[i];
	return sum / n;
}

/*
 * How much longer the last quarter of all reads took than the second: about 1
 * where a queue is stable, 7/3 where it grows.
 */
static double growth(const struct run *run)
{
	uint64_t quarter = run->total / 4;
	double before = mean(run->latency + quarter, quarter);

	return mean(run->latency + 3 * quarter, quarter) / fmax(before, 1);
}

/* Half the width of the 95 % confidence interval of the mean. */
static double half_width(const uint64_t *x, uint64_t n)
{
	double sum = 0, squares = 0, variance;

	for (int b = 0; b < BATCHES; b++) {
		uint64_t from = n * b / BATCHES, to = n * (b + 1) / BATCHES;
		double m = mean(x + from, to - from);

		sum += m;
		squares += m * m;
	}
	variance = (squares - sum * sum / BATCHES) / (BATCHES - 1);
	return T_95 * sqrt(fmax(variance, 0) / BATCHES);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(struct run *run)
{
	static const struct {
		const char *name;
		double p;
	} quantiles[] = {
		{ "p50", 0.5 }, { "p90", 0.9 }, { "p95", 0.95 }, { "p99", 0.99 },
		{ "p99.9", 0.999 }, { "p99.99", 0.9999 }, { "max", 1 }
	};
	uint64_t *x = run->latency + run->opt.warmup, n = run->opt.count;
	double span = (run->due[run->total - 1] - run->due[run->opt.warmup]) / 1e9;
	const char *format = run->opt.json ? ", \"%s\": %.0f" : "%s=%.0f\n";

	printf(run->opt.json ? "{\"count\": %llu" : "count=%llu\n",
	       (unsigned long long)n);
	printf(run->opt.json ? ", \"rate\": %.3f" : "rate=%.3f\n",
	       (n - 1) / span);
	printf(run->opt.json ? ", \"achieved\": %.3f" : "achieved=%.3f\n",
	       run->total / ((run->end - run->begin) / 1e9));
	printf(run->opt.json ? ", \"growth\": %.3f" : "growth=%.3f\n",
	       growth(run));
	printf(format, "mean", mean(x, n));
	printf(format, "ci95", half_width(x, n));
	qsort(x, n, sizeof(*x), compare);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
		uint64_t at = (uint64_t)ceil(quantiles[i].p * n);

		printf(format, quantiles[i].name, (double)x[at - 1]);
	}
	if (run->opt.json)
		printf("}\n");
}

int main(int argc, char **argv)
{
	static struct run run;

	parse(&run.opt, argc, argv);
	open_device(&run);
	open_ring(&run);
	schedule(&run);
	measure(&run);
	if (run.over) {
		drain(&run);
		puts(run.opt.json ? "{\"unstable\": 1}" : "unstable=1");
	} else {
		report(&run);
	}

	/* the ring ends some time after exit, and would hold the device */
	io_uring_unregister_files(&run.ring);
	io_uring_queue_exit(&run.ring);
	free(run.latency);
	free(run.due);
	free(run.buffer);
	close(run.fd);
	return 0;
}
