// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz - give a target tables, messages and attributes that are almost right.
 *
 *   fuzz table NAME [--count N] [--seed N] [--resume N] [--label DEV]...   < table lines
 *   fuzz message NAME DIR [--count N] [--seed N]                           < messages
 *   fuzz attributes NAME DIR [--count N] [--seed N]                        < values
 *
 * Each case is one line of what is read from stdin, changed in a few places: a word
 * is left out, doubled, exchanged with another's or made a number at the edge of
 * a type; a byte is flipped, removed or put in; the line is cut or made long.
 * Tables are loaded into the inactive slot of device NAME, and every Nth that is
 * taken (--resume, default 50, 0 = none) is resumed before it is cleared. Each --label is
 * a device with a label in its last 8 KiB, of which some bytes are flipped for half of the
 * cases, with a checksum that is right for half of these; what was there is put
 * back after each case. Of attributes, any file below DIR that can be written gets
 * the value. A message or value that was refused must have left all these files, and
 * the table line of NAME, as they were.
 *
 * Prints "cases=N taken=N refused=N changed=N" and how often each error came. Exit status 1
 * if something refused changed anything. Whether the kernel came to harm, and
 * whether the device still works, is for the caller to see.
 */
#include "io.h"

#include <dirent.h>
#include <linux/dm-ioctl.h>
#include <stddef.h>

#define SIZE 16384
#define LONGEST 4096
#define MOST_LINES 256
#define MOST_FILES 512

static char *line[MOST_LINES], *file[MOST_FILES];
static unsigned int lines, files;
static uint64_t count = 1000, seed = 1, every = 50, random_state;
static unsigned long long taken, refused, changed, by_errno[200];

static uint64_t below(uint64_t n)
{
	return next_random(&random_state) % n;
}

static void read_lines(void)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n;

	while (lines < MOST_LINES && (n = getline(&text, &room, stdin)) > 0) {
		if (text[n - 1] == '\n')
			text[n - 1] = 0;
		line[lines++] = strdup(text);
	}
	free(text);
	if (!lines) {
		fprintf(stderr, "nothing to start from on stdin\n");
		exit(2);
	}
}

/* A random word of a random line, and where it stands. */
static char *any_word(char *text, size_t *length)
{
	unsigned int words = 0, pick;
	char *p = text;

	for (; *p; p++)
		words += *p != ' ' && (p == text || p[-1] == ' ');
	*length = 0;
	if (!words)
		return text;
	pick = (unsigned int)below(words);
	for (p = text;; p++)
		if (*p != ' ' && (p == text || p[-1] == ' ') && !pick--)
			break;
	*length = strcspn(p, " ");
	return p;
}

static const char *const edges[] = {
	"0", "1", "-1", "2", "7", "8", "9", "4294967295", "4294967296", "2147483648",
	"18446744073709551615", "18446744073709551616", "9223372036854775808", "0x10", "010",
	"+1", "1.5", "1e9", "-", "", "%s%n", "/dev/ram0", "/dev/ram1", "/dev/ram9", "/dev/null",
	"1:0", "1:1", "253:0", "/", ".", "auto", "off", "on", "inherit", "core", "disk", "sync",
	"nosync", "label", "force", "leg", "keep_log", "handle_errors", "custom",
	"00000000-0000-0000-0000-000000000000",
};

static void replace(char *at, size_t old, const char *with, size_t length, char *text)
{
	size_t tail = strlen(at + old) + 1;

	if ((size_t)(at - text) + length + tail > LONGEST)
		return;
	memmove(at + length, at + old, tail);
	memcpy(at, with, length);
}

static void mutate(char *text)
{
	size_t length, other_length, all = strlen(text);
	char *at = any_word(text, &length), *other, keep[LONGEST];
	const char *edge;

	switch (below(10)) {
	case 0:
		replace(at, length, "", 0, text);
		break;
	case 1:
		snprintf(keep, sizeof(keep), "%.*s ", (int)length, at);
		replace(at, 0, keep, strlen(keep), text);
		break;
	case 2:
		snprintf(keep, sizeof(keep), "%s", line[below(lines)]);
		other = any_word(keep, &other_length);
		replace(at, length, other, other_length, text);
		break;
	case 3:
	case 4:
		edge = edges[below(sizeof(edges) / sizeof(*edges))];
		replace(at, length, edge, strlen(edge), text);
		break;
	case 5:
		if (all)
			text[below(all)] ^= (char)(1 << below(8));
		break;
	case 6:
		if (all)
			replace(text + below(all), 1, "", 0, text);
		break;
	case 7:
		keep[0] = (char)(1 + below(255));
		replace(text + below(all + 1), 0, keep, 1, text);
		break;
	case 8:
		text[below(all + 1)] = 0;
		break;
	default:
		memset(keep, '0' + (int)below(10), sizeof(keep));
		replace(at, 0, keep, 1 + below(below(20) ? 30 : 3000), text);
	}
}

/* The first three words of a table line stay: they are not the target's. */
static void make_case(char *text, bool table)
{
	int keep = 0;

	snprintf(text, LONGEST, "%s", line[below(lines)]);
	if (table && (sscanf(text, "%*u %*u %*s %n", &keep) < 0 || !keep)) {
		fprintf(stderr, "not a table line: %s\n", text);
		exit(2);
	}
	for (uint64_t i = below(4); i--;)
		mutate(text + keep);
}

static void tell(int error)
{
	if (error)
		refused++, by_errno[error < 200 ? error : 199]++;
	else
		taken++;
}

/* --- device-mapper ----------------------------------------------------------- */

static int control;
static _Alignas(8) char room[SIZE];

static int ioctl_dm(unsigned long what, const char *name)
{
	struct dm_ioctl *dm = (void *)room;

	dm->version[0] = DM_VERSION_MAJOR;
	dm->data_size = SIZE;
	dm->data_start = sizeof(*dm);
	snprintf(dm->name, sizeof(dm->name), "%s", name);
	return ioctl(control, what, dm) ? errno : 0;
}

static int load(const char *name, const char *text)
{
	struct dm_ioctl *dm = (void *)room;
	struct dm_target_spec *spec = (void *)(room + sizeof(*dm));
	unsigned long long start = 0, length = 0;
	int at = 0;

	memset(room, 0, sizeof(room));
	if (sscanf(text, "%llu %llu %15s %n", &start, &length, spec->target_type, &at) < 3)
		die("%s", text);
	spec->sector_start = start;
	spec->length = length;
	strcpy((char *)(spec + 1), text + at);
	spec->next = (uint32_t)((sizeof(*spec) + strlen(text + at) + 8) & ~7UL);
	dm->target_count = 1;
	return ioctl_dm(DM_TABLE_LOAD, name);
}

/* --- labels ------------------------------------------------------------------- */

#define SLOT 4096
#define AT_CRC 12		/* in a slot; see module/core/label.h */
#define MOST_LABELS 4

static struct label {
	int fd;
	off_t at;
	char *was, *is;
} labels[MOST_LABELS];
static unsigned int nr_labels;

static void add_label(const char *path)
{
	struct label *l = &labels[nr_labels];

	if (nr_labels++ == MOST_LABELS) {
		fprintf(stderr, "more than %d times --label\n", MOST_LABELS);
		exit(2);
	}
	l->fd = open_direct(path, O_RDWR);
	l->at = (off_t)device_bytes(l->fd) - 2 * SLOT;
	l->was = buffer(2 * SLOT);
	l->is = buffer(2 * SLOT);
	if (pread(l->fd, l->was, 2 * SLOT, l->at) != 2 * SLOT)
		die("%s", path);
}

static void write_label(const struct label *l, const char *data)
{
	if (pwrite(l->fd, data, 2 * SLOT, l->at) != 2 * SLOT)
		die("a label");
}

static void put_crc(char *slot)
{
	uint32_t crc = ~0U;

	memset(slot + AT_CRC, 0, sizeof(crc));
	for (unsigned int i = 0; i < SLOT; i++) {
		crc ^= (unsigned char)slot[i];
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	crc = ~crc;
	for (unsigned int i = 0; i < sizeof(crc); i++)
		slot[AT_CRC + i] = (char)(crc >> 8 * i);
}

/* Mostly where a label says something: the rest of a slot is zeroes. */
static void flip_labels(void)
{
	for (struct label *l = labels; l < labels + nr_labels; l++) {
		memcpy(l->is, l->was, 2 * SLOT);
		for (uint64_t i = below(4); i--;)
			l->is[below(2) * SLOT + below(below(8) ? 280 : SLOT)] ^=
				(char)(1 << below(8));
		for (unsigned int slot = 0; slot < 2; slot++)
			if (below(2))
				put_crc(l->is + slot * SLOT);
		write_label(l, l->is);
	}
}

static void put_labels_back(void)
{
	for (unsigned int i = 0; i < nr_labels; i++)
		write_label(&labels[i], labels[i].was);
}

static void one_table(const char *name, const char *text)
{
	bool flip = nr_labels && below(2);
	int error;

	if (flip)
		flip_labels();
	error = load(name, text);
	tell(error);
	if (!error) {
		memset(room, 0, sizeof(room));
		if (every && taken % every == 0)
			ioctl_dm(DM_DEV_SUSPEND, name);	/* without the flag: a resume */
		memset(room, 0, sizeof(room));
		ioctl_dm(DM_TABLE_CLEAR, name);
	}
	put_labels_back();
}

/* --- what must not change ------------------------------------------------------- */

static void find_files(const char *dir)
{
	char path[LONGEST];
	struct dirent *e;
	struct stat st;
	DIR *d = opendir(dir);

	if (!d)
		die("%s", dir);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= LONGEST ||
		    lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			find_files(path);
		else if (st.st_mode & 0200 && files < MOST_FILES)
			file[files++] = strdup(path);
	}
	closedir(d);
}

static size_t content(const char *path, char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, LONGEST);

	if (n < 0)
		die("%s", path);
	close(fd);
	return (size_t)n;
}

/* The table line of a device, and all attributes that can be written. */
static size_t settings(const char *name, char *text, size_t size)
{
	const struct dm_ioctl *dm = (void *)room;
	size_t n;

	memset(room, 0, sizeof(room));
	((struct dm_ioctl *)room)->flags = DM_STATUS_TABLE_FLAG;
	if (ioctl_dm(DM_TABLE_STATUS, name))
		die("table of %s", name);
	n = (size_t)snprintf(text, size, "%s\n",
			     room + dm->data_start + sizeof(struct dm_target_spec));
	for (unsigned int i = 0; i < files; i++) {
		char value[LONGEST];
		int length = (int)content(file[i], value);

		n += (size_t)snprintf(text + n, size - n, "%s: %.*s", file[i], length, value);
		if (n >= size)
			die("too much to compare");
	}
	return n;
}

static char before[1 << 18], after[1 << 18];

static const char *first_difference(void)
{
	const char *b = before, *a = after, *line = after;

	for (; *a && *a == *b; a++, b++)
		if (*a == '\n')
			line = a + 1;
	return line;
}

/* What was taken may change anything; what was refused must change nothing. */
static void judge(const char *name, const char *text, int error)
{
	settings(name, after, sizeof(after));
	if (error && strcmp(before, after) && changed++ < 10) {
		const char *line = first_difference();

		fprintf(stderr, "'%s' was refused, and changed something: now %.*s\n", text,
			(int)strcspn(line, "\n"), line);
	}
	strcpy(before, after);
}

static void one_message(const char *name, const char *text)
{
	struct dm_target_msg *message = (void *)(room + sizeof(struct dm_ioctl));
	int error;

	memset(room, 0, sizeof(room));
	strcpy(message->message, text);
	error = ioctl_dm(DM_TARGET_MSG, name);
	tell(error);
	judge(name, text, error);
}

static void one_attribute(const char *name, const char *text)
{
	const char *path = file[below(files)];
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		die("%s", path);
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	tell(error);
	judge(name, text, error);
}

/* ----------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	void (*one)(const char *where, const char *text) = NULL;
	char text[LONGEST];

	if (argc >= 3 && !strcmp(argv[1], "table"))
		one = one_table;
	else if (argc >= 4 && !strcmp(argv[1], "message"))
		one = one_message;
	else if (argc >= 4 && !strcmp(argv[1], "attributes"))
		one = one_attribute;
	if (!one) {
		fprintf(stderr, "usage: fuzz table NAME | message NAME DIR | attributes NAME DIR [option...]\n");
		return 2;
	}
	for (int i = one == one_table ? 3 : 4; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--count"))
			count = number(argv[i + 1]);
		else if (!strcmp(argv[i], "--seed"))
			seed = number(argv[i + 1]);
		else if (!strcmp(argv[i], "--resume"))
			every = number(argv[i + 1]);
		else if (!strcmp(argv[i], "--label"))
			add_label(argv[i + 1]);
		else {
			fprintf(stderr, "%s: unknown option\n", argv[i]);
			return 2;
		}
	}
	random_state = mix(seed);
	read_lines();
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		die("/dev/mapper/control");
	if (one != one_table) {
		find_files(argv[3]);
		if (!files) {
			fprintf(stderr, "%s: nothing there can be written\n", argv[3]);
			return 2;
		}
		settings(argv[2], before, sizeof(before));
	}
	for (uint64_t i = 0; i < count; i++) {
		if (i && i % 5000 == 0)
			fprintf(stderr, "fuzz: %llu of %llu\n", (unsigned long long)i,
				(unsigned long long)count);
		make_case(text, one == one_table);
		one(argv[2], text);
	}
	printf("cases=%llu taken=%llu refused=%llu changed=%llu", (unsigned long long)count, taken,
	       refused, changed);
	for (int e = 1; e < 200; e++)
		if (by_errno[e])
			printf(" %s=%llu", strerrorname_np(e), by_errno[e]);
	printf("\n");
	return changed > 0;
}
