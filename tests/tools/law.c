// SPDX-License-Identifier: GPL-2.0
/*
 * law: turns a service-time law into the table of quantiles that the straggler
 * target dm-lag takes by message, and says its moments.
 *
 *	law LAW		prints the messages, one a line
 *	law -m LAW	prints mean_ns= and m2_ns2= of the table, as dm-lag
 *			interpolates it, and law_mean_ns=, law_m2_ns2= of LAW
 *
 * A law with a formula for its quantiles is cut at probabilities that get
 * denser towards both ends: each step multiplies p / (1 - p) by the same factor,
 * so that a tail is as fine as the body, down to 1e-9. A mixture is its laws one
 * after the other, each squeezed into its share of the probabilities: dm-lag
 * does not mind quantiles that fall.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE		1000000000.0	/* probability 1 in the table */
#define MAX_KNOTS	8192		/* as many as dm-lag takes */
#define MAX_NS		3600e9
#define STEP		0.08		/* of log(p / (1 - p)) */
#define PAIRS		64		/* a message */

struct moments {
	double mean, m2;
};

struct table {
	int nr;
	double p[MAX_KNOTS];	/* in 1 / ONE, whole numbers */
	double ns[MAX_KNOTS];
};

/* Parameters of the law being cut, for its quantile function. */
struct parameters {
	double a, b, c;
};

static const char usage[] =
"usage: law [-m] LAW\n"
"LAW: det:m exp:m erlang:k,m uniform:a,b pareto:alpha,xm,max\n"
"     bimodal:a,b,p (a with probability p) hyperexp:p1,m1,m2\n"
"     stall:LAW,p,v (v with probability p, else LAW)\n"
"     mix:p,LAW,LAW (the first with probability p)\n"
"times in ns, us, ms or s: exp:200us, stall:exp:200us,0.02,20ms\n";

static _Noreturn void die(const char *what, const char *where)
{
	fprintf(stderr, "law: %s at '%s'\n%s", what, where, usage);
	exit(2);
}

static void add_knot(struct table *t, double p, double ns)
{
	if (t->nr == MAX_KNOTS) {
		fprintf(stderr, "law: too many quantiles\n");
		exit(1);
	}
	if (!(ns <= MAX_NS)) {
		fprintf(stderr, "law: a time above an hour\n");
		exit(1);
	}
	t->p[t->nr] = round(p);
	t->ns[t->nr++] = round(ns);
}

/* Words of a law: each takes what it reads off the front of the text. */

static double get_number(const char **text)
{
	char *end;
	double x = strtod(*text, &end);

	if (end == *text || !isfinite(x) || x < 0)
		die("expected a number", *text);
	*text = end;
	return x;
}

static double get_probability(const char **text)
{
	const char *start = *text;
	double p = get_number(text);

	if (p > 1)
		die("expected a probability", start);
	return p;
}

static double get_time(const char **text)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	double x = get_number(text);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t len = strlen(units[i].name);

		if (!strncmp(*text, units[i].name, len)) {
			*text += len;
			return x * units[i].ns;
		}
	}
	if (x)
		die("expected a time with ns, us, ms or s", *text);
	return x;
}

static void get_comma(const char **text)
{
	if (**text != ',')
		die("expected a comma", *text);
	(*text)++;
}

/*
 * Cuts the law with quantile function q into share of the probabilities from
 * p0 on. The probabilities are rounded first, so that they and the times belong
 * together.
 */
static void cut(struct table *t, double p0, double share,
		double (*q)(double p, const struct parameters *par),
		const struct parameters *par)
{
	double end = log(ONE), from = round(p0), width = round(p0 + share) - from;
	double last = 0;

	if (!width)
		return;
	/* 1e-10 stands for 0 and 1, where the quantile may be infinite */
	add_knot(t, from, q(1e-10, par));
	for (double x = -end; x < end; x += STEP) {
		double p = round(width / (1 + exp(-x)));

		if (p <= last || p >= width)
			continue;
		add_knot(t, from + p, q(p / width, par));
		last = p;
	}
	add_knot(t, from + width, q(1 - 1e-10, par));
}

static double exp_quantile(double p, const struct parameters *par)
{
	return -par->a * log1p(-p);
}

/* a: shape, b: least, c: greatest */
static double pareto_quantile(double p, const struct parameters *par)
{
	double whole = 1 - pow(par->b / par->c, par->a);

	return par->b * pow(1 - p * whole, -1 / par->a);
}

/* a: stages, b: mean of one stage. There is no formula: bisect. */
static double erlang_quantile(double p, const struct parameters *par)
{
	double low = 0, high = 60 + 4 * par->a;

	for (int i = 0; i < 60; i++) {
		double x = (low + high) / 2, term = exp(-x), above = 0;

		for (int k = 0; k < par->a; k++) {
			above += term;
			term *= x / (k + 1);
		}
		if (1 - above < p)
			low = x;
		else
			high = x;
	}
	return low * par->b;
}

/* Where a law goes: share of the probabilities, from p0 on. */
struct place {
	struct table *table;
	double p0, share;
};

/* The first p of a place, and the rest of it */
static struct place first_part(const struct place *at, double p)
{
	return (struct place){ at->table, at->p0, at->share * p };
}

static struct place second_part(const struct place *at, double p)
{
	return (struct place){ at->table, at->p0 + at->share * p,
			       at->share * (1 - p) };
}

static struct moments mixture(double p, struct moments a, struct moments b)
{
	return (struct moments){ p * a.mean + (1 - p) * b.mean,
				 p * a.m2 + (1 - p) * b.m2 };
}

static struct moments put_det(struct place at, double v)
{
	add_knot(at.table, at.p0, v);
	add_knot(at.table, at.p0 + at.share, v);
	return (struct moments){ v, v * v };
}

static struct moments put_exp(struct place at, double m)
{
	cut(at.table, at.p0, at.share, exp_quantile,
	    &(struct parameters){ .a = m });
	return (struct moments){ m, 2 * m * m };
}

static struct moments get_law(const char **text, struct place at);

/*
 * One function a law: reads its parameters, puts it into the table, and returns
 * the moments that its formula has.
 */

static struct moments get_det(const char **text, struct place at)
{
	return put_det(at, get_time(text));
}

static struct moments get_exp(const char **text, struct place at)
{
	return put_exp(at, get_time(text));
}

static struct moments get_erlang(const char **text, struct place at)
{
	const char *start = *text;
	double k = get_number(text), m;

	if (k < 1 || k > 100 || k != floor(k))
		die("expected 1 to 100 stages", start);
	get_comma(text);
	m = get_time(text);
	cut(at.table, at.p0, at.share, erlang_quantile,
	    &(struct parameters){ k, m / k, 0 });
	return (struct moments){ m, m * m * (1 + 1 / k) };
}

static struct moments get_uniform(const char **text, struct place at)
{
	double a = get_time(text), b;

	get_comma(text);
	b = get_time(text);
	add_knot(at.table, at.p0, a);
	add_knot(at.table, at.p0 + at.share, b);
	return (struct moments){ (a + b) / 2, (a * a + a * b + b * b) / 3 };
}

/* The k-th moment of a Pareto law that ends at c. */
static double pareto_moment(const struct parameters *par, int k)
{
	double a = par->a, b = par->b, c = par->c;
	double whole = 1 - pow(b / c, a);

	if (fabs(a - k) < 1e-9)
		return a * pow(b, k) * log(c / b) / whole;
	return a * pow(b, a) * (pow(b, k - a) - pow(c, k - a)) / (a - k) / whole;
}

static struct moments get_pareto(const char **text, struct place at)
{
	const char *start = *text;
	struct parameters par;

	par.a = get_number(text);
	get_comma(text);
	par.b = get_time(text);
	get_comma(text);
	par.c = get_time(text);
	if (par.a <= 0 || par.b <= 0 || par.c <= par.b)
		die("expected alpha > 0 and 0 < xm < max", start);
	cut(at.table, at.p0, at.share, pareto_quantile, &par);
	return (struct moments){ pareto_moment(&par, 1), pareto_moment(&par, 2) };
}

static struct moments get_bimodal(const char **text, struct place at)
{
	double a = get_time(text), b, p;
	struct moments first, second;

	get_comma(text);
	b = get_time(text);
	get_comma(text);
	p = get_probability(text);
	first = put_det(first_part(&at, p), a);
	second = put_det(second_part(&at, p), b);
	return mixture(p, first, second);
}

static struct moments get_hyperexp(const char **text, struct place at)
{
	double p = get_probability(text);
	struct moments first, second;

	get_comma(text);
	first = put_exp(first_part(&at, p), get_time(text));
	get_comma(text);
	second = put_exp(second_part(&at, p), get_time(text));
	return mixture(p, first, second);
}

static struct moments get_mix(const char **text, struct place at)
{
	double p = get_probability(text);
	struct moments first, second;

	get_comma(text);
	first = get_law(text, first_part(&at, p));
	get_comma(text);
	second = get_law(text, second_part(&at, p));
	return mixture(p, first, second);
}

/* The share of the law is known only after the law: it is read twice. */
static struct moments get_stall(const char **text, struct place at)
{
	struct table *unused = calloc(1, sizeof(*unused));
	const char *law = *text;
	struct moments first, second;
	double p, v;

	if (!unused) {
		perror("law");
		exit(1);
	}
	get_law(text, (struct place){ unused, 0, ONE });
	free(unused);
	get_comma(text);
	p = get_probability(text);
	get_comma(text);
	v = get_time(text);
	first = get_law(&law, first_part(&at, 1 - p));
	second = put_det(second_part(&at, 1 - p), v);
	return mixture(1 - p, first, second);
}

static struct moments get_law(const char **text, struct place at)
{
	static const struct {
		const char *name;
		struct moments (*get)(const char **text, struct place at);
	} laws[] = {
		{ "det:", get_det }, { "exp:", get_exp },
		{ "erlang:", get_erlang }, { "uniform:", get_uniform },
		{ "pareto:", get_pareto }, { "bimodal:", get_bimodal },
		{ "hyperexp:", get_hyperexp }, { "mix:", get_mix },
		{ "stall:", get_stall },
	};

	for (size_t i = 0; i < sizeof(laws) / sizeof(*laws); i++) {
		size_t len = strlen(laws[i].name);

		if (!strncmp(*text, laws[i].name, len)) {
			*text += len;
			return laws[i].get(text, at);
		}
	}
	die("expected a law", *text);
}

/* Between two knots the time is uniform. */
static struct moments table_moments(const struct table *t)
{
	struct moments m = { 0, 0 };

	for (int i = 1; i < t->nr; i++) {
		double w = (t->p[i] - t->p[i - 1]) / ONE;
		double a = t->ns[i - 1], b = t->ns[i];

		m.mean += w * (a + b) / 2;
		m.m2 += w * (a * a + a * b + b * b) / 3;
	}
	return m;
}

static void print_messages(const struct table *t)
{
	printf("law begin\n");
	for (int i = 0; i < t->nr; i++) {
		if (i % PAIRS == 0)
			printf("%slaw add", i ? "\n" : "");
		printf(" %.0f %.0f", t->p[i], t->ns[i]);
	}
	printf("\nlaw end\n");
}

int main(int argc, char **argv)
{
	static struct table table;
	int moments = argc > 1 && !strcmp(argv[1], "-m");
	struct moments law, cut_law;
	const char *text;

	if (argc != 2 + moments) {
		fputs(usage, stderr);
		return 2;
	}

	text = argv[1 + moments];
	law = get_law(&text, (struct place){ &table, 0, ONE });
	if (*text)
		die("expected the end", text);

	if (moments) {
		cut_law = table_moments(&table);
		printf("mean_ns=%.3f\nm2_ns2=%.1f\n", cut_law.mean, cut_law.m2);
		printf("law_mean_ns=%.3f\nlaw_m2_ns2=%.1f\n", law.mean, law.m2);
	} else {
		print_messages(&table);
	}
	return 0;
}
