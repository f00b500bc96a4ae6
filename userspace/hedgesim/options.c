// SPDX-License-Identifier: GPL-2.0
/*
 * Reading the command line. The policies and the attributes are those of the
 * module, read by the module's own code. Words are collected first: what many of
 * them mean depends on how many servers there are.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "timeout.h"

#define MAX_SERVERS	100000
#define MAX_SLOTS	4096
#define MAX_SETTINGS	64
#define MAX_TYPES	100
#define MIN_JOBS	100
#define MAX_IDLE_COPIES	32	/* the module's masks of legs have as many bits */
#define TOP_WEIGHT	1000000	/* that of the largest of a routing vector */

static const char help[] =
"usage: hedgesim [option]...\n"
"\n"
"Simulates a volume whose reads are hedged over servers, with the decisions of\n"
"dm-hedge. Times are in the unit of the law.\n"
"\n"
"options:\n"
"  --servers N         1 to 100000 (2)\n"
"  --slots C           copies that a server serves at a time (1)\n"
"  --policy P          rnd, jsq, pod, llw, slb, slb-arrival, coc, cos, riq, probe, or\n"
"                      fcfs, edd, fut each with -lpr, -nr, -nir, -r (fcfs-lpr)\n"
"  --service LAW       service time S, drawn for each copy (exp:1)\n"
"  --size LAW          size X, drawn for each job; a copy takes S X (det:1)\n"
"  --load RHO          arrival rate times E[S] E[X], for each slot (0.5)\n"
"  --jobs J            how many; the first fifth is warm-up (1000000)\n"
"  --copies D          copies of a job at its arrival\n"
"  --need K            copies that have to complete (1)\n"
"  --timeout T         a time, one for each server, auto (learnt while it runs), best\n"
"                      (of what the laws say) or off\n"
"  --kill              copies that have started can be killed\n"
"  --no-kill           they cannot (this is so unless told otherwise)\n"
"  --reroute any|other whether a copy that is killed at the timeout may go to the\n"
"                      same server again; only with --kill (other)\n"
"  --after kill|resume what takes its place begins anew, or goes on where it was;\n"
"                      only with --kill (kill)\n"
"  --removal LAW       time to remove a copy that has started; only with --kill\n"
"  --speeds V,V...     speeds of the servers, which divide S; VxN is N times V\n"
"  --routing V,V...    weights of the servers for first copies\n"
"  --rerouting V,V...  weights of the servers for hedges\n"
"  --types P:V,V...;P:V,V...\n"
"                      types of jobs, each with its share and speeds at the servers\n"
"  --tasks LAW         tasks of a job, rounded up (1)\n"
"  --due LAW           time from a job's arrival until it is due (due_us_be)\n"
"  --arrivals FILE     times of arrivals, one a line, instead of Poisson arrivals\n"
"  --eligible M        a job can be served by M random servers only, 1 to 8\n"
"  --probe SIZE        size of a probe (0.1)\n"
"  --probe-tail        a probed job goes to the end of the queue of its server\n"
"  --work measured|known\n"
"                      what llw knows of the work of a copy (measured)\n"
"  --unit NS           how long the unit of the laws is, for what the module evaluates\n"
"                      once a second (so that a usual service takes 10 ms)\n"
"  --set ATTR=VALUE    an attribute of the volume; those in _us are in the law's unit\n"
"  --seed S            a number (1)\n"
"  --analyse           say what theory says of the laws, and simulate nothing\n"
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

/* --- words -------------------------------------------------------------------------- */

/* Options as they are written. */
struct words {
	u32 servers;
	const char *policy, *copies, *need, *timeout, *service, *size, *reroute, *after, *removal;
	const char *speeds, *routing, *rerouting, *types, *tasks, *due, *arrivals, *eligible;
	const char *probe, *work, *load, *unit;
	const char *settings[MAX_SETTINGS];
	unsigned int nr_settings;
};

static void *allocate(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	if (!p)
		abort();
	return p;
}

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

/* One of two words. Returns whether it is the second. */
static bool get_either(const char *option, const char *word, const char *first, const char *second)
{
	if (strcmp(word, first) && strcmp(word, second))
		wrong("--%s '%s': expected %s or %s", option, word, first, second);
	return !strcmp(word, second);
}

static void get_law(struct law *law, const char *option, const char *word)
{
	char error[600];

	if (law_parse(law, word, error, sizeof(error)))
		wrong("--%s: %s", option, error);
}

static void get_positive_law(struct law *law, const char *option, const char *word)
{
	get_law(law, option, word);
	if (!(law->mean > 0) || !isfinite(law->mean))
		wrong("--%s '%s': expected a law whose mean is finite and above 0", option, word);
}

/* Numbers that are not negative, one for each server, up to the end or a semicolon. */
static double *get_vector(const char *option, const char *word, u32 nr)
{
	double *vector = allocate(nr, sizeof(*vector));
	const char *at = word;
	u32 n = 0;

	for (;;) {
		char *end;
		double value = strtod(at, &end);
		unsigned long count = 1;

		if (end == at || isnan(value) || value < 0)
			break;
		at = end;
		if (*at == 'x') {
			count = strtoul(at + 1, &end, 10);
			if (end == at + 1)
				break;
			at = end;
		}
		while (count-- && n <= nr) {
			if (n < nr)
				vector[n] = value;
			n++;
		}
		if (*at != ',')
			break;
		at++;
	}
	if (n != nr || (*at && *at != ';'))
		wrong("--%s '%s': expected %u numbers, one for each server, as V,V,VxCOUNT", option,
		      word, nr);
	return vector;
}

static double *get_speeds(const char *option, const char *word, u32 nr)
{
	double *speeds = get_vector(option, word, nr);
	u32 i;

	for (i = 0; i < nr; i++)
		if (!(speeds[i] > 0) || !isfinite(speeds[i]))
			wrong("--%s '%s': expected speeds above 0", option, word);
	return speeds;
}

/* Weights, so that the largest is TOP_WEIGHT. */
static u32 *get_weights(const char *option, const char *word, u32 nr)
{
	double *vector = get_vector(option, word, nr), most = 0;
	u32 *weights = allocate(nr, sizeof(*weights)), i;

	for (i = 0; i < nr; i++)
		most = fmax(most, vector[i]);
	if (!(most > 0) || !isfinite(most))
		wrong("--%s '%s': expected a number above 0 among them", option, word);
	for (i = 0; i < nr; i++)
		weights[i] = ceil(vector[i] / most * TOP_WEIGHT);
	free(vector);
	return weights;
}

static void get_types(struct sim_config *config, const char *word)
{
	const char *at = word;
	double sum = 0;
	u32 i;

	config->types = allocate(MAX_TYPES, sizeof(*config->types));
	config->shares = allocate(MAX_TYPES, sizeof(*config->shares));
	while (at && *at) {
		char *end;
		double share = strtod(at, &end);

		if (end == at || *end != ':' || !(share > 0) || !isfinite(share) ||
		    config->nr_types == MAX_TYPES)
			wrong("--types '%s': expected SHARE:SPEED,SPEED...;SHARE:SPEED..., at most %u",
			      word, MAX_TYPES);
		config->types[config->nr_types] = get_speeds("types", end + 1, config->knobs.nr_legs);
		config->shares[config->nr_types++] = sum += share;
		at = strchr(at, ';');
		at = at ? at + 1 : NULL;
	}
	if (!config->nr_types)
		wrong("--types '%s': expected SHARE:SPEED,SPEED...;SHARE:SPEED...", word);
	for (i = 0; i < config->nr_types; i++)
		config->shares[i] /= sum;
}

static void get_arrivals(struct sim_config *config, const char *path)
{
	FILE *file = fopen(path, "re");
	double last = 0, time;
	u64 room = 0;
	char line[256];

	if (!file)
		wrong("--arrivals %s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		char *end;

		if (*line == '#' || *line == '\n')
			continue;
		time = strtod(line, &end);
		if (end == line || !isfinite(time) || time < last)
			wrong("--arrivals %s: '%.*s': expected times, one a line, none before the last",
			      path, (int)strcspn(line, "\n"), line);
		if (config->nr_arrivals == room) {
			room = room ? 2 * room : 1024;
			config->arrivals = realloc(config->arrivals, room * sizeof(double));
			if (!config->arrivals)
				abort();
		}
		config->arrivals[config->nr_arrivals++] = last = time;
	}
	fclose(file);
	if (!(last > 0))
		wrong("--arrivals %s: expected a time above 0", path);
}

/* --- attributes ----------------------------------------------------------------------- */

/* What the engine does not know would be taken and do nothing. */
static const struct {
	enum hedge_knob knob;
	const char *instead;
} not_simulated[] = {
	{ HEDGE_RESCUE_US, NULL }, { HEDGE_MAX_COPY_KB, NULL }, { HEDGE_BOUNCE_MB, NULL },
	{ HEDGE_TASK_KB, "--tasks" }, { HEDGE_PROBE_KB, "--probe" },
	{ HEDGE_DUE_US_RT, "--due" }, { HEDGE_DUE_US_IDLE, "--due" },
};

static void set_knob(struct hedge_knobs *knobs, const char *name, const char *value)
{
	int knob = hedge_knob_find(name);
	char expected[600];
	size_t i;

	if (knob < 0)
		wrong("--set '%s': no such attribute", name);
	for (i = 0; i < ARRAY_SIZE(not_simulated); i++)
		if (not_simulated[i].knob == (enum hedge_knob)knob)
			wrong("--set %s: this attribute is not simulated%s%s", name,
			      not_simulated[i].instead ? ", use " : "",
			      not_simulated[i].instead ? not_simulated[i].instead : "");
	if (hedge_knob_set(knobs, knob, value)) {
		hedge_knob_expects(knobs, knob, expected, sizeof(expected));
		wrong("%s '%s': expected %s", name, value, expected);
	}
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
	if (!strcmp(name, "sitout_pct") || !strcmp(name, "sitout_s"))
		config->sitout = true;
}

static void use_timeout(struct sim_config *config, double tau)
{
	config->timeout = isfinite(tau) ? SIM_FIXED_TIMEOUT : SIM_NO_TIMEOUT;
	config->tau = tau;
}

/* The best one for the laws; none, as in the module, if it saves less than 2 %. */
static double best_timeout(const struct sim_config *config)
{
	double load, tau = timeout_best(&config->service, &config->size, &load);

	return load <= 0.98 ? tau : INFINITY;
}

static void read_timeouts(struct sim_config *config, const char *word)
{
	u32 i, nr = config->knobs.nr_legs;

	config->timeout = SIM_FIXED_TIMEOUT;
	config->tau = INFINITY;
	config->taus = get_vector("timeout", word, nr);
	for (i = 0; i < nr; i++)
		if (config->taus[i] <= 0)
			wrong("--timeout '%s': expected times above 0", word);
	if (config->knobs.val[HEDGE_TIMEOUT_FROM] == HEDGE_FROM_ARRIVAL)
		wrong("--timeout '%s': expected one time, as it runs from the arrival", word);
}

static void read_timeout(struct sim_config *config, const char *word)
{
	u32 value;

	if (word && !strcmp(word, "best")) {
		set_knob(&config->knobs, "timeout_us", "auto");
		use_timeout(config, best_timeout(config));
		return;
	}
	if (word && (strchr(word, ',') || strchr(word, 'x'))) {
		set_knob(&config->knobs, "timeout_us", "1");
		read_timeouts(config, word);
		return;
	}
	if (word && strcmp(word, "auto") && strcmp(word, "off")) {
		set_knob(&config->knobs, "timeout_us", "1");
		use_timeout(config, get_positive("timeout", word, "a time above 0, auto, best or off"));
		return;
	}
	if (word)
		set_knob(&config->knobs, "timeout_us", word);
	value = config->knobs.val[HEDGE_TIMEOUT_US];
	if (value == HEDGE_TIMEOUT_AUTO)
		config->timeout = SIM_LEARNT_TIMEOUT;
	else
		use_timeout(config, value == HEDGE_TIMEOUT_OFF ? INFINITY : value);
}

/* --- all together ------------------------------------------------------------------------ */

static const struct law *read_law(struct law *law, const char *option, const char *word)
{
	if (!word)
		return NULL;
	get_law(law, option, word);
	return law;
}

/* What would never end, or does not mean anything. */
static void check_combinations(const struct sim_config *config, const struct words *words)
{
	const u32 *val = config->knobs.val;
	u32 nr = config->knobs.nr_legs, copies = val[HEDGE_COPIES];

	if (copies > nr)
		wrong("policy %s sends %u copies: expected as many --servers, or --copies 1",
		      words->policy, copies);
	if (val[HEDGE_COPIES_TO] == HEDGE_IDLE && copies > MAX_IDLE_COPIES)
		wrong("copies %u: expected at most %u with copies_to idle", copies, MAX_IDLE_COPIES);
	if (config->eligible && copies > config->eligible)
		wrong("--eligible %u: expected at least as many as copies, %u", config->eligible, copies);
	if (config->need > copies)
		wrong("--need %u: expected at most the number of copies, %u", config->need, copies);
	if (config->need > 1 && (val[HEDGE_COPIES_TO] == HEDGE_IDLE || val[HEDGE_PROBE] ||
				 val[HEDGE_CANCEL] == HEDGE_CANCEL_START ||
				 (config->kill && val[HEDGE_HEDGE_TO] == HEDGE_ANY)))
		wrong("--need %u: expected 1 with copies_to idle, cancel start, probe, or --kill with hedge_to any",
		      config->need);
	if (!config->kill && (words->reroute || words->after || words->removal))
		wrong("--%s: expected only with --kill", words->reroute ? "reroute" :
		      words->after ? "after" : "removal");
	if (config->kill && val[HEDGE_PROBE] && val[HEDGE_PROBE_PRIORITY] &&
	    (config->slots > 1 || val[HEDGE_QUEUE_DEPTH] != 1))
		wrong("probe_priority: expected one slot and a queue_depth of 1 with --kill");
	if (config->sitout && nr > HEDGE_MAX_LEGS)
		wrong("sitout_pct: expected at most %u --servers", HEDGE_MAX_LEGS);
}

static void read_words(struct options *options, const struct words *words)
{
	struct sim_config *config = &options->sim;
	u32 nr = words->servers;
	char slots[16];
	unsigned int i;

	get_positive_law(&config->service, "service", words->service);
	get_positive_law(&config->size, "size", words->size);
	config->tasks = read_law(&options->laws[0], "tasks", words->tasks);
	config->due = read_law(&options->laws[1], "due", words->due);
	config->removal = read_law(&options->laws[2], "removal", words->removal);
	hedge_knobs_init(&config->knobs, nr);
	/* The papers' servers: what does not fit a slot can be cancelled. */
	snprintf(slots, sizeof(slots), "%u", config->slots);
	set_knob(&config->knobs, "queue_depth", slots);
	set_knob(&config->knobs, "policy", words->policy);
	if (words->copies)
		set_knob(&config->knobs, "copies", words->copies);
	for (i = 0; i < words->nr_settings; i++)
		set_from_word(config, words->settings[i]);
	read_timeout(config, words->timeout);

	config->need = words->need ? get_u64("need", words->need, 1, nr) : 1;
	config->probe = words->probe ? get_positive("probe", words->probe, "a size above 0") : 0.1;
	if (words->eligible)
		config->eligible = get_u64("eligible", words->eligible, 1, min(nr, (u32)HEDGE_MAX_LEGS));
	if (words->reroute)
		config->reroute_any = !get_either("reroute", words->reroute, "any", "other");
	if (words->after)
		config->resume = get_either("after", words->after, "kill", "resume");
	if (words->work)
		config->known_work = get_either("work", words->work, "measured", "known");
	if (words->speeds)
		config->speeds = get_speeds("speeds", words->speeds, nr);
	if (words->routing)
		config->routing = get_weights("routing", words->routing, nr);
	if (words->rerouting)
		config->rerouting = get_weights("rerouting", words->rerouting, nr);
	if (words->types)
		get_types(config, words->types);
	if (words->arrivals)
		get_arrivals(config, words->arrivals);
	if (words->unit)
		config->unit = get_positive("unit", words->unit, "a number of ns above 0");
	if (words->load)
		config->load = get_positive("load", words->load, "a number above 0");
	else if (!words->arrivals)
		config->load = 0.5;
	check_combinations(config, words);
}

enum {
	SERVERS, SLOTS, POLICY, SERVICE, SIZE, LOAD, JOBS, COPIES, NEED, TIMEOUT, KILL, NO_KILL,
	REROUTE, AFTER, REMOVAL, SPEEDS, ROUTING, REROUTING, TYPES, TASKS, DUE, ARRIVALS, ELIGIBLE,
	PROBE, PROBE_TAIL, WORK, UNIT, SET, SEED, ANALYSE, JSON, HELP, SHOW_VERSION,
};

static const struct option table[] = {
	{ "servers", required_argument, NULL, SERVERS },
	{ "slots", required_argument, NULL, SLOTS },
	{ "policy", required_argument, NULL, POLICY },
	{ "service", required_argument, NULL, SERVICE },
	{ "size", required_argument, NULL, SIZE },
	{ "load", required_argument, NULL, LOAD },
	{ "jobs", required_argument, NULL, JOBS },
	{ "copies", required_argument, NULL, COPIES },
	{ "need", required_argument, NULL, NEED },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "kill", no_argument, NULL, KILL },
	{ "no-kill", no_argument, NULL, NO_KILL },
	{ "reroute", required_argument, NULL, REROUTE },
	{ "after", required_argument, NULL, AFTER },
	{ "removal", required_argument, NULL, REMOVAL },
	{ "speeds", required_argument, NULL, SPEEDS },
	{ "routing", required_argument, NULL, ROUTING },
	{ "rerouting", required_argument, NULL, REROUTING },
	{ "types", required_argument, NULL, TYPES },
	{ "tasks", required_argument, NULL, TASKS },
	{ "due", required_argument, NULL, DUE },
	{ "arrivals", required_argument, NULL, ARRIVALS },
	{ "eligible", required_argument, NULL, ELIGIBLE },
	{ "probe", required_argument, NULL, PROBE },
	{ "probe-tail", no_argument, NULL, PROBE_TAIL },
	{ "work", required_argument, NULL, WORK },
	{ "unit", required_argument, NULL, UNIT },
	{ "set", required_argument, NULL, SET },
	{ "seed", required_argument, NULL, SEED },
	{ "analyse", no_argument, NULL, ANALYSE },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ "version", no_argument, NULL, SHOW_VERSION },
	{ 0 }
};

/* Where the word of an option is kept until all are there; NULL for the others. */
static const char **word_of(struct words *words, int option)
{
	switch (option) {
	case POLICY:
		return &words->policy;
	case SERVICE:
		return &words->service;
	case SIZE:
		return &words->size;
	case LOAD:
		return &words->load;
	case UNIT:
		return &words->unit;
	case COPIES:
		return &words->copies;
	case NEED:
		return &words->need;
	case TIMEOUT:
		return &words->timeout;
	case REROUTE:
		return &words->reroute;
	case AFTER:
		return &words->after;
	case REMOVAL:
		return &words->removal;
	case SPEEDS:
		return &words->speeds;
	case ROUTING:
		return &words->routing;
	case REROUTING:
		return &words->rerouting;
	case TYPES:
		return &words->types;
	case TASKS:
		return &words->tasks;
	case DUE:
		return &words->due;
	case ARRIVALS:
		return &words->arrivals;
	case ELIGIBLE:
		return &words->eligible;
	case PROBE:
		return &words->probe;
	case WORK:
		return &words->work;
	case SET:
		if (words->nr_settings == MAX_SETTINGS)
			wrong("--set: expected at most %d", MAX_SETTINGS);
		return &words->settings[words->nr_settings++];
	default:
		return NULL;
	}
}

static void take_option(struct options *options, struct words *words, int option)
{
	const char **word = word_of(words, option);

	if (word) {
		*word = optarg;
		return;
	}
	switch (option) {
	case SERVERS:
		words->servers = get_u64("servers", optarg, 1, MAX_SERVERS);
		break;
	case SLOTS:
		options->sim.slots = get_u64("slots", optarg, 1, MAX_SLOTS);
		break;
	case JOBS:
		options->sim.jobs = get_u64("jobs", optarg, MIN_JOBS, 1000000000000ULL);
		break;
	case KILL:
	case NO_KILL:
		options->sim.kill = option == KILL;
		break;
	case PROBE_TAIL:
		options->sim.probe_tail = true;
		break;
	case SEED:
		options->sim.seed = get_u64("seed", optarg, 0, UINT64_MAX);
		break;
	case ANALYSE:
		options->analyse = true;
		break;
	case JSON:
		options->json = true;
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

/**
 * options_read - read the command line
 * @options: what it asks for
 * @argc: number of words
 * @argv: the words
 *
 * Ends the program with status 2 if something is wrong.
 */
void options_read(struct options *options, int argc, char **argv)
{
	struct words words = {
		.servers = 2, .policy = "fcfs-lpr", .service = "exp:1", .size = "det:1",
	};
	int option;

	*options = (struct options) { .sim = { .slots = 1, .jobs = 1000000, .seed = 1 } };
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
		take_option(options, &words, option);
	if (optind < argc)
		wrong("'%s': expected only options", argv[optind]);
	read_words(options, &words);
}

/**
 * options_free - give back what options hold
 * @options: the options
 */
void options_free(struct options *options)
{
	struct sim_config *config = &options->sim;
	size_t i;

	law_free(&config->service);
	law_free(&config->size);
	for (i = 0; i < ARRAY_SIZE(options->laws); i++)
		law_free(&options->laws[i]);
	for (i = 0; i < config->nr_types; i++)
		free(config->types[i]);
	free(config->types);
	free(config->shares);
	free(config->taus);
	free(config->speeds);
	free(config->routing);
	free(config->rerouting);
	free(config->arrivals);
}
