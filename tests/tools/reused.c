// SPDX-License-Identifier: GPL-2.0
/*
 * reused - does a copy that lost write into memory its reader uses again?
 *
 *   reused DEV [--threads N] [--count N] [--max-bs BYTES] [--ring N]
 *          [--rival DEV] [--go-on] [--pause]
 *
 * The device must carry stamps (load fill).  Each thread reads random extents
 * into the buffers of a ring, checks the stamps, and at once fills the buffer
 * with a pattern of its own.  When the ring comes round to the buffer, and at
 * the end, the pattern must be intact: any late copy into it leaves stamps
 * instead.  With --go-on the threads read on past --count until a line comes on
 * standard input, so that a test can take its time to bring about what the reads
 * are to meet.  With --pause the program prints "paused" after its reads and waits
 * for a line on standard input before it looks at all buffers for the last
 * time; meanwhile the test lets the losers end.
 *
 * --rival shows that the check can fail: the first reads of each thread are
 * also sent to that device, into the same buffer, by a thread that nobody waits
 * for until the pause is over.  That is what a hedge without pages of its own
 * would do.
 *
 * Prints "reads=N wrong=N corrupted=N errors=N"; exit status 1 unless the last
 * three are 0.
 */
#include "io.h"

#include <pthread.h>
#include <stdatomic.h>

#define RIVALS 8

struct rival {
	pthread_t thread;
	char *data;
	size_t bytes;
	uint64_t at;
};

struct reader {
	pthread_t thread;
	unsigned int index;
	char *ring;
	uint64_t *filled;		/* seed of the pattern, 0 = none yet */
	struct rival rival[RIVALS];
	unsigned int rivals;
};

static unsigned int threads = 4, ring = 64;
static uint64_t count = 1000;
static size_t max_bs = 64 << 10;
static int fd, rival_fd = -1;
static bool pause_wanted, go_on;
static atomic_bool stop;
static uint64_t sectors;
static _Atomic uint64_t reads, wrong, corrupted, errors;

static void fill_pattern(uint64_t *word, uint64_t seed)
{
	for (size_t i = 0; i < max_bs / 8; i++)
		word[i] = ~seed ^ i;
}

static bool pattern_intact(const uint64_t *word, uint64_t seed)
{
	for (size_t i = 0; i < max_bs / 8; i++)
		if (word[i] != (~seed ^ i))
			return false;
	return true;
}

static void check_slot(struct reader *r, unsigned int slot)
{
	if (r->filled[slot] &&
	    !pattern_intact((uint64_t *)(r->ring + slot * max_bs), r->filled[slot]) &&
	    corrupted++ == 0)
		fprintf(stderr, "a buffer changed after its read had returned\n");
}

static void *rival_read(void *arg)
{
	struct rival *rival = arg;

	if (pread(rival_fd, rival->data, rival->bytes, (off_t)rival->at) < 0)
		errors++;
	return NULL;
}

static void start_rival(struct reader *r, char *data, size_t bytes, uint64_t at)
{
	struct rival *rival = &r->rival[r->rivals];

	*rival = (struct rival){ .data = data, .bytes = bytes, .at = at };
	if (pthread_create(&rival->thread, NULL, rival_read, rival))
		die("thread");
	r->rivals++;
}

static void read_one(struct reader *r, unsigned int slot, uint64_t *random)
{
	size_t bytes = (1 + next_random(random) % (max_bs / SECTOR)) * SECTOR;
	uint64_t sector = next_random(random) % (sectors - bytes / SECTOR + 1);
	char *data = r->ring + slot * max_bs;

	if (rival_fd >= 0 && r->rivals < RIVALS)
		start_rival(r, data, bytes, sector * SECTOR);
	if (pread(fd, data, bytes, (off_t)(sector * SECTOR)) != (ssize_t)bytes)
		errors++;
	else if (stamp_wrong(data, sector, bytes) >= 0)
		wrong++;
	reads++;
	r->filled[slot] = next_random(random) | 1;
	fill_pattern((uint64_t *)data, r->filled[slot]);
}

static void *reader(void *arg)
{
	struct reader *r = arg;
	uint64_t random = mix(r->index + 7);

	for (uint64_t i = 0; i < count || (go_on && !stop); i++) {
		unsigned int slot = (unsigned int)(i % ring);

		/* a rival may be out for long: leave its buffer alone */
		if (rival_fd >= 0 && i >= ring && slot < RIVALS)
			continue;
		check_slot(r, slot);
		read_one(r, slot, &random);
	}
	return NULL;
}

static void wait_for_line(void)
{
	while (getchar() != '\n' && !feof(stdin))
		;
}

static void parse(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--pause")) {
			pause_wanted = true;
			continue;
		}
		if (!strcmp(argv[i], "--go-on")) {
			go_on = true;
			continue;
		}
		if (!strcmp(argv[i], "--threads"))
			threads = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--count"))
			count = number(value);
		else if (!strcmp(argv[i], "--max-bs"))
			max_bs = number(value);
		else if (!strcmp(argv[i], "--ring"))
			ring = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--rival"))
			rival_fd = open_direct(value, O_RDONLY);
		else {
			fprintf(stderr, "%s: unknown option\n", argv[i]);
			exit(2);
		}
		i++;
	}
}

int main(int argc, char **argv)
{
	struct reader *r;

	if (argc < 2) {
		fprintf(stderr, "usage: reused DEV [option...]\n");
		return 2;
	}
	parse(argc, argv);
	fd = open_direct(argv[1], O_RDONLY);
	sectors = device_bytes(fd) / SECTOR;
	r = calloc(threads, sizeof(*r));
	if (!r || !threads || ring < 2 * RIVALS || sectors < max_bs / SECTOR) {
		fprintf(stderr, "threads, ring or device too small\n");
		return 2;
	}
	for (unsigned int i = 0; i < threads; i++) {
		r[i].index = i;
		r[i].ring = buffer(ring * max_bs);
		r[i].filled = calloc(ring, sizeof(uint64_t));
		if (!r[i].filled || pthread_create(&r[i].thread, NULL, reader, &r[i]))
			die("thread");
	}
	if (go_on)
		wait_for_line();
	stop = true;
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(r[i].thread, NULL);
	if (pause_wanted) {
		printf("paused\n");
		fflush(stdout);
		wait_for_line();
	}
	for (unsigned int i = 0; i < threads; i++) {
		for (unsigned int j = 0; j < r[i].rivals; j++)
			pthread_join(r[i].rival[j].thread, NULL);
		for (unsigned int slot = 0; slot < ring; slot++)
			check_slot(&r[i], slot);
		free(r[i].ring);
		free(r[i].filled);
	}
	free(r);
	printf("reads=%llu wrong=%llu corrupted=%llu errors=%llu\n",
	       (unsigned long long)reads, (unsigned long long)wrong,
	       (unsigned long long)corrupted, (unsigned long long)errors);
	return wrong || corrupted || errors;
}
