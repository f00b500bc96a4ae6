// SPDX-License-Identifier: GPL-2.0
/*
 * hedgesim: reads what to simulate from the command line and prints what came
 * out. The policies and the attributes are those of the module, read by the
 * module's own code.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gsl/gsl_errno.h>

#include "sim.h"
#include "timeout.h"

#define MAX_SERVERS	100000
#define MAX_SLOTS	4096
#define MAX_SETTINGS	32
#define MIN_JOBS	100
#define MAX_IDLE_COPIES	32	/* the module's masks of legs have as many bits */

static const char help[] =
"usage: hedgesim [option]...\n"
"\n"
"Simulates a volume whose reads are hedged over servers, with the decisions of\n"
"dm-hedge. Times are in the unit of the law.\n"
"\n"
"options:\n"
"  --servers N         1 to 100000 (2)\n"
"  --slots C           copies that a server serves at a time (1)\n"
"  --policy P          fcfs-lpr, fcfs-nr, rnd, jsq, pod, slb, slb-arrival, coc, cos,\n"
"                      riq (fcfs-lpr)\n"
"  --service LAW       service time S, drawn for each copy (exp:1)\n"
"  --size LAW          size X, drawn for each job; a copy takes S X (det:1)\n"
"  --load RHO          arrival rate times E[S] E[X], for each slot (0.5)\n"
"  --jobs J            how many; the first fifth is warm-up (1000000)\n"
"  --copies D          copies of a job at its arrival\n"
"  --timeout T         a time, auto (the best one for the law) or off\n"
"  --kill              copies that have started can be killed\n"
"  --no-kill           they cannot (this is so unless told otherwise)\n"
"  --reroute any|other whether a copy that is killed at the timeout may go to the\n"
"                      same server again; only with --kill (other)\n"
"  --set ATTR=VALUE    an attribute of the volume; those in _us are in the law's unit\n"
"  --seed S            a number (1)\n"
"  --json              print JSON\n"
"  --help, --version\n"
"\n"
"laws (m is a mean):\n"
"  det:m exp:m erlang:k,m hyperexp:p1,m1,m2 bimodal:a,b,p (a with probability p)\n"
"  pareto:alpha,xm[,max] lomax:a,m weibull:k,s uniform:a,b shiftexp:d,m\n"
"  bernoulli:p,v (v with probability p, else 0) file:HISTOGRAM\n"
"\n"
"example:\n"
"  hedgesim --servers 4 --policy fcfs-lpr --service bimodal:1,50,0.98 --load 0.4\n";

/* --- errors ------------------------------------------------------------------------ */

static _Noreturn void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void wrong(const char *format, ...)
{
	va_list list;

	fputs("hedgesim: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputs("\nTry 'hedgesim --help'.\n", stderr);
	exit(2);
}

/* --- the command line ----------------------------------------------------------------- */

/* Options as they are written; they are read once the number of servers is known. */
struct words {
	const char *policy, *copies, *timeout, *service, *size;
	const char *settings[MAX_SETTINGS];
	unsigned int nr_settings;
	bool rerouted, json;
};

static u64 get_u64(const char *option, const char *word, u64 least, u64 most)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(word, &end, 10);
	if (errno || end == word || *end || *word == '-' || n < least || n > most)
		wrong("--%s '%s': expected a whole number from %llu to %llu", option, word,
		      (unsigned long long)least, (unsigned long long)most);
	return n;
}

/* A number above 0. */
static double get_positive(const char *option, const char *word, const char *expected)
{
	char *end;
	double x = strtod(word, &end);

	if (end == word || *end || !isfinite(x) || x <= 0)
		wrong("--%s '%s': expected %s", option, word, expected);
	return x;
}

static void get_law(struct law *law, const char *option, const char *word)
{
	char error[600];

	if (law_parse(law, word, error, sizeof(error)))
		wrong("--%s: %s", option, error);
	if (!(law->mean > 0) || !isfinite(law->mean))
		wrong("--%s '%s': expected a law whose mean is finite and above 0", option, word);
}

/* What the engine knows: anything else would be taken and do nothing. */
static const char * const policies[] = {
	"fcfs-lpr", "fcfs-nr", "rnd", "jsq", "pod", "slb", "slb-arrival", "coc", "cos", "riq",
};

static const enum hedge_knob simulated[] = {
	HEDGE_POLICY, HEDGE_COPIES, HEDGE_COPIES_TO, HEDGE_CANCEL, HEDGE_TIMEOUT_US,
	HEDGE_TIMEOUT_FROM, HEDGE_MAX_HEDGES, HEDGE_HEDGE_TO, HEDGE_BALANCE, HEDGE_CHOICES,
	HEDGE_QUEUE, HEDGE_REPLICATE, HEDGE_QUEUE_DEPTH, HEDGE_BUDGET_PCT, HEDGE_HEDGE_DEPTH,
};

static bool is_simulated(enum hedge_knob knob)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(simulated); i++)
		if (simulated[i] == knob)
			return true;
	return false;
}

static void check_policy(const char *name)
{
	char expected[300];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		if (!strcmp(name, policies[i]))
			return;
		n += scnprintf(expected + n, sizeof(expected) - n, "%s%s", i ? ", " : "", policies[i]);
	}
	wrong("policy '%s': expected %s", name, expected);
}

static void set_knob(struct hedge_knobs *knobs, const char *name, const char *value)
{
	int knob = hedge_knob_find(name);
	char expected[300];

	if (knob < 0)
		wrong("--set '%s': no such attribute", name);
	if (!is_simulated(knob))
		wrong("--set %s: this attribute is not simulated", name);
	if (knob == HEDGE_POLICY)
		check_policy(value);
	if (hedge_knob_set(knobs, knob, value)) {
		hedge_knob_expects(knobs, knob, expected, sizeof(expected));
		wrong("%s '%s': expected %s", name, value, expected);
	}
	if (knobs->val[HEDGE_BALANCE] > HEDGE_BALANCE_ROUND_ROBIN ||
	    knobs->val[HEDGE_REPLICATE] > HEDGE_NR)
		wrong("%s '%s': this value is not simulated", name, value);
}

static void set_from_word(struct sim_config *config, const char *word)
{
	const char *equals = strchr(word, '=');
	char name[64];

	if (!equals || equals == word || (size_t)(equals - word) >= sizeof(name))
		wrong("--set '%s': expected ATTR=VALUE", word);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - word), word);
	set_knob(&config->knobs, name, equals + 1);
	if (!strcmp(name, "budget_pct"))
		config->budget = true;
}

/* As the module learns it, but from the law: none that saves less than 2 %. */
static double best_timeout(const struct sim_config *config)
{
	double load, tau = timeout_best(&config->service, &config->size, &load);

	return load <= 0.98 ? tau : INFINITY;
}

static double get_timeout(struct sim_config *config, const char *word)
{
	u32 value;

	if (word && strcmp(word, "auto") && strcmp(word, "off"))
		return get_positive("timeout", word, "a time above 0, auto or off");
	if (word)
		set_knob(&config->knobs, "timeout_us", word);
	value = config->knobs.val[HEDGE_TIMEOUT_US];
	if (value == HEDGE_TIMEOUT_AUTO)
		return best_timeout(config);
	return value == HEDGE_TIMEOUT_OFF ? INFINITY : value;
}

static void read_words(struct sim_config *config, const struct words *words, u32 servers)
{
	char slots[16];
	unsigned int i;

	get_law(&config->service, "service", words->service);
	get_law(&config->size, "size", words->size);
	hedge_knobs_init(&config->knobs, servers);
	/* The papers' servers: what does not fit a slot can be cancelled. */
	snprintf(slots, sizeof(slots), "%u", config->slots);
	set_knob(&config->knobs, "queue_depth", slots);
	set_knob(&config->knobs, "policy", words->policy);
	if (words->copies)
		set_knob(&config->knobs, "copies", words->copies);
	for (i = 0; i < words->nr_settings; i++)
		set_from_word(config, words->settings[i]);
	config->tau = get_timeout(config, words->timeout);
	if (config->knobs.val[HEDGE_COPIES] > servers)
		wrong("policy %s sends %u copies: expected as many --servers, or --copies 1",
		      words->policy, config->knobs.val[HEDGE_COPIES]);
	if (config->knobs.val[HEDGE_COPIES_TO] == HEDGE_IDLE &&
	    config->knobs.val[HEDGE_COPIES] > MAX_IDLE_COPIES)
		wrong("copies %u: expected at most %u with copies_to idle",
		      config->knobs.val[HEDGE_COPIES], MAX_IDLE_COPIES);
	if (words->rerouted && !config->kill)
		wrong("--reroute: expected only with --kill");
}

static void reroute(struct sim_config *config, struct words *words, const char *word)
{
	words->rerouted = true;
	config->reroute_any = !strcmp(word, "any");
	if (!config->reroute_any && strcmp(word, "other"))
		wrong("--reroute '%s': expected any or other", word);
}

enum {
	SERVERS, SLOTS, POLICY, SERVICE, SIZE, LOAD, JOBS, COPIES, TIMEOUT, KILL, NO_KILL,
	REROUTE, SET, SEED, JSON, HELP, SHOW_VERSION,
};

static const struct option options[] = {
	{ "servers", required_argument, NULL, SERVERS },
	{ "slots", required_argument, NULL, SLOTS },
	{ "policy", required_argument, NULL, POLICY },
	{ "service", required_argument, NULL, SERVICE },
	{ "size", required_argument, NULL, SIZE },
	{ "load", required_argument, NULL, LOAD },
	{ "jobs", required_argument, NULL, JOBS },
	{ "copies", required_argument, NULL, COPIES },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "kill", no_argument, NULL, KILL },
	{ "no-kill", no_argument, NULL, NO_KILL },
	{ "reroute", required_argument, NULL, REROUTE },
	{ "set", required_argument, NULL, SET },
	{ "seed", required_argument, NULL, SEED },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ "version", no_argument, NULL, SHOW_VERSION },
	{ 0 }
};

static void take_option(struct sim_config *config, struct words *words, u32 *servers, int option)
{
	switch (option) {
	case SERVERS:
		*servers = get_u64("servers", optarg, 1, MAX_SERVERS);
		break;
	case SLOTS:
		config->slots = get_u64("slots", optarg, 1, MAX_SLOTS);
		break;
	case POLICY:
		words->policy = optarg;
		break;
	case SERVICE:
		words->service = optarg;
		break;
	case SIZE:
		words->size = optarg;
		break;
	case LOAD:
		config->load = get_positive("load", optarg, "a number above 0");
		break;
	case JOBS:
		config->jobs = get_u64("jobs", optarg, MIN_JOBS, 1000000000000ULL);
		break;
	case COPIES:
		words->copies = optarg;
		break;
	case TIMEOUT:
		words->timeout = optarg;
		break;
	case KILL:
	case NO_KILL:
		config->kill = option == KILL;
		break;
	case REROUTE:
		reroute(config, words, optarg);
		break;
	case SET:
		if (words->nr_settings == MAX_SETTINGS)
			wrong("--set: expected at most %d", MAX_SETTINGS);
		words->settings[words->nr_settings++] = optarg;
		break;
	case SEED:
		config->seed = get_u64("seed", optarg, 0, UINT64_MAX);
		break;
	case JSON:
		words->json = true;
		break;
	case HELP:
		fputs(help, stdout);
		exit(0);
	case SHOW_VERSION:
		puts("hedgesim " VERSION);
		exit(0);
	default:
		wrong("wrong usage");
	}
}

/* --- what came out ------------------------------------------------------------------------- */

static const struct {
	const char *key, *label;
	double p;
} quantiles[] = {
	{ "p50", "p50", 0.5 }, { "p90", "p90", 0.9 }, { "p95", "p95", 0.95 },
	{ "p99", "p99", 0.99 }, { "p99_9", "p99.9", 0.999 }, { "p99_99", "p99.99", 0.9999 },
};

/* JSON has no infinity; where jobs pile up, response times mean nothing. */
static void json_number(const char *key, double value, bool known)
{
	if (known && isfinite(value))
		printf("  \"%s\": %.9g,\n", key, value);
	else
		printf("  \"%s\": null,\n", key);
}

static void print_json(const struct sim_config *config, const struct sim_result *result)
{
	bool stable = result->stable;
	size_t i;

	printf("{\n  \"policy\": \"%s\",\n", hedge_policy_name(&config->knobs));
	json_number("tau", config->tau, true);
	json_number("mean", stable ? stats_mean(&result->stats) : 0, stable);
	json_number("ci95", stable ? stats_ci95(&result->stats) : 0, stable);
	for (i = 0; i < ARRAY_SIZE(quantiles); i++)
		json_number(quantiles[i].key,
			    stable ? stats_quantile(&result->stats, quantiles[i].p) : 0, stable);
	json_number("utilisation", result->utilisation, stable);
	json_number("copies_per_job", result->copies_per_job, stable);
	json_number("messages_per_job", result->messages_per_job, stable);
	printf("  \"events\": %llu,\n  \"stable\": %s\n}\n", (unsigned long long)result->events,
	       stable ? "true" : "false");
}

static void print_text(const struct sim_config *config, const struct sim_result *result,
		       double seconds)
{
	size_t i;

	printf("policy           %s\n", hedge_policy_name(&config->knobs));
	if (isfinite(config->tau))
		printf("timeout          %.6g\n", config->tau);
	else
		printf("timeout          none\n");
	if (result->stable) {
		printf("mean             %.6g +- %.2g\n", stats_mean(&result->stats),
		       stats_ci95(&result->stats));
		for (i = 0; i < ARRAY_SIZE(quantiles); i++)
			printf("%-17s%.6g\n", quantiles[i].label,
			       stats_quantile(&result->stats, quantiles[i].p));
		printf("utilisation      %.4f\n", result->utilisation);
		printf("copies per job   %.4f\n", result->copies_per_job);
		printf("messages per job %.4f\n", result->messages_per_job);
	} else {
		puts("not stable: jobs pile up");
	}
	printf("events           %llu, %.2g million a second\n", (unsigned long long)result->events,
	       result->events / seconds / 1e6);
}

static double seconds_of_cpu(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sim_config config = { .load = 0.5, .slots = 1, .jobs = 1000000, .seed = 1 };
	struct words words = { .policy = "fcfs-lpr", .service = "exp:1", .size = "det:1" };
	static struct sim_result result;
	u32 servers = 2;
	double began;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(&config, &words, &servers, option);
	if (optind < argc)
		wrong("'%s': expected only options", argv[optind]);
	gsl_set_error_handler_off();
	read_words(&config, &words, servers);
	began = seconds_of_cpu();
	sim_run(&config, &result);
	if (words.json)
		print_json(&config, &result);
	else
		print_text(&config, &result, seconds_of_cpu() - began);
	law_free(&config.service);
	law_free(&config.size);
	return 0;
}
