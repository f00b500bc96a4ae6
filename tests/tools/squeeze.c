// SPDX-License-Identifier: GPL-2.0
/*
 * squeeze - reads and writes while the kernel gets no memory at all.
 *
 *   squeeze DEV SECONDS THREADS [INTERVAL]
 *
 * So many threads read and write random blocks of 4 KiB of DEV, with O_DIRECT and one at
 * a time each, for so long. Meanwhile every slab allocation and every allocation of
 * pages in the kernel fails, for everybody, whether it may wait or not: only what
 * pools hold in reserve is left. With INTERVAL only each such slab allocation fails,
 * so that of several that belong together the second fails alone; pages do not, as the
 * kernel warns when a thread of its own gets no stack. Needs a kernel with fault
 * injection. All that this program needs is there before, and nothing is opened or begun
 * meanwhile.
 *
 * A block belongs to one thread, which knows what it wrote there last. What it reads is
 * compared, and in the end, when there is memory again, so is each block that was written.
 *
 * Prints "ended=N errors=N wrong=N slabs=N pages=N seconds=N": requests that ended meanwhile,
 * how many of them in an error, blocks that were read and had other data, and how many
 * allocations of each kind failed. If nothing ends any more memory comes back after a
 * minute, and seconds tells it. Exit status 0, or 2 if it could not run.
 */
#include "io.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define BLOCK 4096
#define MOST 1000000000		/* failures; the kernel counts them down */
#define PATIENCE 60		/* seconds */
#define NONE "20"		/* pages of such an order are not allocated */

static int fd;
static uint64_t blocks, threads;
static uint32_t *version;	/* of each block, 0 = not written yet */
static const char *interval = "1";
static atomic_bool go, stop;
static _Atomic uint64_t done, errors, wrong;
static _Atomic unsigned int running;

struct fault {
	const char *name;
	int probability;
};

static struct fault faults[] = { { "failslab", -1 }, { "fail_page_alloc", -1 } };

static int open_file(const char *fault, const char *name)
{
	char path[128];
	int f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", fault, name);
	f = open(path, O_RDWR | O_CLOEXEC);
	if (f < 0)
		die("%s", path);
	return f;
}

static void put(const char *fault, const char *name, const char *value)
{
	int f = open_file(fault, name);

	if (write(f, value, strlen(value)) < 0)
		die("%s/%s", fault, name);
	close(f);
}

static long failures(const char *fault)
{
	char text[32] = "";
	int f = open_file(fault, "times");

	if (read(f, text, sizeof(text) - 1) < 0)
		die("%s/times", fault);
	close(f);
	return MOST - atol(text);
}

static void prepare(struct fault *fault)
{
	char most[32];

	snprintf(most, sizeof(most), "%d", MOST);
	put(fault->name, "probability", "0");
	put(fault->name, "ignore-gfp-wait", "N");
	put(fault->name, "task-filter", "N");
	put(fault->name, "interval", interval);
	put(fault->name, "space", "0");
	put(fault->name, "verbose", "0");
	put(fault->name, "times", most);
	if (!strcmp(fault->name, "fail_page_alloc"))
		put(fault->name, "min-order", strcmp(interval, "1") ? NONE : "0");
	fault->probability = open_file(fault->name, "probability");
}

static void set_all(const char *probability)
{
	for (unsigned int i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (write(faults[i].probability, probability, strlen(probability)) < 0)
			die("%s/probability", faults[i].name);
}

static uint64_t word(uint64_t block, unsigned int i)
{
	return mix(block << 32 | version[block]) + i;
}

static bool write_block(uint64_t *data, uint64_t block)
{
	version[block]++;
	for (unsigned int i = 0; i < BLOCK / sizeof(*data); i++)
		data[i] = word(block, i);
	return pwrite(fd, data, BLOCK, (off_t)(block * BLOCK)) == BLOCK;
}

static bool read_block(uint64_t *data, uint64_t block)
{
	if (pread(fd, data, BLOCK, (off_t)(block * BLOCK)) != BLOCK)
		return false;
	for (unsigned int i = 0; version[block] && i < BLOCK / sizeof(*data); i++)
		if (data[i] != word(block, i)) {
			wrong++;
			break;
		}
	return true;
}

static void *worker(void *arg)
{
	uint64_t me = (uintptr_t)arg, random = mix(1 + me), *data = buffer(BLOCK);

	memset(data, 1, BLOCK);
	running++;
	while (!go)
		;
	while (!stop) {
		uint64_t block = next_random(&random) % (blocks / threads) * threads + me;
		bool good = next_random(&random) % 4 ? write_block(data, block) :
						       read_block(data, block);

		errors += !good;
		done++;
	}
	free(data);
	running--;
	return NULL;
}

static void verify(void)
{
	uint64_t *data = buffer(BLOCK);

	for (uint64_t block = 0; block < blocks; block++)
		if (version[block])
			errors += !read_block(data, block);
	free(data);
}

/* A thread that waits asks for no memory if it only looks. */
static void idle_until(uint64_t ns, bool all_ended)
{
	while (now_ns() < ns && !(all_ended && !running))
		usleep(10000);
}

int main(int argc, char **argv)
{
	uint64_t seconds, begin, meanwhile, ns;
	pthread_t thread;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: squeeze DEV SECONDS THREADS [INTERVAL]\n");
		return 2;
	}
	seconds = number(argv[2]);
	threads = number(argv[3]);
	fd = open_direct(argv[1], O_RDWR);
	if (argc == 5)
		interval = argv[4];
	blocks = device_bytes(fd) / BLOCK;
	version = calloc(blocks, sizeof(*version));
	if (!version || !threads || blocks < threads)
		die("%llu blocks, %llu threads", (unsigned long long)blocks,
		    (unsigned long long)threads);
	for (unsigned int i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		prepare(&faults[i]);
	for (uint64_t i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, worker, (void *)(uintptr_t)i))
			die("thread");
	if (mlockall(MCL_CURRENT))
		die("memory cannot be locked");
	while (running < threads)
		usleep(1000);

	set_all("100");
	begin = now_ns();
	go = true;
	idle_until(begin + seconds * 1000000000, false);
	meanwhile = done;
	stop = true;
	/* What has begun must end too before there is memory again. */
	idle_until(begin + PATIENCE * 1000000000ULL, true);
	set_all("0");
	ns = now_ns() - begin;
	if (!running)
		verify();
	printf("ended=%llu errors=%llu wrong=%llu slabs=%ld pages=%ld seconds=%llu\n",
	       (unsigned long long)meanwhile, (unsigned long long)errors,
	       (unsigned long long)wrong, failures("failslab"), failures("fail_page_alloc"),
	       (unsigned long long)(ns / 1000000000));
	return 0;
}
