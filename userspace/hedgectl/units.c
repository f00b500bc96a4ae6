// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes and times, from text and to text. A number may have a decimal fraction, as long as the
 * result is whole: 1.5ms is 1500 us, 1.5us is refused. Everything is integer arithmetic, and what
 * does not fit in 64 bits is refused.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hedgectl.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = {
	{ "", 1 }, { "us", 1 }, { "ms", 1000 }, { "s", 1000000 }, { NULL, 0 },
};

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TIB (1ull << 40)
static const struct unit sizes[] = {
	{ "", 1 },
	{ "B", 1 },
	{ "s", SECTOR },
	{ "K", KIB },
	{ "M", MIB },
	{ "G", GIB },
	{ "T", TIB },
	{ "KiB", KIB },
	{ "MiB", MIB },
	{ "GiB", GIB },
	{ "TiB", TIB },
	{ "k", KIB },
	{ "m", MIB },
	{ "g", GIB },
	{ "t", TIB },
	{ NULL, 0 },
};

static const struct unit none[] = { { "", 1 }, { NULL, 0 } };

/* Adds one decimal digit; false when the result does not fit. */
static bool add_digit(uint64_t *value, char digit)
{
	return !__builtin_mul_overflow(*value, 10, value) &&
	       !__builtin_add_overflow(*value, digit - '0', value);
}

static int parse_scaled(const char *text, const struct unit *units, uint64_t *result)
{
	uint64_t whole = 0, fraction = 0, scale = 1;
	const char *p = text;

	if (!isdigit((unsigned char)*p))
		return -1;
	for (; isdigit((unsigned char)*p); p++)
		if (!add_digit(&whole, *p))
			return -1;
	if (*p == '.') {
		if (!isdigit((unsigned char)*++p))
			return -1;
		for (; isdigit((unsigned char)*p); p++)
			if (!add_digit(&fraction, *p) || __builtin_mul_overflow(scale, 10, &scale))
				return -1;
	}
	while (units->name && strcmp(units->name, p))
		units++;
	if (!units->name || __builtin_mul_overflow(whole, units->factor, &whole) ||
	    __builtin_mul_overflow(fraction, units->factor, &fraction) || fraction % scale)
		return -1;
	return __builtin_add_overflow(whole, fraction / scale, result) ? -1 : 0;
}

int parse_time_us(const char *text, uint64_t *us)
{
	return parse_scaled(text, times, us);
}

int parse_size(const char *text, uint64_t *bytes)
{
	return parse_scaled(text, sizes, bytes);
}

int parse_number(const char *text, uint64_t *value)
{
	return strchr(text, '.') ? -1 : parse_scaled(text, none, value);
}

/* Three digits are enough for a person: 950ns, 1.25ms, 20ms, 1.02s. */
const char *format_time(uint64_t ns, char *buffer, size_t size)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {
		{ 1e9, "s" },
		{ 1e6, "ms" },
		{ 1e3, "us" },
		{ 1, "ns" },
	};
	int i = 0;

	while (i < 3 && (double)ns < units[i].ns)
		i++;
	snprintf(buffer, size, "%.*g%s", (double)ns / units[i].ns >= 1000 ? 6 : 3,
		 (double)ns / units[i].ns, units[i].name);
	return buffer;
}

const char *format_size(uint64_t bytes, char *buffer, size_t size)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	int i = 0;

	while (value >= 1024 && i < 5) {
		value /= 1024;
		i++;
	}
	snprintf(buffer, size, value < 100 && i ? "%.3g %s" : "%.0f %s", value, names[i]);
	return buffer;
}

/* A span of time to wait for: 40 s, 12 min, 3 h 20 min. */
static void format_wait(double seconds, char *buffer, size_t size)
{
	if (seconds < 90)
		snprintf(buffer, size, "%.0f s", seconds);
	else if (seconds < 5400)
		snprintf(buffer, size, "%.0f min", seconds / 60);
	else
		snprintf(buffer, size, "%" PRIu64 " h %" PRIu64 " min",
			 (uint64_t)seconds / 3600, (uint64_t)seconds / 60 % 60);
}

/* A bar of what is done, and how long the rest takes at a rate of so much a second; 0: not known. */
char *format_progress(uint64_t done, uint64_t total, double rate)
{
	char bar[31], wait[40] = "the time left is not known yet";
	double share = total ? (double)done / (double)total : 1;
	int n = (int)(share * (sizeof(bar) - 1));

	memset(bar, '.', sizeof(bar) - 1);
	memset(bar, '=', n);
	bar[sizeof(bar) - 1] = '\0';
	if (done < total && rate > 0) {
		format_wait((double)(total - done) / rate, wait, sizeof(wait) - 6);
		strcat(wait, " left");
	}
	return xprintf("[%s] %5.1f %%%s%s", bar, 100 * share, done < total ? ", " : "",
		       done < total ? wait : "");
}
