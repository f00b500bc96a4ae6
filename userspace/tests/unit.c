// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of what hedgectl does with text: units, attributes, the status and table lines, histograms, and
 * attributes read from a directory. They are linked with all of hedgectl but main.c.
 *
 * Each check prints a TAP line. The functions under test print what is wrong with their input to stderr, which the
 * caller of this program does not show unless a check fails.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hedgectl.h"
#include "event.h"
#include "hedgetab.h"
#include "histogram.h"
#include "law.h"
#include "metrics.h"
#include "page.h"
#include "rules.h"

static int passed, failed;

static void check(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void check(bool good, const char *format, ...)
{
	va_list list;

	printf("%sok %d - ", good ? "" : "not ", passed + failed + 1);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
	if (good)
		passed++;
	else
		failed++;
}

static void check_text(const char *got, const char *expected, const char *what)
{
	bool good = got && expected ? !strcmp(got, expected) : got == expected;

	check(good, "%s", what);
	if (!good)
		printf("# is '%s', expected '%s'\n", got ? got : "(null)", expected ? expected : "(null)");
}

static void check_u64(uint64_t got, uint64_t expected, const char *what)
{
	check(got == expected, "%s", what);
	if (got != expected)
		printf("# is %" PRIu64 ", expected %" PRIu64 "\n", got, expected);
}

#define BAD UINT64_MAX		/* the text must be refused */

static void test_parse(const char *kind, int (*parse)(const char *, uint64_t *), const char *text, uint64_t expected)
{
	char *what = xprintf("%s \"%s\"", kind, text);
	uint64_t value = BAD;

	if (parse(text, &value))
		value = BAD;
	check_u64(value, expected, what);
	free(what);
}

static void test_times(void)
{
	static const struct { const char *text; uint64_t us; } cases[] = {
		{ "0", 0 }, { "1", 1 }, { "2000", 2000 }, { "500us", 500 }, { "2ms", 2000 }, { "1s", 1000000 },
		{ "1.5ms", 1500 }, { "0.000001s", 1 }, { "1.500us", BAD }, { "2.0us", 2 },
		{ "18446744073709s", 18446744073709000000u }, { "18446744073710s", BAD },
		{ "18446744073709551616", BAD }, { "", BAD }, { "ms", BAD }, { "-1ms", BAD }, { "+1", BAD },
		{ " 1", BAD }, { "1 ms", BAD }, { "1ms ", BAD }, { "2m", BAD }, { "1.ms", BAD }, { ".5ms", BAD },
		{ "1.5", BAD }, { "1e3us", BAD }, { "0x10", BAD }, { "1,5ms", BAD }, { "1MS", BAD },
		{ "1.00000000000000000000s", BAD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		test_parse("time", parse_time_us, cases[i].text, cases[i].us);
}

static void test_sizes(void)
{
	static const struct { const char *text; uint64_t bytes; } cases[] = {
		{ "0", 0 }, { "512", 512 }, { "512B", 512 }, { "1024s", 524288 }, { "512K", 524288 }, { "512k", 524288 },
		{ "512KiB", 524288 }, { "1M", 1048576 }, { "1.5M", 1572864 }, { "2G", 2147483648 },
		{ "1T", 1099511627776 }, { "16777216T", BAD }, { "0.5", BAD }, { "0.3K", BAD }, { "1KB", BAD },
		{ "1P", BAD }, { "K", BAD }, { "", BAD }, { "-1K", BAD }, { "1 K", BAD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		test_parse("size", parse_size, cases[i].text, cases[i].bytes);
}

static void test_numbers(void)
{
	static const struct { const char *text; uint64_t value; } cases[] = {
		{ "0", 0 }, { "007", 7 }, { "18446744073709551614", UINT64_MAX - 1 }, { "1.0", BAD }, { "1s", BAD },
		{ "", BAD }, { "-0", BAD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		test_parse("number", parse_number, cases[i].text, cases[i].value);
}

static void test_format(void)
{
	static const struct { uint64_t ns; const char *text; } times[] = {
		{ 0, "0ns" }, { 950, "950ns" }, { 1000, "1us" }, { 1024, "1.02us" }, { 2000000, "2ms" },
		{ 1250000, "1.25ms" }, { 20000000, "20ms" }, { 1500000000, "1.5s" }, { 100000000000, "100s" },
		{ 3600000000000, "3600s" },
	};
	static const struct { uint64_t bytes; const char *text; } sizes[] = {
		{ 0, "0 B" }, { 512, "512 B" }, { 1024, "1 KiB" }, { 524288, "512 KiB" }, { 1610612736, "1.5 GiB" },
		{ 1073741824, "1 GiB" }, { 1099511627776, "1 TiB" },
	};
	char buffer[32];

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		check_text(format_time(times[i].ns, buffer, sizeof(buffer)), times[i].text, times[i].text);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_text(format_size(sizes[i].bytes, buffer, sizeof(buffer)), sizes[i].text, sizes[i].text);
}

/* "<leg> <name> <value>" of what was parsed, or NULL; for the caller to free. */
static char *assignment_text(const char *text)
{
	struct assignment a;
	char *result;

	if (assignment_parse(text, &a))
		return NULL;
	result = xprintf("%d%s%s %s %s", a.leg, a.device ? " " : "", a.device ? a.device : "", a.name, a.value);
	assignment_free(&a);
	return result;
}

static void test_assignments(void)
{
	static const struct { const char *text, *result; } cases[] = {
		{ "tau=2ms", "-1 timeout_us 2000" }, { "tau=auto", "-1 timeout_us auto" },
		{ "tau=off", "-1 timeout_us off" }, { "timeout_us=500us", "-1 timeout_us 500" },
		{ "timeout_us=2000", "-1 timeout_us 2000" }, { "rescue_us=0.1s", "-1 rescue_us 100000" },
		{ "leg:1.tau=inherit", "1 timeout_us inherit" }, { "leg:0.weight=50", "0 weight 50" },
		{ "leg:7.hedge_weight=0", "7 hedge_weight 0" }, { "policy=fcfs-lpr", "-1 policy fcfs-lpr" },
		{ "max_copy_kb=1M", "-1 max_copy_kb 1024" }, { "max_copy_kb=64", "-1 max_copy_kb 64" },
		{ "bounce_mb=1G", "-1 bounce_mb 1024" }, { "copies=02", "-1 copies 2" },
		{ "copies=-1", "-1 copies -1" },	/* the kernel judges what is no number */
		{ "copies=2ms", NULL }, { "bounce_mb=1K", NULL }, { "tau=2KiB", NULL }, { "tau=1.5us", NULL },
		{ "tau=", NULL }, { "=1", NULL }, { "tau", NULL }, { "", NULL }, { "nonsense=1", NULL },
		{ "leg:8.weight=1", NULL }, { "leg:x.weight=1", NULL }, { "leg:1weight=1", NULL }, { "leg:=1", NULL },
		{ "leg:1.=1", NULL }, { "leg:1.policy=rnd", NULL }, { "weight=1", NULL }, { "policy=rnd jsq", NULL },
		{ "leg:", NULL }, { "leg:/dev/sdb.weight=5", "8 /dev/sdb weight 5" },
		{ "leg:/dev/a.b=c.d.tau=1.5s", "8 /dev/a.b=c.d timeout_us 1500000" }, { "leg:/dev/a.b=c.d.tau=2s", "8 /dev/a.b=c.d timeout_us 2000000" },
		{ "leg:7:0.weight=0", "8 7:0 weight 0" }, { "leg:/dev/sdb.policy=rnd", NULL }, { "leg:/dev/sdb=1", NULL },
		{ "leg:sdb.weight=1", NULL }, { "leg:/dev/sdb.weight", NULL }, { "leg:10.weight=1", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *result = assignment_text(cases[i].text), *what = xprintf("assignment \"%s\"", cases[i].text);

		check_text(result, cases[i].result, what);
		free(result);
		free(what);
	}
}

static void test_current(void)
{
	static const struct { const char *text, *current; } cases[] = {
		{ "rnd [jsq] slb\n", "jsq" }, { "[custom]", "custom" }, { "2000\n", "2000" }, { "", "" },
		{ "broken [one", "broken [one" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *current = attr_current(cases[i].text);

		check_text(current, cases[i].current, "the word in brackets");
		free(current);
	}
}

#define FIELDS "24 policy slb tau_us 2000 reads 10 extra 1 hedged 1 won 1 wasted 0 cancelled 0 rescued 0 unhedged 2 " \
	       "held 0 oldest_us 7"

static void test_status(void)
{
	struct status s;
	uint64_t value;
	int r;

	r = status_parse("2 253:0 253:1 2048/4096 1 AD 1 core " FIELDS, &s);
	check(!r, "status with a core log");
	if (!r) {
		check_u64(s.nr_legs, 2, "its legs");
		check_text(s.devices[1], "253:1", "its second leg");
		check_u64(s.in_sync, 2048, "its regions in sync");
		check_u64(s.regions, 4096, "its regions");
		check_text(s.health, "AD", "its health");
		check_text(s.log, "core", "its log");
		check_text(kv_get(&s.fields, "policy"), "slb", "its policy");
		check(kv_number(&s.fields, "oldest_us", &value) && value == 7, "its last field");
		check(!kv_get(&s.fields, "nothing"), "a field that is not there");
		status_free(&s);
	}
	r = status_parse("3 8:0 8:16 8:32 1/1 1 AAA 3 disk 8:48 A 4 policy rnd later 1\n", &s);
	check(!r, "status with a disk log and a field of a later version");
	if (!r) {
		check_text(s.log, "disk 8:48 A", "its log");
		check_text(kv_get(&s.fields, "later"), "1", "the later field");
		status_free(&s);
	}
}

static void test_mirror_status(void)
{
	struct status s;

	if (status_parse("2 1:0 254:0 31/32 1 AD 3 disk 1:2 A", &s)) {
		check(false, "status of a mirror");
		return;
	}
	check(s.nr_legs == 2 && s.in_sync == 31 && s.regions == 32, "status of a mirror: regions");
	check(!strcmp(s.health, "AD") && !strcmp(s.log, "disk 1:2 A"), "status of a mirror: health and log");
	check(!s.fields.count, "status of a mirror: no fields");
	status_free(&s);
}

static void test_bad_status(void)
{
	static const char *const lines[] = {
		"", " ", "x", "2", "2 253:0", "9 a b c d e f g h i 1/1 1 AAAAAAAAA 1 core 0",
		"2 253:0 253:1 20484096 1 AA 1 core 0", "2 253:0 253:1 1/x 1 AA 1 core 0",
		"2 253:0 253:1 1/1 2 AA 1 core 0", "2 253:0 253:1 1/1 1 A 1 core 0", "2 253:0 253:1 1/1 1 AAA 1 core 0",
		"2 253:0 253:1 1/1 1", "2 253:0 253:1 1/1 1 AA", "2 253:0 253:1 1/1 1 AA 2 core",
		"2 253:0 253:1 1/1 1 AA 0 2 a b",
		"2 253:0 253:1 1/1 1 AA 1 core 3 policy rnd tau_us", "2 253:0 253:1 1/1 1 AA 1 core 4 policy rnd tau_us",
		"-2 253:0 253:1 1/1 1 AA 1 core 0",
	};
	struct status s;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check(status_parse(lines[i], &s), "bad status \"%s\"", lines[i]);
}

static void test_table_line(const char *line)
{
	struct table t;
	char *again = NULL;

	if (!table_parse(line, &t)) {
		again = table_format(&t);
		table_free(&t);
	}
	check_text(again, line, "a table line is the same when read and written");
	free(again);
}

static void test_tables(void)
{
	static const char *const bad[] = {
		"", "core", "core 0 2", "core 1", "core 3 1 nosync x 2", "flat 1 1024 2 8:0 0 8:16 0", "core 1 big 2 8:0 0 8:16 0",
		"disk 1 1024 2 8:0 0 8:16 0", "core 1 1024 2 8:0 0", "core 1 1024 2 8:0 0 8:16", "core 1 1024 9 a 0 b 0",
		"core 1 1024 2 8:0 0 8:16 0 2 policy", "core 1 1024 2 8:0 x 8:16 0",
	};
	struct table t;
	char *line;

	test_table_line("core 2 1024 nosync 2 8:0 0 8:16 0");
	test_table_line("core 1 1024 2 8:0 0 8:16 2048");
	test_table_line("disk 3 8:32 1024 nosync 3 8:0 0 8:16 0 8:48 8 1 handle_errors");
	test_table_line("core 2 64 sync 2 8:0 0 8:16 0 8 policy coc copies 2 leg 1 weight 50");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(table_parse(bad[i], &t), "bad table \"%s\"", bad[i]);
	t = (struct table){ .log_type = xstrdup("core"), .region_sectors = 8, .nr_legs = 1 };
	t.legs[0].device = xstrdup("8:0");
	table_add_feature(&t, "policy %s", "rnd");
	table_add_feature(&t, "leg %d weight %d", 1, 50);
	line = table_format(&t);
	check_text(line, "core 1 8 1 8:0 0 6 policy rnd leg 1 weight 50", "features are counted in words");
	free(line);
	table_free(&t);
}

#define HISTOGRAM "# reads up to 16 KiB\n1024 5\n1152 0\n2048 4\n\n# reads up to 64 KiB\n# larger reads\n0 1\n1048576 1\n"

static void test_histogram(void)
{
	struct histogram sum = { 0 }, rows;
	struct histograms h;

	if (histograms_parse(HISTOGRAM, &h)) {
		check(false, "a histogram");
		return;
	}
	check_u64(h.count, 3, "its size classes");
	check_text(h.classes[0].name, "reads up to 16 KiB", "its first heading");
	check_u64(h.classes[0].total, 9, "its reads");
	check_u64(h.classes[0].buckets[0].to, 1152, "a bucket ends where the next begins");
	check_u64(histogram_percentile(&h.classes[0], 50), 1152, "its median");
	check_u64(histogram_percentile(&h.classes[0], 99), 2304, "its p99");
	check_u64(histogram_percentile(&h.classes[0], 100), 2304, "its largest");
	check_u64(histogram_percentile(&h.classes[1], 50), 0, "the median of nothing");
	check_u64(histogram_percentile(&h.classes[2], 50), 1024, "what is too short to tell");
	for (int i = 0; i < h.count; i++)
		histogram_merge(&sum, &h.classes[i]);
	check_u64(sum.total, 11, "the sum of the classes");
	check_u64(histogram_percentile(&sum, 100), 1048576 + 131072, "its largest");
	histogram_rows(&sum, &rows);
	check_u64(rows.total, 11, "rows leave nothing out");
	check_u64(rows.buckets[0].to, 1000, "the first row");
	check_u64(rows.buckets[1].from, 1000, "the second row begins");
	check_u64(rows.buckets[1].to, 2000, "the second row ends");
	check_u64(rows.buckets[1].count, 5, "the second row has");
	check_u64(rows.buckets[rows.count - 1].from, 1000000, "the last row");
	histogram_free(&rows);
	histogram_free(&sum);
	histograms_free(&h);
}

/* The buckets that so many copies of a law fill, if they are as the law says; times are in us. */
static void law_histogram(const char *text, uint64_t copies, struct histogram *h)
{
	struct histogram all = { 0 };
	struct law law;
	char error[256];

	*h = all;
	if (law_parse(&law, text, error, sizeof(error)))
		return;
	for (unsigned int i = 0; i < HEDGE_HIST_BUCKETS - 1; i++) {
		double from = law_tail(&law, (double)hedge_hist_lower(i) / 1e3);
		double to = law_tail(&law, (double)hedge_hist_lower(i + 1) / 1e3);
		struct bucket bucket = { hedge_hist_lower(i), hedge_hist_lower(i + 1),
					 (uint64_t)llround((double)copies * (from - to)) };
		struct histogram one = { .count = 1, .room = 1, .buckets = &bucket,
					 .total = bucket.count };

		if (bucket.count)
			histogram_merge(h, &one);
	}
	law_free(&law);
}

static void test_new_worse(void)
{
	static const struct {
		const char *law;
		uint64_t copies;
		bool worse;
	} tests[] = {
		{ "exp:200", 100000, true }, { "hyperexp:0.95,100,2000", 100000, true },
		{ "lomax:2.2,200", 100000, true }, { "weibull:0.5,200", 100000, true },
		{ "exp:200", 499, false }, { "erlang:4,50", 100000, false },
		{ "uniform:100,300", 100000, false }, { "bimodal:100,10000,0.99", 100000, false },
		{ "shiftexp:100,300", 100000, false }, { "pareto:1.5,100", 100000, false },
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct histogram h;

		law_histogram(tests[i].law, tests[i].copies, &h);
		check(h.total && histogram_new_worse(&h) == tests[i].worse, "%s is %snew-worse-than-used",
		      tests[i].law, tests[i].worse ? "" : "not ");
		histogram_free(&h);
	}
	check(policy_is_group("edd-gr") && policy_is_group("fcfs-gr") && !policy_is_group("fcfs-r") &&
	      !policy_is_group("fut-gr"), "policies for groups");
}

/* Bounds as the module computes them: no bucket is wider than an eighth, and each ends where the next begins. */
static void test_buckets(void)
{
	char *text = xstrdup("all\n0 1\n"), *longer;
	struct histograms h;
	bool adjacent = true;

	for (uint64_t octave = 1024; octave < 1ull << 37; octave *= 2) {
		for (uint64_t sub = 0; sub < 8; sub++) {
			longer = xprintf("%s%" PRIu64 " 1\n", text, octave + octave / 8 * sub);
			free(text);
			text = longer;
		}
	}
	if (histograms_parse(text, &h)) {
		check(false, "a histogram of all buckets");
	} else {
		for (int i = 1; i < h.classes[0].count; i++)
			adjacent &= h.classes[0].buckets[i - 1].to == h.classes[0].buckets[i].from;
		check(adjacent, "all buckets end where the next begins");
		histograms_free(&h);
	}
	free(text);
}

static void test_bad_histograms(void)
{
	static const char *const bad[] = { "1024 5\n", "all\n1024\n", "all\n1024 x\n", "all\n1024 1 1\n", "all\n2048 1\n1024 1\n",
					   "all\n1024 1\n1024 1\n", "all\n1024 99999999999999999999\n" };
	struct histograms h;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(histograms_parse(bad[i], &h), "bad histogram %zu", i);
	check(!histograms_parse("", &h) && !h.count, "an empty histogram");
	histograms_free(&h);
}

static void check_near(double got, double expected, const char *what)
{
	bool good = fabs(got - expected) <= 1e-6 * fabs(expected) || got == expected;

	check(good, "%s", what);
	if (!good)
		printf("# is %g, expected %g\n", got, expected);
}

/* Of 1000 copies 990 take 1049 to 1180 us and 10 take 134 to 151 ms, on a leg; another has too few to count. */
static void test_rules(void)
{
	static const struct { const char *text; bool good; } words[] = {
		{ "load", true }, { "percentile", true }, { "percentile:99.9", true }, { "knee", true },
		{ "quantile:50", true }, { "load:5", false }, { "knee:1", false }, { "percentile:100", false },
		{ "percentile:0", false }, { "quantile:x", false }, { "quantile:", false }, { "", false },
		{ "loads", false }, { "l", false }, { "percentile:9,9", false },
	};
	const double fast = 1114.112, slow = 142606.336, mean = 0.99 * fast + 0.01 * slow;
	struct leg_data legs[2] = { { .leg = 0 }, { .leg = 1 } };
	struct leg_set set = { 2, legs };
	struct pool pool;
	struct rule rule;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		check(!rule_parse(words[i].text, &rule) == words[i].good, "rule \"%s\"", words[i].text);
	histograms_parse("a\n1048576 990\n134217728 10\nb\n", &legs[0].classes);
	histograms_parse("a\n134217728 99\n", &legs[1].classes);
	check_u64(rules_pool(&set, 0, &pool), 1, "legs with enough copies");
	check_near(rules_load(&pool, INFINITY), 1, "the work without a timeout");
	check_near(rules_load(&pool, 1180), (0.99 * fast + 0.01 * (1180 + mean)) / mean, "the work with one");
	rule_parse("load", &rule);
	check_near(rules_tau(&rule, &pool, 0.1), ceil(1179648 / 1e3), "rule load");
	rule_parse("percentile:99.5", &rule);
	check_near(rules_tau(&rule, &pool, 0.1), ceil(134217.728 + 16777.216 / 2), "rule percentile");
	rule_parse("knee", &rule);
	check_near(rules_tau(&rule, &pool, 0.1), INFINITY, "rule knee: p97 is in the first bucket");
	rule_parse("quantile:99.9", &rule);
	check(rules_quantile(&pool, rules_tau(&rule, &pool, 0.1), 0.1, 0.999) < 2400, "rule quantile");
	check_near(rules_hedged(&pool, 1200, 0.1), 0.01, "hedged");
	check_near(rules_hedged(&pool, 1200, 0.005), 0.005, "hedged, as the budget allows");
	check(rules_quantile(&pool, 1200, 0.005, 0.999) > 134217, "half of the slow reads are not hedged");
	pool_free(&pool);
	check_u64(rules_pool(&set, 1, &pool), 0, "no leg of another target");
	histograms_free(&legs[0].classes);
	histograms_free(&legs[1].classes);
}

static void test_votes(void)
{
	static const struct { double wanted, current; bool act; } readings[] = {
		{ 200, 100, false }, { 200, 100, false }, { 200, 100, true },	/* three agree */
		{ 200, 200, false },
		{ 400, 200, false }, { 50, 200, false }, { 400, 200, false }, { 50, 200, false },	/* to and fro */
		{ 400, 200, false }, { 400, 200, false }, { 210, 200, false },	/* a disturbance that goes */
		{ 400, 200, false }, { 400, 200, false }, { 300, 200, true },
		{ 240, 200, false }, { 240, 200, false }, { 240, 200, false }, { 240, 200, false },	/* near enough */
		{ INFINITY, 200, false }, { INFINITY, 200, false }, { INFINITY, 200, true },	/* it goes */
		{ INFINITY, INFINITY, false }, { INFINITY, INFINITY, false }, { INFINITY, INFINITY, false },
		{ 200, INFINITY, false }, { 300, INFINITY, false }, { 100, INFINITY, true },	/* it appears */
	};
	struct rule_votes votes = { 0 };

	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++)
		check(rules_vote(&votes, readings[i].wanted, readings[i].current) == readings[i].act,
		      "reading %zu: wants %g where %g is", i, readings[i].wanted, readings[i].current);
}

static void test_subtract(void)
{
	struct histogram now = { 0 };
	struct histograms a, b;

	histograms_parse("x\n1024 5\n2048 4\n", &a);
	histograms_parse("x\n1024 2\n1152 0\n2048 4\n", &b);
	histogram_merge(&now, &a.classes[0]);
	check(histogram_subtract(&now, &b.classes[0]), "what was counted since");
	check_u64(now.total, 3, "its total");
	check_u64(now.buckets[1].count, 0, "nothing new in a bucket");
	check(!histogram_subtract(&now, &b.classes[0]), "counters that went back");
	histogram_free(&now);
	histograms_free(&a);
	histograms_free(&b);
}

/* What the text becomes after settings of vol0 are changed; each is "<target> <assignment>". */
static void test_hedgetab_change(const char *before, const char *const *changes, const char *after)
{
	struct hedgetab_entry *entry;
	struct hedgetab tab;
	struct assignment a;
	char *text;

	if (hedgetab_parse(before, &tab)) {
		check(false, "hedgetab before \"%s\"", changes[0]);
		return;
	}
	entry = hedgetab_add(&tab, "vol0", "UUID=1-2");
	for (; *changes; changes++) {
		assignment_parse(*changes + 3, &a);
		hedgetab_set(entry, atoi(*changes), &a);
		assignment_free(&a);
	}
	text = hedgetab_format(&tab);
	check_text(text, after, "hedgetab");
	free(text);
	hedgetab_free(&tab);
}

/* A file behind a link, that not all may read, is still that when it was written. */
static void test_hedgetab_file(void)
{
	char dir[] = "/tmp/hedgetab.XXXXXX", *file, *link;
	struct hedgetab tab = { 0 };
	struct stat st;
	int lock;

	if (!mkdtemp(dir)) {
		check(false, "a directory for hedgetab");
		return;
	}
	file = xprintf("%s/file", dir);
	link = xprintf("%s/link", dir);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	check(!symlink("file", link), "a link to a file");
	setenv("HEDGETAB", link, 1);
	lock = hedgetab_lock();
	hedgetab_add(&tab, "vol0", "none");
	check(lock >= 0 && !hedgetab_write(&tab, lock), "hedgetab is written");
	check(!lstat(link, &st) && S_ISLNK(st.st_mode), "the link is one still");
	check(!stat(file, &st) && st.st_size == 10, "the file behind it was written");
	check_u64(st.st_mode & 0777, 0600, "and has the mode that it had");
	close(lock);
	unsetenv("HEDGETAB");
	hedgetab_free(&tab);
	unlink(link);
	unlink(file);
	rmdir(dir);
	free(file);
	free(link);
}

static void test_hedgetab(void)
{
	static const char *const bad[] = {
		"vol0\n", "vol0 UUID=\n", "vol0 /dev/sda\n", "a/b none\n", "vol0 none nonsense=1\n", "vol0 none tau\n",
		"vol0 none tau=2ms x\n", "vol0 none\nvol0 none\n", "vol0 none target:x.copies=1\n",
		"vol0 none target:1copies=1\n", "vol0 none target:.copies=1\n", "vol0 none leg:9.weight=1\n",
		"vol0 _netdev\n", "vol0 none _netdev=1\n", "vol0 none netdev\n",
	};
	struct hedgetab tab;

	test_hedgetab_change("", (const char *const[]){ "-1 tau=2ms", NULL }, "vol0 UUID=1-2 timeout_us=2000\n");
	test_hedgetab_change("# a\n\nvol1\tnone\n  vol0 none copies=2,tau=1ms\n#b",
			     (const char *const[]){ "-1 tau=2ms", "-1 leg:1.weight=5", NULL },
			     "# a\n\nvol1 none\nvol0 UUID=1-2 copies=2,timeout_us=2000,leg:1.weight=5\n#b\n");
	test_hedgetab_change("vol0 none tau=1ms,budget_pct=5,copies=2,leg:0.tau=3ms\n",
			     (const char *const[]){ "-1 policy=coc", NULL },
			     "vol0 UUID=1-2 budget_pct=5,leg:0.timeout_us=3000,policy=coc\n");
	test_hedgetab_change("vol0 none tau=1ms,target:1.tau=2ms\n", (const char *const[]){ " 1 tau=3ms", NULL },
			     "vol0 UUID=1-2 timeout_us=1000,target:1.timeout_us=3000\n");
	test_hedgetab_change("vol0 none tau=1ms,target:1.tau=2ms\n", (const char *const[]){ "-1 tau=3ms", NULL },
			     "vol0 UUID=1-2 timeout_us=3000\n");
	test_hedgetab_change("vol0 none tau=1ms,_netdev\nvol1 none _netdev",
			     (const char *const[]){ "-1 copies=2", NULL },
			     "vol0 UUID=1-2 _netdev,timeout_us=1000,copies=2\nvol1 none _netdev\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(hedgetab_parse(bad[i], &tab), "bad hedgetab %zu", i);
}

static void note_event(const struct event *event, void *context)
{
	char **seen = context;
	char *longer = xprintf("%s%s:%d ", *seen, event->name, event->leg);

	free(*seen);
	*seen = longer;
}

/* health, masks in hexadecimal, held, the log if on disk: what a volume with two legs was, then what it is. */
static void test_events(void)
{
	static const struct { const char *before, *now, *events; } cases[] = {
		{ NULL, "AA 0 0 0", "" },
		{ NULL, "DA 2 0 3", "leg-out:0 leg-sitting:1 writes-held:-1 " },
		{ "AA 0 0 0", "AA 0 0 0", "" },
		{ "AA 0 0 0", "AF 0 0 0", "leg-out:1 " },
		{ "DA 0 0 0", "FA 0 0 0", "" },
		{ "DA 0 0 0", "AA 0 0 0", "leg-back:0 " },
		{ "AA 0 0 0", "AR 0 0 0", "leg-error:1 " },
		{ "AA 0 0 0", "AA 0 3 0", "leg-stalled:0 leg-stalled:1 " },
		{ "AA 0 3 0", "AA 0 2 0", "leg-answers:0 " },
		{ "AA 1 0 0", "AA 0 0 0", "leg-returns:0 " },
		{ "AA 0 0 4", "AA 0 0 9", "" },
		{ "AA 0 0 4", "AA 0 0 0", "writes-go-on:-1 " },
		{ "AA 0 0 0 A", "AA 0 0 0 A", "" },
		{ NULL, "AA 0 0 0 F", "log-failed:-1 " },
		{ "AA 0 0 0 A", "AA 0 0 0 D", "log-failed:-1 " },
		{ "AA 0 0 0 D", "AA 0 0 0 F", "" },
		{ "AA 0 0 0 F", "AA 0 0 0 A", "log-back:-1 " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *texts[2] = { cases[i].before, cases[i].now };
		char *seen = xstrdup("");
		struct sample samples[2] = { 0 };

		for (int j = 0; j < 2; j++) {
			char health[3], sitting[4], stalled[4], held[4], log[2] = "", *line;
			struct target target = { 0 };
			struct volume volume = { .name = "v", .uuid = "", .major = 253, .nr_targets = 1, .targets = &target };

			if (!texts[j] || sscanf(texts[j], "%2s %3s %3s %3s %1s", health, sitting, stalled, held, log) < 4)
				continue;
			line = xprintf("2 4095:0 4095:1 4/4 1 %s %s%s 6 sitting %s stalled %s held %s", health,
				       *log ? "3 disk 4095:2 " : "1 core", log, sitting, stalled, held);
			target.status = line;
			sample_read(&volume, &target, "/nowhere", j + 1, &samples[j]);
			free(line);
		}
		events_between(texts[0] ? &samples[0] : NULL, &samples[1], note_event, &seen);
		check_text(seen, cases[i].events, "events");
		free(seen);
		sample_free(&samples[0]);
		sample_free(&samples[1]);
	}
}

static void test_progress(void)
{
	static const struct { uint64_t done, total; double rate; const char *text; } cases[] = {
		{ 0, 100, 0, "[..............................]   0.0 %, the time left is not known yet" },
		{ 50, 100, 2, "[===============...............]  50.0 %, 25 s left" },
		{ 99, 100, 0.001, "[=============================.]  99.0 %, 17 min left" },
		{ 0, 36000, 3, "[..............................]   0.0 %, 3 h 20 min left" },
		{ 100, 100, 5, "[==============================] 100.0 %" },
		{ 0, 0, 5, "[==============================] 100.0 %" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = format_progress(cases[i].done, cases[i].total, cases[i].rate);

		check_text(text, cases[i].text, "progress");
		free(text);
	}
}

static void write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
	char *path = xprintf("%s/%s", dir, name);
	FILE *file = fopen(path, "w");

	if (file) {
		fputs(text, file);
		fclose(file);
	}
	chmod(path, mode);
	free(path);
}

static void make_dir(const char *dir, const char *name)
{
	char *path = xprintf("%s/%s", dir, name);

	mkdir(path, 0755);
	free(path);
}

static void test_tree(void)
{
	char dir[] = "/tmp/hedgectl-unit-XXXXXX", *command;
	struct assignment a = { .leg = -1, .name = "copies", .value = "2" };
	struct assignment missing = { .leg = 0, .name = "copies", .value = "2" };
	struct kv_list list;

	if (!mkdtemp(dir)) {
		check(false, "a directory for attributes");
		return;
	}
	make_dir(dir, "legs");
	make_dir(dir, "legs/10");
	make_dir(dir, "legs/2");
	write_file(dir, "policy", "rnd [jsq]\n", 0644);
	write_file(dir, "copies", "1\n", 0644);
	write_file(dir, "tau_us", "0\n", 0444);
	write_file(dir, "legs/2/weight", "100\n", 0644);
	write_file(dir, "legs/10/weight", "50\n", 0644);
	write_file(dir, "legs/2/histogram", "all\n", 0444);
	check(!sysfs_read_tree(dir, &list), "a tree of attributes");
	check_u64(list.count, 5, "its size, without histograms");
	check_text(kv_get(&list, "policy"), "rnd [jsq]", "an attribute without its line end");
	check_text(kv_get(&list, "legs/10/weight"), "50", "an attribute of a leg");
	check_text(list.items[1].name, "legs/2/weight", "legs are in the order of their numbers");
	check(list.items[0].writable && !list.items[4].writable, "which attributes can be set");
	kv_free(&list);
	check(!sysfs_write(dir, &a), "an attribute is written");
	check(sysfs_write(dir, &missing), "an attribute that is not there is not");
	sysfs_read_tree(dir, &list);
	check(kv_get(&list, "copies") && kv_get(&list, "copies")[0] == '2', "what was written is read");
	kv_free(&list);
	command = xprintf("rm -r %s", dir);
	check(!system(command), "the directory is removed");
	free(command);
	check(sysfs_read_tree(dir, &list) && !list.count, "a tree that is not there");
}

static void test_names(void)
{
	static const char *const good[] = { "vol0", "a.b-c_d+e@f:g=h#", "0" };
	static const char *const bad[] = { "", "-vol", ".vol", "a b", "a/b", "a\\b", "a\n", "v\xc3\xb6l" };
	char name[129];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		check(dm_name_valid(good[i]), "good name \"%s\"", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(!dm_name_valid(bad[i]), "bad name %zu", i);
	memset(name, 'x', 128);
	name[128] = '\0';
	check(!dm_name_valid(name), "a name of 128 characters is too long");
	name[127] = '\0';
	check(dm_name_valid(name), "a name of 127 characters is not");
}

static void test_json(void)
{
	struct json_object *object = json_object_new_object();

	json_add_value(object, "number", "18446744073709551615");
	json_add_value(object, "word", "auto");
	json_add_value(object, "nothing", NULL);
	check_text(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN),
		   "{\"number\":18446744073709551615,\"word\":\"auto\",\"nothing\":null}", "values in JSON");
	json_object_put(object);
}

/* A sample that was recorded in a directory. */
static void recorded(const char *dir, uint64_t ns, struct sample *sample)
{
	char *path = xprintf("%s/status", dir), *status = sysfs_read_file(path, NULL);
	struct target target = { .status = status };
	struct volume volume = { .name = "vol0", .uuid = "", .major = 253, .minor = 5, .nr_targets = 1,
				 .targets = &target };

	if (!status || sample_read(&volume, &target, dir, ns, sample))
		exit(1);
	free(status);
	free(path);
}

/* Of a sample, and of the same one while it is suspended, under a name that must be escaped. */
static int print_metrics(const char *dir)
{
	struct sample items[2];
	struct samples samples = { 2, items };

	recorded(dir, 1, &items[0]);
	recorded(dir, 1, &items[1]);
	free(items[1].name);
	items[1].name = xstrdup("a\"b\\c\nd");
	items[1].suspended = true;
	kv_free(&items[1].attrs);
	metrics_print(stdout, &samples);
	sample_free(&items[0]);
	sample_free(&items[1]);
	return 0;
}

/* The lines of top for two samples, two seconds apart. */
static int print_page(const char *before_dir, const char *now_dir, int width)
{
	struct sample samples[2];
	struct page page = { 0 };

	recorded(before_dir, 1, &samples[0]);
	recorded(now_dir, 2000000001, &samples[1]);
	page_target(&page, &samples[0], &samples[1], width);
	for (int i = 0; i < page.count; i++)
		puts(page.lines[i].text);
	page_free(&page);
	sample_free(&samples[0]);
	sample_free(&samples[1]);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return print_metrics(argv[1]);
	if (argc == 4)
		return print_page(argv[1], argv[2], atoi(argv[3]));
	test_times();
	test_sizes();
	test_numbers();
	test_format();
	test_assignments();
	test_current();
	test_status();
	test_mirror_status();
	test_bad_status();
	test_tables();
	test_histogram();
	test_buckets();
	test_new_worse();
	test_bad_histograms();
	test_subtract();
	test_progress();
	test_events();
	test_hedgetab();
	test_hedgetab_file();
	test_rules();
	test_votes();
	test_tree();
	test_names();
	test_json();
	printf("1..%d\n%d passed, %d failed\n", passed + failed, passed, failed);
	return failed ? 1 : 0;
}
