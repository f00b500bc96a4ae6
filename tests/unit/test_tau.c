// SPDX-License-Identifier: GPL-2.0
/*
 * tau.[ch]: the timeout that is learnt, against closed forms.
 *
 * Times are in milliseconds, the mean of most laws. A histogram of a law is
 * made in two ways: exactly, each bucket getting its probability, or by drawing
 * samples. "Within one bucket" is meant of hedge_hist_bucket().
 */
#include <math.h>

#include "tap.h"
#include "tau.h"

#define MS 1e6				/* ns */
#define MANY 1000000000.0		/* samples of an exact histogram */

struct law {
	const char *name;
	double (*cdf)(double t, const struct law *law);	/* P(X <= t) */
	double a, b;
	double mean;
	double tau, load;	/* the best timeout, 0: none, and its L / mean */
};

static double lomax(double t, const struct law *law)
{
	return 1 - pow(1 + t / (law->a - 1), -law->a);
}

static double pareto(double t, const struct law *law)
{
	return t < law->b ? 0 : 1 - pow(law->b / t, law->a);
}

/* On [1, 1000], times b. */
static double truncated_pareto(double t, const struct law *law)
{
	double x = t / law->b;

	if (x < 1)
		return 0;
	return x > 1000 ? 1 : (1 - pow(x, -law->a)) / (1 - pow(1000, -law->a));
}

static double weibull(double t, const struct law *law)
{
	return 1 - exp(-pow(t / law->b, law->a));
}

static double exponential(double t, const struct law *law)
{
	return 1 - exp(-t / law->a);
}

/* 0.95 of mean a, 0.05 of mean b. */
static double hyperexponential(double t, const struct law *law)
{
	return .95 * (1 - exp(-t / law->a)) + .05 * (1 - exp(-t / law->b));
}

/* Two stages of mean a / 2 each. */
static double erlang(double t, const struct law *law)
{
	return 1 - exp(-2 * t / law->a) * (1 + 2 * t / law->a);
}

static double uniform_law(double t, const struct law *law)
{
	return t < law->a ? 0 : t > law->b ? 1 : (t - law->a) / (law->b - law->a);
}

/* 10 with probability 0.99, else 1000; here times a. */
static double bimodal(double t, const struct law *law)
{
	return t < 10 * law->a ? 0 : t < 1000 * law->a ? .99 : 1;
}

static double constant(double t, const struct law *law)
{
	return t >= law->a;
}

/* 0.98 exponential of mean a, 0.02 of mean b. */
static double stalls(double t, const struct law *law)
{
	return .98 * (1 - exp(-t / law->a)) + .02 * (1 - exp(-t / law->b));
}

static const struct law laws[] = {
	{ "lomax 1.5", lomax, 1.5, 0, 1, 1, .6151 },
	{ "lomax 2.2", lomax, 2.2, 0, 1, 1, .7804 },
	{ "lomax 3", lomax, 3, 0, 1, 1, .8519 },
	{ "pareto 1.5", pareto, 1.5, 1. / 3, 1, 1.5, .7905 },
	{ "pareto 2.2", pareto, 2.2, 6. / 11, 1, 2.2, .9612 },
	{ "weibull 1/2", weibull, .5, .5, 1, .5, .6321 },
	{ "hyperexponential", hyperexponential, .5, 10.5, 1, 1.5984, .6115 },
	{ "bimodal", bimodal, .05, 0, .995, .5, .5125 },
	{ "exponential", exponential, 1, 0, 1, 0, 1 },
	{ "exponential, short", exponential, .005, 0, .005, 0, 1 },
	{ "exponential, long", exponential, 2000, 0, 2000, 0, 1 },
	{ "erlang 2", erlang, 1, 0, 1, 0, 1 },
	{ "uniform on [0, 2]", uniform_law, 0, 2, 1, 0, 1 },
	{ "uniform on [0.5, 1.5]", uniform_law, .5, 1.5, 1, 0, 1 },
	{ "constant", constant, .2, 0, .2, 0, 1 },
};

/* Three legs, whose mean is mixed(): a slow one, a healthy one, one that stalls. */
static const struct law slow = { "slow", exponential, 2, 0, 2, 0, 1 };
static const struct law healthy = { "healthy", exponential, .2, 0, .2, 0, 1 };
static const struct law stalling = { "stalling", stalls, .2, 20, .596, 0, 0 };

static double mixed(double t, const struct law *law)
{
	(void)law;
	return (exponential(t, &slow) + exponential(t, &healthy) +
		stalls(t, &stalling)) / 3;
}

static const struct law mixture = { "mixture", mixed, 0, 0, 2.796 / 3, 0, 0 };

/* Laws whose best timeout has no closed form: found by trying. */
static const struct law open_laws[] = {
	{ "truncated pareto 1.1", truncated_pareto, 1.1, .125, 0, 0, 0 },
	{ "truncated pareto 1.5", truncated_pareto, 1.5, .125, 0, 0, 0 },
	{ "stalls", stalls, .2, 20, 0, 0, 0 },
	{ "few stalls", stalls, .2, 200, 0, 0, 0 },
};

/* L(t) / mean for t = step, 2 step, ..., by the integral of P(X > t). */
static double least_load(const struct law *law, double mean, double step,
			 double end, double *tau)
{
	double t, area = 0, load, least = 1;

	*tau = 0;
	for (t = 0; t < end; t += step) {
		area += step * (1 - law->cdf(t + step / 2, law));
		load = area / mean + 1 - law->cdf(t + step, law);
		if (load < least) {
			least = load;
			*tau = t + step;
		}
	}
	return least;
}

static double load_at(const struct law *law, double t)
{
	double area = 0;
	unsigned int i;

	for (i = 0; i < 10000; i++)
		area += 1e-4 * t * (1 - law->cdf((i + .5) * 1e-4 * t, law));
	return area / law->mean + 1 - law->cdf(t, law);
}

static double numeric_mean(const struct law *law)
{
	double t, sum = 0;

	for (t = 1e-5; t < 1e5; t *= 1.0001)
		sum += t * .0001 * (1 - law->cdf(t * 1.00005, law));
	return sum + 1e-5;
}

static void fill(struct hedge_tau_hist *hist, const struct law *law,
		 double samples)
{
	double last = 0, next;
	unsigned int b;

	memset(hist, 0, sizeof(*hist));
	for (b = 0; b < HEDGE_HIST_BUCKETS; b++) {
		next = b == HEDGE_HIST_BUCKETS - 1 ? 1 :
			law->cdf((hedge_hist_lower(b + 1) - 1) / MS, law);
		hist->count[b] = (next - last) * samples * HEDGE_TAU_SAMPLE;
		last = next;
	}
}

static void draw(struct hedge_tau_hist *hist, const struct law *law,
		 unsigned int samples)
{
	double cdf[HEDGE_HIST_BUCKETS];
	unsigned int b;

	for (b = 0; b < HEDGE_HIST_BUCKETS; b++)
		cdf[b] = law->cdf((hedge_hist_lower(b + 1) - 1) / MS, law);
	while (samples--) {
		double p = uniform();
		unsigned int lo = 0, hi = HEDGE_HIST_BUCKETS - 1;

		while (lo < hi) {
			unsigned int mid = (lo + hi) / 2;

			if (cdf[mid] <= p)
				lo = mid + 1;
			else
				hi = mid;
		}
		hedge_tau_add(hist, lo, 1);
	}
}

static u64 learn(const struct hedge_tau_hist *a, const struct hedge_tau_hist *b,
		 const struct hedge_tau_hist *c)
{
	const struct hedge_tau_hist *const legs[] = { a, b, c };

	return hedge_tau_learn(legs, !!a + !!b + !!c);
}

static u64 learn_one(const struct hedge_tau_hist *a)
{
	return learn(a, NULL, NULL);
}

static bool within_one(u64 tau, double ms)
{
	return tau && abs((int)hedge_hist_bucket(tau) -
			  (int)hedge_hist_bucket(ms * MS)) <= 1;
}

static void closed_forms(void)
{
	struct hedge_tau_hist hist;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(laws); i++) {
		const struct law *law = &laws[i];
		u64 tau;

		fill(&hist, law, MANY);
		tau = learn_one(&hist);
		if (!law->tau) {
			CHECK(!tau, "%s: %g ms", law->name, tau / MS);
			continue;
		}
		CHECK(within_one(tau, law->tau), "%s: %g ms", law->name,
		      tau / MS);
		/* The table of laws itself. */
		CHECK(fabs(load_at(law, law->tau) - law->load) < 1e-4,
		      "%s: L is %g", law->name, load_at(law, law->tau));
	}
}

static void open_forms(void)
{
	struct hedge_tau_hist hist;
	unsigned int i;
	double best;

	for (i = 0; i < ARRAY_SIZE(open_laws); i++) {
		const struct law *law = &open_laws[i];

		least_load(law, numeric_mean(law), 1e-4, 50, &best);
		fill(&hist, law, MANY);
		CHECK(within_one(learn_one(&hist), best),
		      "%s: %g ms, best is %g ms", law->name,
		      learn_one(&hist) / MS, best);
	}
}

/*
 * A million samples: where L is flat the noise chooses, but what it chooses is
 * within 1 % of the best.
 */
static void drawn_samples(void)
{
	struct hedge_tau_hist hist;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(laws); i++) {
		const struct law *law = &laws[i];
		u64 tau;

		memset(&hist, 0, sizeof(hist));
		draw(&hist, law, 1000000);
		tau = learn_one(&hist);
		if (!law->tau)
			CHECK(!tau, "%s: %g ms", law->name, tau / MS);
		else
			CHECK(tau && load_at(law, tau / MS) < 1.01 * law->load,
			      "%s: %g ms, L %g", law->name, tau / MS,
			      load_at(law, tau / MS));
	}
}

/* The slow leg alone would find itself normal; together they tell. */
static void pooling(void)
{
	static const double samples[][3] = {
		{ 1e6, 1e6, 1e6 }, { 1e3, 1e6, 1e6 }, { 1e6, 1e3, 1e6 },
		{ 1e6, 1e6, 1e3 }, { 1e9, 1e3, 1e6 }, { 5e2, 5e2, 5e2 },
	};
	struct hedge_tau_hist leg[3];
	unsigned int i;
	double best;

	least_load(&mixture, mixture.mean, 1e-4, 50, &best);
	for (i = 0; i < ARRAY_SIZE(samples); i++) {
		u64 tau;

		fill(&leg[0], &slow, samples[i][0] + 1);
		fill(&leg[1], &healthy, samples[i][1] + 1);
		fill(&leg[2], &stalling, samples[i][2] + 1);
		CHECK(!learn_one(&leg[0]), "slow alone");
		CHECK(!learn_one(&leg[1]), "healthy alone");
		CHECK(learn_one(&leg[2]), "stalling alone");
		tau = learn(&leg[0], &leg[1], &leg[2]);
		CHECK(within_one(tau, best), "%u: %g ms, best is %g ms", i,
		      tau / MS, best);
		CHECK(tau < slow.mean * MS, "%u: %g ms", i, tau / MS);
		CHECK(tau == learn(&leg[2], &leg[0], &leg[1]), "%u: order", i);
	}
}

static const struct law bimodal_law = { "bimodal", bimodal, .05, 0, .995, .5,
					.5125 };

/* A leg that has hardly been read says hardly anything. */
static void few_samples_of_a_leg(void)
{
	struct hedge_tau_hist leg, fresh = { 0 };
	u64 tau;

	fill(&leg, &bimodal_law, 1e6);
	tau = learn_one(&leg);
	CHECK(within_one(tau, .5), "%g ms", tau / MS);
	CHECK(learn(&leg, &fresh, NULL) == tau, "no sample");
	hedge_tau_add(&fresh, hedge_hist_bucket(MS), 1);
	CHECK(learn(&leg, &fresh, NULL) == tau, "1 sample");
	/* With 500 it counts as much as the other: half of all is 1 ms. */
	hedge_tau_add(&fresh, hedge_hist_bucket(MS), 499);
	CHECK(within_one(learn(&leg, &fresh, NULL), 1), "500 samples");
}

static void not_before_500(void)
{
	struct hedge_tau_hist a = { 0 }, b = { 0 };

	CHECK(!hedge_tau_learn(NULL, 0), "no leg");
	CHECK(!learn_one(&a), "no sample");
	hedge_tau_add(&a, hedge_hist_bucket(MS), 490);
	hedge_tau_add(&a, hedge_hist_bucket(100 * MS), 9);
	CHECK(!learn_one(&a), "499");
	CHECK(!learn(&a, &b, NULL), "499 and none");
	hedge_tau_add(&b, hedge_hist_bucket(MS), 1);
	CHECK(within_one(learn(&a, &b, NULL), 1), "499 and 1");
	hedge_tau_add(&a, hedge_hist_bucket(MS), 1);
	CHECK(within_one(learn_one(&a), 1), "500");
}

/*
 * Buckets 20, 28 and 44 with 768, 128 and 128 samples: L is the same, 139 units
 * of 64 ns, at the upper bounds of both 20 and 28. A longer tail is a reason to
 * hedge earlier.
 */
static void ties_go_to_the_longest(void)
{
	struct hedge_tau_hist hist = { 0 };

	hedge_tau_add(&hist, 20, 768);
	hedge_tau_add(&hist, 28, 128);
	hedge_tau_add(&hist, 44, 128);
	CHECK(learn_one(&hist) == hedge_hist_lower(29), "%g us",
	      learn_one(&hist) / 1e3);
	hedge_tau_add(&hist, 44, 1);
	CHECK(learn_one(&hist) == hedge_hist_lower(21), "longer tail: %g us",
	      learn_one(&hist) / 1e3);
	hist.count[44] -= 2 * HEDGE_TAU_SAMPLE;
	CHECK(learn_one(&hist) == hedge_hist_lower(29), "shorter tail: %g us",
	      learn_one(&hist) / 1e3);
}

/* L at each bucket's upper bound over the mean, in floating point. */
static double reference(const struct hedge_tau_hist *hist, unsigned int nr,
			double *load)
{
	double mass[HEDGE_HIST_BUCKETS] = { 0 }, all = 0, mean = 0, below = 0;
	double least = 1;
	unsigned int i, b;

	for (i = 0; i < nr; i++) {
		double sum = 0;

		for (b = 0; b < HEDGE_HIST_BUCKETS; b++)
			sum += hist[i].count[b];
		sum = fmax(sum, 500. * HEDGE_TAU_SAMPLE);
		for (b = 0; b < HEDGE_HIST_BUCKETS; b++)
			mass[b] += hist[i].count[b] / sum;
	}
	for (b = 0; b < HEDGE_HIST_BUCKETS; b++) {
		all += mass[b];
		mean += mass[b] * (hedge_hist_lower(b) +
				   hedge_hist_lower(b + 1)) / 2.;
	}
	mean /= all;
	for (i = 0, b = 0; b < HEDGE_HIST_BUCKETS; b++) {
		double tail = 0;

		for (i = b + 1; i < HEDGE_HIST_BUCKETS; i++)
			tail += mass[i] / all;
		below += mass[b] / all * (hedge_hist_lower(b) +
					  hedge_hist_lower(b + 1)) / 2.;
		load[b] = (below + tail * (hedge_hist_lower(b + 1) + mean)) /
			  mean;
		least = fmin(least, load[b]);
	}
	return least;
}

/* Up to eight legs with up to 2^38 samples in a few to all buckets. */
static void random_histograms(void)
{
	static struct hedge_tau_hist hist[HEDGE_MAX_LEGS];
	const struct hedge_tau_hist *legs[HEDGE_MAX_LEGS];
	double load[HEDGE_HIST_BUCKETS], least;
	unsigned int step, i, n, b, timeouts = 0;

	for (step = 0; step < 10000; step++) {
		unsigned int nr = 1 + below(HEDGE_MAX_LEGS);
		u32 from = below(HEDGE_HIST_BUCKETS);
		u64 tau;

		for (i = 0; i < nr; i++) {
			memset(&hist[i], 0, sizeof(hist[i]));
			legs[i] = &hist[i];
			for (n = 1 + below(below(2) ? 4 : 400); n; n--) {
				b = from + below(HEDGE_HIST_BUCKETS - from);
				hist[i].count[b] = (u64)hedge_random(&rng) <<
						   8 >> below(24);
			}
		}
		hedge_tau_add(&hist[0], from, 500);
		least = reference(hist, nr, load);
		tau = hedge_tau_learn((const struct hedge_tau_hist *const *)legs,
				      nr);
		/* The masses of 2^-28 are what it may be wrong by. */
		if (!tau) {
			CHECK(least > .98 - 1e-4, "step %u: none, L %.9f", step,
			      least);
			continue;
		}
		timeouts++;
		b = tau == hedge_hist_lower(HEDGE_HIST_BUCKETS) ?
			HEDGE_HIST_BUCKETS - 1 : hedge_hist_bucket(tau) - 1;
		CHECK(hedge_hist_lower(b + 1) == tau, "step %u: not a bound",
		      step);
		CHECK(least < .98 + 1e-4 && load[b] < least + 1e-4,
		      "step %u: bucket %u, L %.9f, least %.9f", step, b,
		      load[b], least);
	}
	CHECK(timeouts > 1000 && timeouts < 9000, "%u timeouts", timeouts);
}

/* Most legs, most samples, longest latency: L stays within 64 bits. */
static void extremes(void)
{
	static struct hedge_tau_hist hist;
	const struct hedge_tau_hist *legs[HEDGE_MAX_LEGS];
	unsigned int i;

	for (i = 0; i < HEDGE_MAX_LEGS; i++)
		legs[i] = &hist;
	hist.count[HEDGE_HIST_BUCKETS - 1] = (1ULL << 48) - 1;
	CHECK(!hedge_tau_learn((const struct hedge_tau_hist *const *)legs,
			       HEDGE_MAX_LEGS), "all of 137 s");
	/* Half of all is short: L is least where the short ones end. */
	hist.count[HEDGE_HIST_BUCKETS - 1] = 1ULL << 47;
	hist.count[0] = (1ULL << 47) - 1;
	CHECK(hedge_tau_learn((const struct hedge_tau_hist *const *)legs,
			      HEDGE_MAX_LEGS) == 1024, "half of 137 s");
}

static u64 sum(const struct hedge_tau_hist *hist)
{
	u64 all = 0;
	unsigned int b;

	for (b = 0; b < HEDGE_HIST_BUCKETS; b++)
		all += hist->count[b];
	return all;
}

static double samples(const struct hedge_tau_hist *hist)
{
	return (double)sum(hist) / HEDGE_TAU_SAMPLE;
}

static void half_life(void)
{
	struct hedge_tau_hist hist;
	unsigned int i, half;

	fill(&hist, &laws[0], 1e6);
	for (half = 1; half <= 10; half++) {
		for (i = 0; i < 10; i++)
			hedge_tau_decay(&hist);
		CHECK(fabs(samples(&hist) * (1 << half) / 1e6 - 1) < .002,
		      "%g samples after %u s", samples(&hist), 10 * half);
	}
	for (i = 0; i < 1000; i++)
		hedge_tau_decay(&hist);
	CHECK(samples(&hist) >= 500 && samples(&hist) < 536,
	      "%g samples after 1100 s", samples(&hist));
}

static void no_decay_below_500(void)
{
	struct hedge_tau_hist hist = { 0 }, before;

	hedge_tau_decay(&hist);
	CHECK(!sum(&hist), "empty");
	hedge_tau_add(&hist, 100, 489);
	hedge_tau_add(&hist, 200, 11);
	before = hist;
	hedge_tau_decay(&hist);
	CHECK(!memcmp(&hist, &before, sizeof(hist)), "500 samples");
	hedge_tau_add(&hist, 100, 100);
	hedge_tau_decay(&hist);
	CHECK(samples(&hist) > 559 && samples(&hist) < 561, "%g of 600",
	      samples(&hist));
}

/* A latency that comes once a second among thousands is not lost. */
static void rare_samples_fade_smoothly(void)
{
	struct hedge_tau_hist hist = { 0 };
	double steady = exp2(-.1) / (1 - exp2(-.1));
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		hedge_tau_add(&hist, 50, 10000);
		hedge_tau_add(&hist, 150, 1);
		hedge_tau_decay(&hist);
	}
	CHECK(fabs(hist.count[150] / (steady * HEDGE_TAU_SAMPLE) - 1) < .01,
	      "%g of %g", (double)hist.count[150] / HEDGE_TAU_SAMPLE, steady);
	CHECK(fabs(hist.count[50] / (1e4 * steady * HEDGE_TAU_SAMPLE) - 1) <
	      .01, "%g of %g", (double)hist.count[50] / HEDGE_TAU_SAMPLE,
	      1e4 * steady);
}

/* A law whose times are all multiplied. */
static const struct law *stretched;
static double factor;

static double stretch(double t, const struct law *law)
{
	(void)law;
	return stretched->cdf(t / factor, stretched);
}

/* For 40 s a volume is slower or faster: it is believed in 20 s, both ways. */
static void follows_change(void)
{
	static const double factors[] = { 2, 10, .5, .1 };
	struct law other = { "other", stretch, 0, 0, 0, 0, 0 };
	struct hedge_tau_hist hist;
	unsigned int i, f, s;

	for (i = 0; i < ARRAY_SIZE(laws); i++) {
		const struct law *law = &laws[i];

		/* Where there is little to gain the noise chooses. */
		if (law->load > .95)
			continue;
		for (f = 0; f < ARRAY_SIZE(factors); f++) {
			stretched = law;
			factor = factors[f];
			memset(&hist, 0, sizeof(hist));
			for (s = 0; s < 120; s++) {
				bool changed = s / 40 == 1;
				double tau;

				draw(&hist, changed ? &other : law, 2000);
				hedge_tau_decay(&hist);
				if (s % 40 < 19)
					continue;
				tau = learn_one(&hist) / MS;
				if (changed)
					tau /= factor;
				CHECK(tau && 1 - load_at(law, tau) >
				      .7 * (1 - law->load),
				      "%s times %g, second %u: %g ms, L %g",
				      law->name, factor, s, tau,
				      load_at(law, tau));
			}
		}
	}
	/* Where there is nothing between the modes it is the same bucket. */
	stretched = &bimodal_law;
	factor = 10;
	memset(&hist, 0, sizeof(hist));
	for (s = 0; s < 120; s++) {
		draw(&hist, s / 40 == 1 ? &other : &bimodal_law, 1000);
		hedge_tau_decay(&hist);
		if (s % 40 >= 19)
			CHECK(within_one(learn_one(&hist),
					 s / 40 == 1 ? 5 : .5),
			      "second %u: %g ms", s, learn_one(&hist) / MS);
	}
}

static const struct tap_test tests[] = {
	{ "tau: closed forms", closed_forms },
	{ "tau: laws without a closed form", open_forms },
	{ "tau: drawn samples", drawn_samples },
	{ "tau: legs are pooled, each with the same weight", pooling },
	{ "tau: a leg with few samples counts for less", few_samples_of_a_leg },
	{ "tau: none before 500 samples", not_before_500 },
	{ "tau: ties go to the longest", ties_go_to_the_longest },
	{ "tau: random histograms against floating point", random_histograms },
	{ "tau: extremes", extremes },
	{ "tau: half-life of 10 s", half_life },
	{ "tau: no decay below 500 samples", no_decay_below_500 },
	{ "tau: rare samples fade smoothly", rare_samples_fade_smoothly },
	{ "tau: a change is believed in 20 s", follows_change },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
