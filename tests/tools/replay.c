// SPDX-License-Identifier: GPL-2.0
/*
 * replay - what is on disks after a crash, from logs of dm-log-writes.
 *
 *   replay list LOG                  the entries: number, flags, sector, length
 *   replay to N LOG TARGET           writes the entries 1..N to TARGET
 *   replay points TRACE COUNT DISK... [--seed N]
 *   replay crash TRACE POINT|- DISK... [--seed N] [--volatile]
 *   replay sweep TRACE COUNT REGION LEG... LOG [--seed N] [--volatile]
 *   replay order TRACE REGION LEG... LOG [--volatile]
 *
 * A DISK is MAJOR:MINOR,LOG,BASE[,TARGET]: the number of the log-writes device,
 * its log, and a file with the content that it had before. The trace, see
 * trace.h, tells the order of events over all disks and, unlike the logs, what
 * was in flight: a log has writes in the order in which they completed, without
 * times, and those not flushed only after the flush that covers them. So data
 * comes from the logs, order from the trace, and what the two tell about the
 * same write is put together by its place and length.
 *
 * What a crash may leave
 *
 * All disks lose power at one moment: crash point N of the trace. A disk then
 * holds, on top of its base:
 *
 *   - for certain, what it answered with FUA by then, and what it had answered
 *     when it was given a flush that it has answered by then;
 *   - what else it had answered by then: with --volatile any part of it, for it
 *     may be in a cache; without, all of it;
 *   - any part of what it was given and had not answered.
 *
 * Parts are whole sectors, for a sector is written or is not. The choice is made by
 * the seed, for each disk: nothing that may be missing, everything, whole
 * requests, or single sectors.
 *
 * That covers disks that stop at points of their own. Say disk A stops before
 * the others. What these were given before any answer of A is missed is what they
 * would have been given anyhow; and until then all that A lacks is in flight, so
 * the state is one of those above with N taken where the last disk stopped. Past
 * the first missing answer the others would have been given something else,
 * namely what the mirror does with a leg that does not answer: nothing can be
 * said from this trace. To have much in flight at a time, give the disks lag.
 *
 * With - for POINT, points are read from standard input, and "POINT done" answers each.
 *
 * points prints COUNT crash points, each with what it follows: a flush or FUA
 * that was answered ("flush"), or something between ("between"); between the
 * marks "begin" and "end" if there are.
 *
 * sweep looks at COUNT points itself, which is much quicker than to assemble a
 * mirror of each: wherever the log has a region as clean, the legs must be equal,
 * for nobody would make them so. The last disk is that of the log, REGION is in sectors.
 * Prints "points=N clean=N different=N", where clean and different count regions.
 * Exit status 1 unless different is 0.
 *
 * order judges the dirty log of a mirror at all crash points at once. A region must
 * be dirty in all that a crash may leave of the log
 *
 *   - from when a leg is given a write in it ("early" counts the others),
 *   - until each leg is certain to hold it ("unflushed").
 *
 * Prints "leg_writes=N log_writes=N marked=N cleaned=N met=N early=N unflushed=N",
 * where marked and cleaned count regions, and met the writes of the workload
 * (numbered) that came while their region was being marked. Exit status 1 unless early and
 * unflushed are 0; 2 if something is wrong with the input.
 */
#include "trace.h"

#include <endian.h>

#define MAX_DISKS 9
#define ENTRY_FLUSH 1
#define ENTRY_FUA 2
#define ENTRY_DISCARD 4
#define ENTRY_MARK 8
#define LOG_MAGIC 0x6a736677736872ULL
#define NEVER SIZE_MAX
#define BITS_SECTOR 2		/* where a dirty log has its bits, see dm-log */

struct entry {
	uint64_t sector, nr, flags;
	off_t data;		/* where in the log */
	struct op *op;		/* which write it is of */
	char text[64];
};

struct log {
	const char *path;
	int fd;
	struct entry *entry;
	uint64_t nr;
	uint32_t sector_bytes;
};

/* Something that a disk was given: a write, a discard, or a flush alone. */
struct op {
	size_t submit, complete;	/* event numbers; NEVER */
	uint64_t sector;
	uint32_t nr;
	bool preflush, fua, discard, failed;
	const struct entry *entry;
};

struct disk {
	uint32_t dev;
	const char *base, *target;
	struct log log;
	struct op *op;			/* as they were given */
	struct op **done;		/* as they were answered */
	struct op **flush;		/* the flushes, as they were given */
	size_t nr, nr_done, nr_flushes;
	size_t answered;		/* all before this are */
};

static struct disk disks[MAX_DISKS];
static unsigned int nr_disks;
static struct trace trace;
static bool cached;
static uint64_t seed = 1;

/* --- the log ------------------------------------------------------------- */

static void read_at(const struct log *log, void *data, size_t bytes, off_t at)
{
	if (pread(log->fd, data, bytes, at) != (ssize_t)bytes)
		die("%s: %zu bytes at %lld", log->path, bytes, (long long)at);
}

static void read_log(struct log *log, const char *path)
{
	uint64_t head[4];
	off_t at;

	log->path = path;
	log->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (log->fd < 0)
		die("%s", path);
	read_at(log, head, sizeof(head), 0);
	if (le64toh(head[0]) != LOG_MAGIC || le64toh(head[1]) != 1)
		give_up("%s: is no log of dm-log-writes", path);
	log->nr = le64toh(head[2]);
	log->sector_bytes = (uint32_t)le64toh(head[3]);
	log->entry = calloc(log->nr + 1, sizeof(*log->entry));
	if (!log->entry)
		die("%s: %llu entries", path, (unsigned long long)log->nr);
	at = log->sector_bytes;
	for (uint64_t i = 0; i < log->nr; i++) {
		struct entry *e = &log->entry[i];
		unsigned int per = log->sector_bytes / SECTOR;
		char raw[SECTOR];
		uint64_t word[4];

		read_at(log, raw, sizeof(raw), at);
		memcpy(word, raw, sizeof(word));
		e->sector = le64toh(word[0]) * per;
		e->nr = le64toh(word[1]) * per;
		e->flags = le64toh(word[2]);
		e->data = at + log->sector_bytes;
		if (e->flags & ENTRY_MARK)
			snprintf(e->text, sizeof(e->text), "%.*s",
				 (int)le64toh(word[3]), raw + sizeof(word));
		at = e->data;
		if (!(e->flags & ENTRY_DISCARD))
			at += (off_t)(e->nr * SECTOR);
	}
}

static void list_log(const char *path)
{
	struct log log;

	read_log(&log, path);
	for (uint64_t i = 0; i < log.nr; i++) {
		const struct entry *e = &log.entry[i];

		printf("%llu %s%s%s%s %llu + %llu%s%s\n", (unsigned long long)i + 1,
		       e->nr ? "write" : e->flags & ENTRY_MARK ? "mark" : "",
		       e->flags & ENTRY_FLUSH ? " flush" : "",
		       e->flags & ENTRY_FUA ? " fua" : "",
		       e->flags & ENTRY_DISCARD ? " discard" : "",
		       (unsigned long long)e->sector, (unsigned long long)e->nr,
		       e->text[0] ? " " : "", e->text);
	}
	free(log.entry);
}

/* The data of an entry; a discard leaves zeros. */
static char *entry_data(const struct log *log, const struct entry *e)
{
	char *data = buffer(e->nr * SECTOR);

	if (e->flags & ENTRY_DISCARD)
		memset(data, 0, e->nr * SECTOR);
	else
		read_at(log, data, e->nr * SECTOR, e->data);
	return data;
}

static void replay_to(const char *text, const char *path, const char *target)
{
	uint64_t most = number(text);
	struct log log;
	int fd = open(target, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		die("%s", target);
	read_log(&log, path);
	if (most > log.nr)
		give_up("%s has %llu entries, not %s", path,
			(unsigned long long)log.nr, text);
	for (uint64_t i = 0; i < most; i++) {
		const struct entry *e = &log.entry[i];
		char *data;

		if (!e->nr)
			continue;
		data = entry_data(&log, e);
		if (pwrite(fd, data, e->nr * SECTOR, (off_t)(e->sector * SECTOR)) !=
		    (ssize_t)(e->nr * SECTOR))
			die("%s: sector %llu", target, (unsigned long long)e->sector);
		free(data);
	}
	if (fsync(fd) < 0)
		die("%s", target);
	close(fd);
	free(log.entry);
}

/* --- what a disk was given, and when ------------------------------------- */

static void add_op(struct disk *d, const struct event *e, size_t number)
{
	struct op *op = &d->op[d->nr++];

	op->submit = number;
	op->complete = NEVER;
	op->sector = e->sector;
	op->nr = e->write ? e->nr : 0;
	op->preflush = e->preflush;
	op->fua = e->fua && e->write;
	op->discard = e->discard;
}

/* Which of two flushes has ended the trace does not say: see place_flushes(). */
static void complete_op(struct disk *d, const struct event *e, size_t number)
{
	uint32_t nr = e->write ? e->nr : 0;

	while (d->answered < d->nr && d->op[d->answered].complete != NEVER)
		d->answered++;
	for (size_t i = d->answered; i < d->nr; i++) {
		struct op *op = &d->op[i];

		if (op->complete != NEVER || op->nr != nr ||
		    (nr && op->sector != e->sector))
			continue;
		op->complete = number;
		op->failed = e->failed;
		d->done[d->nr_done++] = op;
		return;
	}
	give_up("event %zu: answer of %u:%u to what it was never given", number,
		e->dev >> 20, e->dev & 0xfffff);
}

static void collect_ops(struct disk *d)
{
	size_t most = 0;

	for (size_t i = 0; i < trace.nr; i++)
		most += trace.event[i].type == EVENT_QUEUE && trace.event[i].dev == d->dev;
	d->op = calloc(most + 1, sizeof(*d->op));
	d->done = calloc(most + 1, sizeof(*d->done));
	d->flush = calloc(most + 1, sizeof(*d->flush));
	if (!d->op || !d->done || !d->flush)
		die("memory for %zu requests", most);
	for (size_t i = 0; i < trace.nr; i++) {
		const struct event *e = &trace.event[i];

		if (e->type == EVENT_MARK || e->dev != d->dev ||
		    !(e->write || e->preflush || (e->fua && !e->nr)))
			continue;
		if (e->type == EVENT_QUEUE)
			add_op(d, e, i + 1);
		else
			complete_op(d, e, i + 1);
	}
	for (size_t i = 0; i < d->nr; i++)
		if (d->op[i].preflush)
			d->flush[d->nr_flushes++] = &d->op[i];
}

/* Gives each write the first entry of the log that fits, in order of answers. */
static void find_entries(struct disk *d)
{
	uint64_t first = 0;

	for (size_t i = 0; i < d->nr_done + d->nr; i++) {
		struct op *op = i < d->nr_done ? d->done[i] : &d->op[i - d->nr_done];

		if (!op->nr || op->entry)
			continue;
		while (first < d->log.nr && (d->log.entry[first].op ||
					     !d->log.entry[first].nr))
			first++;
		for (uint64_t j = first; j < d->log.nr; j++) {
			struct entry *e = &d->log.entry[j];

			if (e->op || e->sector != op->sector || e->nr != op->nr ||
			    !(e->flags & ENTRY_FUA) != !op->fua ||
			    !(e->flags & ENTRY_DISCARD) != !op->discard)
				continue;
			e->op = op;
			op->entry = e;
			break;
		}
		if (!op->entry)
			give_up("%s: no entry for the write of event %zu: sector %llu + %u",
				d->log.path, op->submit,
				(unsigned long long)op->sector, op->nr);
	}
}

/* The first flush still out that came after an event, but before this answer. */
static struct op *flush_after(const struct disk *d, size_t event, const struct op *answer)
{
	for (size_t i = 0; i < d->nr_flushes; i++) {
		struct op *op = d->flush[i];

		if (op->complete >= answer->complete && op->nr == answer->nr &&
		    op->submit > event && op->submit < answer->complete)
			return op;
	}
	return NULL;
}

/* The answer at done[at] was for this request, and the other way round. */
static void exchange_answers(struct disk *d, size_t at, struct op *right)
{
	struct op *wrong = d->done[at];
	size_t answer = wrong->complete;

	for (size_t i = at + 1; i < d->nr_done; i++)
		if (d->done[i] == right)
			d->done[i] = wrong;
	d->done[at] = right;
	wrong->complete = right->complete;
	right->complete = answer;
}

/*
 * Two flushes that are out at once look the same in the trace. The log tells
 * which of them was answered first: it has in front of each flush the writes
 * that had been answered when the flush came.
 */
static void place_flushes(struct disk *d)
{
	size_t at = 0, newest = 0;

	for (uint64_t i = 0; i < d->log.nr; i++) {
		const struct entry *e = &d->log.entry[i];
		struct op *right;

		if (e->op && !e->op->fua && e->op->complete != NEVER &&
		    e->op->complete > newest)
			newest = e->op->complete;
		if (!(e->flags & ENTRY_FLUSH))
			continue;
		while (at < d->nr_done && !d->done[at]->preflush)
			at++;
		if (at == d->nr_done)
			break;
		right = flush_after(d, newest, d->done[at]);
		if (right && right != d->done[at])
			exchange_answers(d, at, right);
		newest = 0;
		at++;
	}
}

static void read_disk(const char *text)
{
	struct disk *d = &disks[nr_disks++];
	unsigned int major, minor;
	char *words = strdup(text), *word[4] = { NULL };
	unsigned int nr = 0;

	if (nr_disks > MAX_DISKS)
		give_up("more than %d disks", MAX_DISKS);
	for (char *w = strtok(words, ","); w && nr < 4; w = strtok(NULL, ","))
		word[nr++] = w;
	if (nr < 3 || sscanf(word[0], "%u:%u", &major, &minor) != 2)
		give_up("'%s' is not MAJOR:MINOR,LOG,BASE[,TARGET]", text);
	d->dev = major << 20 | minor;
	d->base = word[2];
	d->target = word[3];
	read_log(&d->log, word[1]);
	collect_ops(d);
	find_entries(d);
	place_flushes(d);
}

/* --- a crash ------------------------------------------------------------- */

/* The flushes answered by then cover what was answered before this. */
static size_t covered(const struct disk *d, size_t point)
{
	size_t before = 0;

	for (size_t i = 0; i < d->nr_flushes; i++)
		if (!d->flush[i]->failed && d->flush[i]->complete <= point)
			before = d->flush[i]->submit;
	return before;
}

enum choice { NOTHING, EVERYTHING, REQUESTS, SECTORS, NR_CHOICES };

static void apply(const struct disk *d, char *image, uint64_t bytes,
		  const struct op *op, enum choice choice, uint64_t *random)
{
	bool there = choice == EVERYTHING || next_random(random) % 2;
	char *data;

	if (choice == NOTHING || (choice == REQUESTS && !there))
		return;
	if ((op->sector + op->nr) * SECTOR > bytes)
		give_up("%s: too small for sector %llu + %u", d->base,
			(unsigned long long)op->sector, op->nr);
	data = entry_data(&d->log, op->entry);
	for (uint32_t i = 0; i < op->nr; i++)
		if (choice != SECTORS || next_random(random) % 2)
			memcpy(image + (op->sector + i) * SECTOR, data + i * SECTOR,
			       SECTOR);
	free(data);
}

static char *crash_image(const struct disk *d, size_t point, uint64_t *bytes)
{
	uint64_t random = mix(mix(seed ^ (uint64_t)(d - disks) << 56) ^ point);
	enum choice choice = next_random(&random) % NR_CHOICES;
	size_t certain = covered(d, point);
	int fd = open(d->base, O_RDONLY | O_CLOEXEC);
	char *image;

	if (fd < 0)
		die("%s", d->base);
	*bytes = device_bytes(fd);
	image = buffer(*bytes);
	if (read(fd, image, *bytes) != (ssize_t)*bytes)
		die("%s", d->base);
	close(fd);

	for (size_t i = 0; i < d->nr_done; i++) {
		const struct op *op = d->done[i];
		bool sure = !op->failed &&
			    (!cached || op->fua || op->complete < certain);

		if (op->nr && op->complete <= point)
			apply(d, image, *bytes, op, sure ? EVERYTHING : choice, &random);
	}
	for (size_t i = 0; i < d->nr; i++) {
		const struct op *op = &d->op[i];

		if (op->nr && op->submit <= point && op->complete > point)
			apply(d, image, *bytes, op, choice, &random);
	}
	return image;
}

static void crash(size_t point)
{
	if (!point || point > trace.nr)
		give_up("crash point %zu is not between 1 and %zu", point, trace.nr);
	for (unsigned int i = 0; i < nr_disks; i++) {
		const struct disk *d = &disks[i];
		uint64_t bytes;
		char *image;
		int fd;

		if (!d->target)
			give_up("no target for the disk with the log %s", d->log.path);
		image = crash_image(d, point, &bytes);
		fd = open_direct(d->target, O_WRONLY);
		if (write(fd, image, bytes) != (ssize_t)bytes)
			die("%s: %llu bytes", d->target, (unsigned long long)bytes);
		close(fd);
		free(image);
	}
}

/* Points come one a line, and may go on to come when the disks have been looked at. */
static void crashes(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		crash(number(line));
		printf("%s done\n", line);
		fflush(stdout);
	}
}

/* --- where to crash ------------------------------------------------------ */

static bool of_a_disk(const struct event *e)
{
	for (unsigned int i = 0; i < nr_disks; i++)
		if (e->type != EVENT_MARK && e->dev == disks[i].dev)
			return e->write || e->preflush;
	return false;
}

static size_t find_mark(const char *text, size_t otherwise)
{
	for (size_t i = 0; i < trace.nr; i++)
		if (trace.event[i].type == EVENT_MARK && !strcmp(trace.event[i].text, text))
			return i + 1;
	return otherwise;
}

/* Takes the wanted number of points at random, but keeps them in order. */
static size_t thin(size_t *point, size_t nr, size_t wanted, uint64_t *random)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr && kept < wanted; i++)
		if (next_random(random) % (nr - i) < wanted - kept)
			point[kept++] = point[i];
	return kept;
}

struct point {
	size_t event;
	const char *after;
};

/* Half of them after flushes, if there are as many. Returns how many there are. */
static size_t choose_points(struct point *points, size_t wanted)
{
	size_t begin = find_mark("begin", 1), end = find_mark("end", trace.nr);
	size_t *flush = calloc(trace.nr, sizeof(*flush)), nr_flush = 0;
	size_t *other = calloc(trace.nr, sizeof(*other)), nr_other = 0;
	uint64_t random = mix(seed);

	if (!flush || !other)
		die("memory for points");
	for (unsigned int i = 0; i < nr_disks; i++)
		for (size_t j = 0; j < disks[i].nr_done; j++) {
			const struct op *op = disks[i].done[j];

			if ((op->preflush || op->fua) && op->complete > begin &&
			    op->complete < end)
				flush[nr_flush++] = op->complete;
		}
	for (size_t i = begin; i < end; i++)
		if (of_a_disk(&trace.event[i - 1]))
			other[nr_other++] = i;
	nr_flush = thin(flush, nr_flush, (wanted + 1) / 2, &random);
	nr_other = thin(other, nr_other, wanted - nr_flush, &random);
	for (size_t i = 0; i < nr_flush; i++)
		points[i] = (struct point){ flush[i], "flush" };
	for (size_t i = 0; i < nr_other; i++)
		points[nr_flush + i] = (struct point){ other[i], "between" };
	free(flush);
	free(other);
	return nr_flush + nr_other;
}

static void print_points(size_t wanted)
{
	struct point *points = calloc(wanted, sizeof(*points));

	if (!points)
		die("memory for points");
	wanted = choose_points(points, wanted);
	for (size_t i = 0; i < wanted; i++)
		printf("%zu %s\n", points[i].event, points[i].after);
	free(points);
}

/* --- many crashes, judged by what the log says ------------------------------- */

static uint64_t region_sectors, nr_regions;

/* Whether this write of the log says that the region is clean. */
static bool says_clean(const unsigned char *bits, uint64_t region)
{
	return bits[region / 8] >> (region % 8) & 1;
}

static bool legs_equal(char **image, const uint64_t *bytes, uint64_t region)
{
	uint64_t at = region * region_sectors * SECTOR;
	uint64_t n = region_sectors * SECTOR;

	if (at + n > bytes[0])
		n = bytes[0] - at;
	for (unsigned int i = 1; i + 1 < nr_disks; i++)
		if (memcmp(image[0] + at, image[i] + at, n))
			return false;
	return true;
}

static void sweep_point(size_t point, uint64_t *clean, uint64_t *different)
{
	uint64_t bytes[MAX_DISKS];
	const unsigned char *bits;
	char *image[MAX_DISKS];

	for (unsigned int i = 0; i < nr_disks; i++)
		image[i] = crash_image(&disks[i], point, &bytes[i]);
	nr_regions = (bytes[0] + region_sectors * SECTOR - 1) / (region_sectors * SECTOR);
	bits = (unsigned char *)image[nr_disks - 1] + BITS_SECTOR * SECTOR;
	for (uint64_t r = 0; r < nr_regions; r++) {
		if (!says_clean(bits, r))
			continue;
		++*clean;
		if (legs_equal(image, bytes, r))
			continue;
		if (++*different < 5)
			fprintf(stderr, "crash at %zu: region %llu is clean,"
				" and the legs differ\n", point,
				(unsigned long long)r);
	}
	for (unsigned int i = 0; i < nr_disks; i++)
		free(image[i]);
}

static bool sweep(size_t wanted)
{
	struct point *points = calloc(wanted, sizeof(*points));
	uint64_t clean = 0, different = 0;

	if (!points)
		die("memory for points");
	wanted = choose_points(points, wanted);
	for (size_t i = 0; i < wanted; i++)
		sweep_point(points[i].event, &clean, &different);
	free(points);
	printf("points=%zu clean=%llu different=%llu\n", wanted,
	       (unsigned long long)clean, (unsigned long long)different);
	return !different;
}

/* --- the order of log and legs ------------------------------------------- */

struct region {
	bool certain;		/* dirty, in what the log certainly holds */
	unsigned int maybe_clean;	/* uncertain writes of the log that say clean */
	unsigned int maybe_dirty;	/* and those that say dirty */
	unsigned int writes;	/* of legs, that they may lack */
};

static struct region *regions;
static uint64_t early, unflushed, marked, cleaned, met, leg_writes, log_writes;

/* The bits in a write of the log; it writes header and bits in one piece. */
static unsigned char *log_bits(const struct disk *d, const struct op *op)
{
	unsigned char *bits = calloc(1, nr_regions / 8 + 1);
	char *data = entry_data(&d->log, op->entry);

	if (!bits || op->sector || op->nr <= BITS_SECTOR ||
	    (uint64_t)(op->nr - BITS_SECTOR) * SECTOR * 8 < nr_regions)
		give_up("%s: event %zu writes sector %llu + %u, which is no dirty log",
			d->log.path, op->submit, (unsigned long long)op->sector, op->nr);
	memcpy(bits, data + BITS_SECTOR * SECTOR, nr_regions / 8 + 1);
	free(data);
	return bits;
}

static void each_region(const struct op *op, uint64_t *first, uint64_t *last)
{
	*first = op->sector / region_sectors;
	*last = (op->sector + op->nr - 1) / region_sectors;
	if (*last >= nr_regions)
		give_up("a leg was written at sector %llu, behind the volume",
			(unsigned long long)op->sector);
}

static void leg_given(const struct op *op)
{
	uint64_t first, last;

	leg_writes++;
	each_region(op, &first, &last);
	for (uint64_t r = first; r <= last; r++) {
		regions[r].writes++;
		if (regions[r].certain && !regions[r].maybe_clean)
			continue;
		if (early++ < 5)
			fprintf(stderr, "event %zu: a leg is given a write in region %llu,"
				" which the log may have as clean\n",
				op->submit, (unsigned long long)r);
	}
}

static void leg_holds(const struct op *op)
{
	uint64_t first, last;

	each_region(op, &first, &last);
	for (uint64_t r = first; r <= last; r++)
		regions[r].writes--;
}

static void log_given(const struct op *op, const unsigned char *bits)
{
	log_writes++;
	for (uint64_t r = 0; r < nr_regions; r++) {
		if (!says_clean(bits, r)) {
			regions[r].maybe_dirty++;
			continue;
		}
		if (regions[r].maybe_clean++ || !regions[r].certain)
			continue;
		cleaned++;
		if (regions[r].writes && unflushed++ < 5)
			fprintf(stderr, "event %zu: the log is to call region %llu clean,"
				" whose writes a leg may lack\n",
				op->submit, (unsigned long long)r);
	}
}

static void log_holds(const unsigned char *bits)
{
	for (uint64_t r = 0; r < nr_regions; r++) {
		bool clean = says_clean(bits, r);

		if (clean)
			regions[r].maybe_clean--;
		else
			regions[r].maybe_dirty--;
		marked += !regions[r].certain && !clean;
		regions[r].certain = !clean;
	}
}

/* The workload, numbered, is to write where the log is just being marked. */
static void workload_writes(const char *text)
{
	unsigned long long stripe;
	unsigned int first, nr;
	uint64_t r;

	if (sscanf(text, "write %llu %u %u", &stripe, &first, &nr) != 3)
		return;
	r = (stripe * 64 + first) / region_sectors;
	if (r < nr_regions && !regions[r].certain && regions[r].maybe_dirty)
		met++;
}

/* What a disk holds for certain from this event on, in order of answers. */
struct settled {
	size_t event;
	unsigned int disk;
	const struct op *op;
};

static int by_event(const void *a, const void *b)
{
	const struct settled *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return x->op->complete < y->op->complete ? -1 : 1;
}

static size_t certain_from(const struct disk *d, const struct op *op);

/* A write that failed is made good by a later one over all of it. */
static size_t made_good_from(const struct disk *d, const struct op *op)
{
	for (size_t i = (size_t)(op - d->op) + 1; i < d->nr; i++) {
		const struct op *later = &d->op[i];

		if (!later->failed && later->submit > op->complete &&
		    later->sector <= op->sector &&
		    later->sector + later->nr >= op->sector + op->nr)
			return certain_from(d, later);
	}
	return NEVER;
}

/* When a write is certain: the first answer to a flush that came after its own. */
static size_t certain_from(const struct disk *d, const struct op *op)
{
	size_t from = NEVER;

	if (op->complete == NEVER)
		return NEVER;
	if (op->failed)
		return made_good_from(d, op);
	if (!cached || op->fua)
		return op->complete;
	for (size_t i = 0; i < d->nr_flushes; i++)
		if (!d->flush[i]->failed && d->flush[i]->submit > op->complete &&
		    d->flush[i]->complete < from)
			from = d->flush[i]->complete;
	return from;
}

static void judge_order(void)
{
	const struct disk *log = &disks[nr_disks - 1];
	struct settled *settled;
	unsigned char **bits = calloc(log->nr + 1, sizeof(*bits));
	size_t nr = 0, at = 0, *given = calloc(nr_disks, sizeof(*given));
	uint64_t end = 0;

	for (unsigned int i = 0; i < nr_disks; i++)
		nr += disks[i].nr;
	settled = calloc(nr + 1, sizeof(*settled));
	for (unsigned int i = 0; i + 1 < nr_disks; i++)
		for (size_t j = 0; j < disks[i].nr; j++)
			if (disks[i].op[j].sector + disks[i].op[j].nr > end)
				end = disks[i].op[j].sector + disks[i].op[j].nr;
	nr_regions = (end + region_sectors - 1) / region_sectors;
	regions = calloc(nr_regions + 1, sizeof(*regions));
	if (!settled || !bits || !given || !regions)
		die("memory");
	for (size_t i = 0; i < log->nr; i++)
		if (log->op[i].nr)
			bits[i] = log_bits(log, &log->op[i]);
	nr = 0;
	for (unsigned int i = 0; i < nr_disks; i++)
		for (size_t j = 0; j < disks[i].nr; j++)
			if (disks[i].op[j].nr)
				settled[nr++] = (struct settled){
					certain_from(&disks[i], &disks[i].op[j]),
					i, &disks[i].op[j] };
	qsort(settled, nr, sizeof(*settled), by_event);

	for (size_t event = 1; event <= trace.nr; event++) {
		if (trace.event[event - 1].type == EVENT_MARK)
			workload_writes(trace.event[event - 1].text);
		for (unsigned int i = 0; i < nr_disks; i++) {
			const struct op *op = &disks[i].op[given[i]];

			if (given[i] == disks[i].nr || op->submit != event)
				continue;
			given[i]++;
			if (!op->nr)
				continue;
			if (&disks[i] == log)
				log_given(op, bits[op - log->op]);
			else
				leg_given(op);
		}
		for (; at < nr && settled[at].event == event; at++) {
			const struct op *op = settled[at].op;

			if (&disks[settled[at].disk] == log)
				log_holds(bits[op - log->op]);
			else
				leg_holds(op);
		}
	}
	for (size_t i = 0; i < log->nr; i++)
		free(bits[i]);
	free(bits);
	free(given);
	free(settled);
	printf("leg_writes=%llu log_writes=%llu marked=%llu cleaned=%llu met=%llu"
	       " early=%llu unflushed=%llu\n",
	       (unsigned long long)leg_writes, (unsigned long long)log_writes,
	       (unsigned long long)marked, (unsigned long long)cleaned,
	       (unsigned long long)met, (unsigned long long)early,
	       (unsigned long long)unflushed);
}

/* --- the command line ---------------------------------------------------- */

__attribute__((noreturn)) static void usage(void)
{
	give_up("usage: replay list LOG\n"
		"       replay to N LOG TARGET\n"
		"       replay points TRACE COUNT DISK... [--seed N]\n"
		"       replay crash TRACE POINT|- DISK... [--seed N] [--volatile]\n"
		"       replay sweep TRACE COUNT REGION-SECTORS LEG-DISK... LOG-DISK [--seed N] [--volatile]\n"
		"       replay order TRACE REGION-SECTORS LEG-DISK... LOG-DISK [--volatile]\n"
		"a DISK is MAJOR:MINOR,LOG,BASE[,TARGET]");
}

int main(int argc, char **argv)
{
	uint64_t value;

	if (argc == 3 && !strcmp(argv[1], "list")) {
		list_log(argv[2]);
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "to")) {
		replay_to(argv[2], argv[3], argv[4]);
		return 0;
	}
	if (argc < 5)
		usage();
	read_trace(&trace, argv[2]);
	value = strcmp(argv[3], "-") ? number(argv[3]) : NEVER;
	for (int i = 4; i < argc; i++) {
		if (i == 4 && !strcmp(argv[1], "sweep"))
			region_sectors = number(argv[i]);
		else if (!strcmp(argv[i], "--volatile"))
			cached = true;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = number(argv[++i]);
		else
			read_disk(argv[i]);
	}
	if (!strcmp(argv[1], "points"))
		print_points(value);
	else if (!strcmp(argv[1], "crash") && value == NEVER)
		crashes();
	else if (!strcmp(argv[1], "crash"))
		crash(value);
	else if (!strcmp(argv[1], "sweep") && nr_disks > 1 && region_sectors)
		return !sweep(value);
	else if (!strcmp(argv[1], "order") && nr_disks > 1 && value) {
		region_sectors = value;
		judge_order();
		return early || unflushed;
	} else
		usage();
	return 0;
}
