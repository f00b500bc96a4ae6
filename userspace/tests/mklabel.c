// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a label, or the log of a set, to a device that is a file (fake.c):
 *
 *	mklabel DEV KEY=NUMBER...	a label; masks of legs are decimal too, known is LEG:GENERATION:SESSION
 *	mklabel DEV log STAMP UUID
 *
 * UUID is the number of a set: the last byte of its UUID, of which all others are 0.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "labels.h"

static int make_log(const char *path, const char *stamp, const char *set)
{
	static const uint8_t header[16] = { 0x72, 0x52, 0x69, 0x4d, 2, 0, 0, 0, 16 };
	uint8_t uuid[HEDGE_UUID_BYTES] = { 0 };
	int fd, r;

	uuid[HEDGE_UUID_BYTES - 1] = atoi(set);
	if (stamp_write(path, 16, uuid, strtoull(stamp, NULL, 10)))
		return 1;
	fd = open(path, O_WRONLY);
	r = fd < 0 || pwrite(fd, header, sizeof(header), 0) != sizeof(header);
	if (fd >= 0)
		close(fd);
	return r;
}

/* LEG:GENERATION:SESSION: the last round that is known to be on it, and was sent to it. */
static void add_known(const char *text, struct hedge_label *label)
{
	unsigned long long generation, session;
	unsigned int leg;

	if (sscanf(text, "%u:%llu:%llu", &leg, &generation, &session) != 3 || leg >= HEDGE_MAX_LEGS)
		exit(2);
	label->known[leg].generation = label->sent[leg].generation = generation;
	label->known[leg].session = label->sent[leg].session = session;
}

int main(int argc, char **argv)
{
	struct hedge_label label = {
		.round = { 1, 1 }, .length = 2032, .region_size = 128, .nr_legs = 2, .in = 3,
	};

	label.uuid[HEDGE_UUID_BYTES - 1] = 1;
	if (argc == 5 && !strcmp(argv[2], "log"))
		return make_log(argv[1], argv[3], argv[4]);
	for (int i = 2; i < argc; i++) {
		const char *value = strchr(argv[i], '=');
		unsigned long long n = value ? strtoull(value + 1, NULL, 10) : 0;
		char key[16];

		snprintf(key, sizeof(key), "%.*s", (int)strcspn(argv[i], "="), argv[i]);
		if (!strcmp(key, "set"))
			label.uuid[HEDGE_UUID_BYTES - 1] = n;
		else if (!strcmp(key, "leg"))
			label.leg = n;
		else if (!strcmp(key, "legs"))
			label.nr_legs = n;
		else if (!strcmp(key, "gen"))
			label.round.generation = n;
		else if (!strcmp(key, "session"))
			label.round.session = n;
		else if (!strcmp(key, "in"))
			label.in = n;
		else if (!strcmp(key, "partial"))
			label.partial = n;
		else if (!strcmp(key, "length"))
			label.length = n;
		else if (!strcmp(key, "stamp"))
			label.log_stamp = n;
		else if (!strcmp(key, "known"))
			add_known(value + 1, &label);
		else
			return 2;
	}
	return label_write(argv[1], &label) ? 1 : 0;
}
