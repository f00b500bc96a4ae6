// SPDX-License-Identifier: GPL-2.0
/*
 * The spellings of attributes on the command line: ATTR=VALUE, and leg:<i>.ATTR=VALUE or
 * leg:<device>.ATTR=VALUE for those of a leg. tau is another name of timeout_us. The unit of an
 * attribute is the end of its name, and its value may be given in another one: timeout_us=2ms,
 * max_copy_kb=1M. Words (auto, off, names) go to the kernel as they are: it is the one to judge
 * them.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"
#include "knobs.h"

struct attr {
	const char *name, *expected;
};

static const struct attr target_attrs[] = {
	{ "policy", "the name of a preset (hedgectl show lists them), fcfs-gr or edd-gr" },
	{ "copies", "1 to the number of legs" },
	{ "copies_to", "any or idle" },
	{ "cancel", "complete, start or none" },
	{ "timeout_us", "auto, off or a time of 1us to 100s (2ms)" },
	{ "timeout_from", "start or arrival" },
	{ "max_hedges", "0 to the number of legs - 1" },
	{ "hedge_to", "idle or any" },
	{ "hedge_depth", "0 (auto) to 4096 copies in flight" },
	{ "balance", "latency, jsq, llw, random or round-robin" },
	{ "choices", "0 (all legs) to the number of legs" },
	{ "queue_depth", "0 (no limit) to 4096 slots of a leg" },
	{ "budget_pct", "0 to 100 * (legs - 1)" },
	{ "rescue_us", "0 (off) or a time of up to 100s (100ms)" },
	{ "max_copy_kb", "a size of up to 1M (256K)" },
	{ "bounce_mb", "a size of 1M to 16G (32M)" },
	{ "queue", "shared or legs" },
	{ "order", "fcfs, edd or fut" },
	{ "replicate", "lpr, nr, nir or r" },
	{ "task_kb", "0 (whole reads) or a size of up to 1M (64K)" },
	{ "probe", "on or off" },
	{ "probe_kb", "a size of 1K to 1M (4K)" },
	{ "probe_priority", "0 or 1" },
	{ "due_us_rt", "0 or a time of up to 100s (1ms)" },
	{ "due_us_be", "0 or a time of up to 100s (10ms)" },
	{ "due_us_idle", "0 or a time of up to 100s (100ms)" },
	{ "sitout_pct", "0 (off) to 100000" },
	{ "sitout_s", "0 (off) to 3600 seconds" },
	{ NULL, NULL },
};

static const struct attr leg_attrs[] = {
	{ "weight", "0 (avoid) to 1000" },
	{ "hedge_weight", "0 (avoid) to 1000" },
	{ "timeout_us", "inherit, off or a time of 1us to 100s (2ms)" },
	{ NULL, NULL },
};

static const struct attr *attr_find(int leg, const char *name)
{
	const struct attr *attr = leg < 0 ? target_attrs : leg_attrs;

	if (!strcmp(name, "tau"))
		name = "timeout_us";
	while (attr->name && strcmp(attr->name, name))
		attr++;
	return attr->name ? attr : NULL;
}

const char *attr_expected(int leg, const char *name)
{
	const struct attr *attr = attr_find(leg, name);

	return attr ? attr->expected : NULL;
}

static void fail_unknown(int leg, const char *name)
{
	char *known = xstrdup("tau"), *longer;

	for (const struct attr *attr = leg < 0 ? target_attrs : leg_attrs; attr->name; attr++) {
		longer = xprintf("%s %s", known, attr->name);
		free(known);
		known = longer;
	}
	fail("there is no attribute \"%s\" of a %s; there are: %s", name,
	     leg < 0 ? "volume" : "leg", known);
	free(known);
}

/* Whether a policy sets it, whatever it was before. */
bool attr_in_policy(const char *name)
{
	int knob = hedge_knob_find(name);

	return knob >= HEDGE_POLICY_FIRST && knob <= HEDGE_POLICY_LAST;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && !strcmp(name + n - m, end);
}

/*
 * The value in the unit of the attribute; NULL if it can not be: not a number with a unit, or not
 * whole.
 */
static char *convert(const char *name, const char *text)
{
	uint64_t value, unit = 1;
	bool size = ends_in(name, "_kb") || ends_in(name, "_mb");

	if (!isdigit((unsigned char)*text))
		return xstrdup(text);
	if (!parse_number(text, &value))
		return xprintf("%" PRIu64, value);
	if (!size && !strstr(name, "_us"))
		return NULL;
	if (size ? parse_size(text, &value) : parse_time_us(text, &value))
		return NULL;
	if (size)
		unit = ends_in(name, "_kb") ? 1024 : 1024 * 1024;
	return value % unit ? NULL : xprintf("%" PRIu64, value / unit);
}

/*
 * Where the name of a leg ends: a device may have a . or = in its name, a value may have a ., an
 * attribute has neither.
 */
static const char *leg_end(const char *leg)
{
	const char *equals = strrchr(leg, '='), *end = equals;

	while (end && end > leg && *end != '.')
		end--;
	return end && *end == '.' ? end : NULL;
}

/* Takes "leg:<i>." or "leg:<device>." off the front. */
static int parse_leg(const char **text, struct assignment *assignment)
{
	const char *leg, *end;

	if (strncmp(*text, "leg:", 4))
		return 0;
	leg = *text + 4;
	end = leg_end(leg);
	if (end && end == leg + 1 && *leg >= '0' && *leg < '0' + MAX_LEGS) {
		assignment->leg = *leg - '0';
	} else if (end && (*leg == '/' || memchr(leg, ':', end - leg))) {
		assignment->leg = MAX_LEGS;
		assignment->device = xprintf("%.*s", (int)(end - leg), leg);
	} else {
		fail("\"%s\": expected leg:<number>.ATTR=VALUE, the number 0 to %d, or leg:/dev/<name>.ATTR=VALUE",
		     *text, MAX_LEGS - 1);
		return -1;
	}
	*text = end + 1;
	return 0;
}

static int parse(const char *text, struct assignment *assignment)
{
	const char *rest = text, *equals;
	const struct attr *attr;
	char *name;

	if (parse_leg(&rest, assignment))
		return -1;
	equals = strchr(rest, '=');
	if (!equals || equals == rest || !equals[1] || strpbrk(rest, " \t\n")) {
		fail("\"%s\": expected ATTR=VALUE, such as tau=2ms or leg:1.weight=50", text);
		return -1;
	}
	name = xprintf("%.*s", (int)(equals - rest), rest);
	attr = attr_find(assignment->leg, name);
	if (!attr)
		fail_unknown(assignment->leg, name);
	free(name);
	if (!attr)
		return -1;
	assignment->name = attr->name;
	assignment->value = convert(attr->name, equals + 1);
	if (assignment->value)
		return 0;
	fail("\"%s\": %s takes %s", text, attr->name, attr->expected);
	return -1;
}

int assignment_parse(const char *text, struct assignment *assignment)
{
	*assignment = (struct assignment){ .leg = -1 };
	if (!parse(text, assignment))
		return 0;
	assignment_free(assignment);
	return -1;
}

void assignment_free(struct assignment *assignment)
{
	free(assignment->value);
	free(assignment->device);
	assignment->value = assignment->device = NULL;
}

char *attr_current(const char *text)
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	if (close)
		return xprintf("%.*s", (int)(close - open - 1), open + 1);
	return xprintf("%.*s", (int)strcspn(text, "\n"), text);
}

static void print_attrs(const struct attr *attrs, const char *prefix)
{
	for (; attrs->name; attrs++) {
		char *name = xprintf("%s%s", prefix, attrs->name);

		printf("  %-22s %s\n", name, attrs->expected);
		free(name);
	}
}

void attr_help(void)
{
	printf("\nattributes:\n");
	print_attrs(target_attrs, "");
	print_attrs(leg_attrs, "leg:I.");
}
