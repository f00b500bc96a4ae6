// SPDX-License-Identifier: GPL-2.0
/*
 * /etc/hedgetab: the volumes that are assembled at boot, and the settings of volumes. A line has
 *
 *   <name> <source> [<setting>[,<setting>]...]
 *
 * The source is UUID=<uuid of the labels>, or "none" for a volume that something else makes. A setting
 * is spelt as for "hedgectl set", with target:<n>. before it if it is of one target only. They are
 * applied in their order. Among them _netdev says that the legs need the network, as in crypttab; it is for
 * what assembles at boot. Empty lines and lines that begin with # are kept as they are.
 *
 * A change rewrites the file beside it and renames it, under a lock on the directory: whoever reads it
 * finds the old file or the new one.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hedgetab.h"

const char *hedgetab_path(void)
{
	const char *path = getenv("HEDGETAB");

	return path && *path ? path : "/etc/hedgetab";
}

/* --- settings ---------------------------------------------------------------------- */

/* Takes "target:<n>." off the front; target is -1 without it. */
static int parse_target(const char **text, int *target)
{
	uint64_t value;
	char *number;
	size_t n;
	int r;

	*target = -1;
	if (strncmp(*text, "target:", 7))
		return 0;
	n = strcspn(*text + 7, ".");
	number = xprintf("%.*s", (int)n, *text + 7);
	r = (*text)[7 + n] != '.' || parse_number(number, &value) || value > 10000 ? -1 : 0;
	if (r)
		fail("\"%s\": expected target:<number>. before the setting", *text);
	free(number);
	if (r)
		return -1;
	*target = (int)value;
	*text += 8 + n;
	return 0;
}

static int add_setting(struct hedgetab_entry *entry, const char *text)
{
	struct setting *setting;

	entry->settings = xrealloc(entry->settings,
				   (entry->nr_settings + 1) * sizeof(*entry->settings));
	setting = &entry->settings[entry->nr_settings];
	if (parse_target(&text, &setting->target) || assignment_parse(text, &setting->a))
		return -1;
	if (setting->a.device) {
		fail("\"%s\": expected leg:<number>. here, for names of devices change", text);
		assignment_free(&setting->a);
		return -1;
	}
	if (strchr(setting->a.value, ',') || strchr(setting->a.value, '#')) {
		fail("\"%s\": a value with a comma or # can not be saved", text);
		assignment_free(&setting->a);
		return -1;
	}
	entry->nr_settings++;
	return 0;
}

static void drop_setting(struct hedgetab_entry *entry, int i)
{
	assignment_free(&entry->settings[i].a);
	entry->nr_settings--;
	memmove(&entry->settings[i], &entry->settings[i + 1],
		(entry->nr_settings - i) * sizeof(*entry->settings));
}

/* What a new setting makes meaningless: itself of before, and with a policy all that it sets. */
static bool replaces(const struct assignment *new, int target, const struct setting *old)
{
	if (target >= 0 && old->target != target)
		return false;
	if (new->leg != old->a.leg)
		return false;
	if (new->leg < 0 && !strcmp(new->name, "policy") && attr_in_policy(old->a.name))
		return true;
	return !strcmp(new->name, old->a.name);
}

void hedgetab_set(struct hedgetab_entry *entry, int target, const struct assignment *a)
{
	struct setting *setting;

	for (int i = entry->nr_settings - 1; i >= 0; i--)
		if (replaces(a, target, &entry->settings[i]))
			drop_setting(entry, i);
	entry->settings = xrealloc(entry->settings,
				   (entry->nr_settings + 1) * sizeof(*entry->settings));
	setting = &entry->settings[entry->nr_settings++];
	setting->target = target;
	setting->a = (struct assignment){ .leg = a->leg, .name = a->name, .value = xstrdup(a->value) };
}

/* --- reading ------------------------------------------------------------------------ */

static bool parse_entry(char *line, struct hedgetab_entry *entry)
{
	char *name = next_word(&line), *source = next_word(&line), *list = next_word(&line), *word;

	if (!name)
		return false;
	entry->name = xstrdup(name);
	if (!dm_name_valid(name)) {
		fail("\"%s\": not a name for a volume", name);
		return false;
	}
	if (!source || (strcmp(source, "none") && (strncmp(source, "UUID=", 5) || !source[5]))) {
		fail("%s: expected UUID=<uuid> or none after the name", name);
		return false;
	}
	entry->source = xstrdup(source);
	if (next_word(&line)) {
		fail("%s: expected three words: name, source, settings with commas between them",
		     name);
		return false;
	}
	while ((word = strsep(&list, ",")))
		if (!strcmp(word, "_netdev"))
			entry->netdev = true;
		else if (*word && add_setting(entry, word))
			return false;
	return true;
}

int hedgetab_parse(const char *text, struct hedgetab *tab)
{
	char *copy = xstrdup(text), *rest = copy, *line;
	int number = 0, r = 0;

	*tab = (struct hedgetab){ 0 };
	while (!r && (line = strsep(&rest, "\n"))) {
		struct hedgetab_entry *entry;

		number++;
		if (!rest && !*line)
			break;
		tab->entries = xrealloc(tab->entries, (tab->count + 1) * sizeof(*tab->entries));
		entry = &tab->entries[tab->count++];
		*entry = (struct hedgetab_entry){ 0 };
		for (char *c = line; *c; c++)
			if (*c == '\t')
				*c = ' ';
		if (!line[strspn(line, " ")] || line[strspn(line, " ")] == '#') {
			entry->comment = xstrdup(line);
			continue;
		}
		if (parse_entry(line, entry)) {
			for (int i = 0; i < tab->count - 1; i++)
				if (tab->entries[i].name &&
				    !strcmp(tab->entries[i].name, entry->name)) {
					fail("%s: it has two lines", entry->name);
					r = -1;
				}
		} else {
			r = -1;
		}
	}
	free(copy);
	if (r) {
		fail("%s: line %d is wrong", hedgetab_path(), number);
		hedgetab_free(tab);
	}
	return r;
}

/* A file that is not there is empty. */
int hedgetab_read(struct hedgetab *tab)
{
	char *text = sysfs_read_file(hedgetab_path(), NULL);
	int r;

	*tab = (struct hedgetab){ 0 };
	if (!text && errno == ENOENT)
		return 0;
	if (!text) {
		fail("%s: can not be read: %s", hedgetab_path(), strerror(errno));
		return -1;
	}
	r = hedgetab_parse(text, tab);
	free(text);
	return r;
}

void hedgetab_free(struct hedgetab *tab)
{
	for (int i = 0; i < tab->count; i++) {
		struct hedgetab_entry *entry = &tab->entries[i];

		while (entry->nr_settings)
			drop_setting(entry, entry->nr_settings - 1);
		free(entry->settings);
		free(entry->comment);
		free(entry->name);
		free(entry->source);
	}
	free(tab->entries);
	*tab = (struct hedgetab){ 0 };
}

struct hedgetab_entry *hedgetab_find(struct hedgetab *tab, const char *name)
{
	for (int i = 0; i < tab->count; i++)
		if (tab->entries[i].name && !strcmp(tab->entries[i].name, name))
			return &tab->entries[i];
	return NULL;
}

/* Its line, a new one at the end if it has none yet. */
struct hedgetab_entry *hedgetab_add(struct hedgetab *tab, const char *name, const char *source)
{
	struct hedgetab_entry *entry = hedgetab_find(tab, name);

	if (!entry) {
		tab->entries = xrealloc(tab->entries, (tab->count + 1) * sizeof(*tab->entries));
		entry = &tab->entries[tab->count++];
		*entry = (struct hedgetab_entry){ .name = xstrdup(name) };
	}
	free(entry->source);
	entry->source = xstrdup(source);
	return entry;
}

/* --- writing ------------------------------------------------------------------------- */

static void write_entry(FILE *file, const struct hedgetab_entry *entry)
{
	if (entry->comment) {
		fprintf(file, "%s\n", entry->comment);
		return;
	}
	fprintf(file, "%s %s%s", entry->name, entry->source, entry->netdev ? " _netdev" : "");
	for (int i = 0; i < entry->nr_settings; i++) {
		const struct setting *s = &entry->settings[i];

		putc(i || entry->netdev ? ',' : ' ', file);
		if (s->target >= 0)
			fprintf(file, "target:%d.", s->target);
		if (s->a.leg >= 0)
			fprintf(file, "leg:%d.", s->a.leg);
		fprintf(file, "%s=%s", s->a.name, s->a.value);
	}
	putc('\n', file);
}

char *hedgetab_format(const struct hedgetab *tab)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file) {
		fail("out of memory");
		exit(FAILED);
	}
	for (int i = 0; i < tab->count; i++)
		write_entry(file, &tab->entries[i]);
	fclose(file);
	return text;
}

/* Who may read and write it stays as it was; a new file may be read by all. */
static int copy_mode(const char *path, int fd)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT ? fchmod(fd, 0644) : -1;
	return fchown(fd, st.st_uid, st.st_gid) || fchmod(fd, st.st_mode & 07777) ? -1 : 0;
}

static int write_file(const char *path, const char *text)
{
	char *new = xprintf("%s.XXXXXX", path);
	int fd = mkstemp(new), r = -1;

	if (fd >= 0 && !copy_mode(path, fd) &&
	    write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !fsync(fd))
		r = rename(new, path);
	if (r)
		fail("%s: can not be written: %s", path, strerror(errno));
	if (r && fd >= 0)
		unlink(new);
	if (fd >= 0)
		close(fd);
	free(new);
	return r;
}

/* Where the file is: a link to it stays one. */
static char *real_path(void)
{
	char *path = realpath(hedgetab_path(), NULL);

	return path ? path : xstrdup(hedgetab_path());
}

int hedgetab_lock(void)
{
	char *copy = real_path();
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX)) {
		fail("%s: its directory can not be locked: %s", hedgetab_path(), strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	free(copy);
	return fd;
}

/* What is renamed is on the disk only when its directory is. */
int hedgetab_write(const struct hedgetab *tab, int lock)
{
	char *text = hedgetab_format(tab), *path = real_path();
	int r = write_file(path, text);

	if (!r && fsync(lock)) {
		fail("%s: can not be written: %s", hedgetab_path(), strerror(errno));
		r = -1;
	}
	free(path);
	free(text);
	return r;
}
