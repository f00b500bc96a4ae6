// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of userspace/theory: each law against quadrature of its own
 * functions and against samples, reading laws, and the timeouts of closed form.
 * Prints TAP and ends with "N passed, N failed".
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>

#include "classify.h"
#include "histogram.h"
#include "law.h"
#include "timeout.h"

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

static void near(double got, double expected, double tolerance, const char *law, const char *what)
{
	bool good = got == expected || fabs(got - expected) <= tolerance * fabs(expected);

	check(good, "%s: %s", law, what);
	if (!good)
		printf("# is %.9g, expected %.9g\n", got, expected);
}

static struct law parse(const char *text)
{
	char error[500];
	struct law law;

	if (law_parse(&law, text, error, sizeof(error))) {
		printf("Bail out! %s\n", error);
		exit(2);
	}
	return law;
}

/* --- one law ------------------------------------------------------------------- */

static double tail_of(double x, void *law)
{
	return law_tail(law, x);
}

static double weighted_tail(double x, void *law)
{
	return 2 * x * law_tail(law, x);
}

static double density_of(double x, void *law)
{
	return law_density(law, x);
}

/* The integral up to t, in pieces so that a kink costs no precision. */
static double integrate(double (*f)(double, void *), struct law *law, double from, double to)
{
	gsl_integration_workspace *room = gsl_integration_workspace_alloc(1000);
	gsl_function function = { f, law };
	double sum = 0, part, error;
	int i;

	for (i = 0; i < 40; i++) {
		gsl_integration_qags(&function, from + (to - from) * i / 40,
				     from + (to - from) * (i + 1) / 40, 1e-12, 1e-9, 1000, room,
				     &part, &error);
		sum += part;
	}
	gsl_integration_workspace_free(room);
	return sum;
}

#define SAMPLES 200000

static void check_samples(const struct law *law, const char *text)
{
	double limit = law_quantile(law, 0.99), expected = law_mean_min(law, limit);
	double sum = 0, squares = 0, mean, error;
	int i, above = 0;
	double median = law_quantile(law, 0.5), p = law_tail(law, median);
	struct rng rng;

	rng_seed(&rng, 1, 0);
	for (i = 0; i < SAMPLES; i++) {
		double x = law_sample(law, &rng), least = fmin(x, limit);

		sum += least;
		squares += least * least;
		above += x > median;
	}
	mean = sum / SAMPLES;
	error = sqrt(fmax(squares / SAMPLES - mean * mean, 0) / SAMPLES);
	check(fabs(mean - expected) <= 4 * error + 1e-9 * expected, "%s: limited mean of samples", text);
	if (fabs(mean - expected) > 4 * error + 1e-9 * expected)
		printf("# is %g +- %g, expected %g\n", mean, error, expected);
	error = sqrt(p * (1 - p) / SAMPLES);
	check(fabs((double)above / SAMPLES - p) <= 4 * error, "%s: samples above the median", text);
}

static void check_law(const char *text)
{
	static const double probabilities[] = { 0.001, 0.1, 0.5, 0.9, 0.999 };
	struct law law = parse(text);
	double t, end = 0;
	size_t i;

	for (i = 0; i < sizeof(probabilities) / sizeof(*probabilities); i++) {
		double p = probabilities[i];

		t = law_quantile(&law, p);
		if (law_has_density(&law))
			near(law_cdf(&law, t), p, 1e-9, text, "F of a quantile");
		else
			check(law_cdf(&law, t) >= p - 1e-12 && law_cdf(&law, nextafter(t, -1)) < p,
			      "%s: a quantile is the least x with F(x) >= p", text);
		near(law_mean_min(&law, t), integrate(tail_of, &law, 0, t), 1e-6, text,
		     "limited mean is the integral of the tail");
		if (law_has_density(&law))
			near(law_hazard(&law, t), law_density(&law, t) / (1 - p), 1e-6, text, "hazard");
		if (law_tail(&law, t) > 0)
			near(law_residual(&law, t) * law_tail(&law, t) + law_mean_min(&law, t),
			     law.mean, 1e-9, text, "mean of what is left");
		end = t;
	}
	if (law_has_density(&law)) {
		double from = law_quantile(&law, 0.1);

		near(integrate(density_of, &law, from, end), 0.999 - 0.1, 1e-6, text,
		     "density adds up");
	}
	end = law_quantile(&law, 1 - 1e-12);
	/* Of a heavy tail too much would be missing above that. */
	if (end * end * law_tail(&law, end) < 1e-5 * law.second && isfinite(law.second)) {
		near(law_mean_min(&law, end), law.mean, 1e-5, text, "mean");
		near(integrate(weighted_tail, &law, 0, end), law.second, 1e-4, text, "second moment");
	}
	check_samples(&law, text);
	law_free(&law);
}

static void check_moments(const char *text, double mean, double second)
{
	struct law law = parse(text);

	near(law.mean, mean, 1e-9, text, "mean");
	near(law.second, second, 1e-9, text, "second moment");
	law_free(&law);
}

static void test_laws(void)
{
	static const char * const texts[] = {
		"det:3", "exp:2", "erlang:4,2", "hyperexp:0.95,0.5,10.5", "bimodal:10,1000,0.99",
		"pareto:1.5,1,1000", "pareto:2.5,1", "lomax:2.2,1", "weibull:0.5,0.5",
		"weibull:2,3", "uniform:1,3", "shiftexp:1,2", "bernoulli:0.25,4",
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		check_law(texts[i]);
	check_moments("det:3", 3, 9);
	check_moments("exp:2", 2, 8);
	check_moments("erlang:4,2", 2, 5);
	check_moments("hyperexp:0.95,0.5,10.5", 1, 11.5);
	check_moments("bimodal:10,1000,0.99", 19.9, 10099);
	check_moments("pareto:1.5,1", 3, INFINITY);
	check_moments("pareto:2.5,1", 5 / 3.0, 5);
	check_moments("pareto:2,1,10", 20 / 11.0, 2 * log(10) / 0.99);
	check_moments("lomax:2.2,1", 1, 12);
	check_moments("lomax:3,1", 1, 4);
	check_moments("weibull:0.5,0.5", 1, 6);
	check_moments("uniform:1,3", 2, 13 / 3.0);
	check_moments("shiftexp:1,2", 3, 13);
	check_moments("bernoulli:0.25,4", 1, 4);
}

/* --- reading ------------------------------------------------------------------- */

static void refuse(const char *text, const char *expected)
{
	char error[500] = "";
	struct law law;

	check(law_parse(&law, text, error, sizeof(error)) && strstr(error, strncmp(text, "file:", 5) ? text : text + 5) && strstr(error, expected),
	      "refused: '%s'", text);
	if (!strstr(error, expected))
		printf("# says '%s', expected '%s'\n", error, expected);
	law_free(&law);
}

static void test_reading(void)
{
	refuse("", "expected one of det:m");
	refuse("exp", "expected one of");
	refuse("gauss:1,2", "expected one of");
	refuse("exp:", "expected exp:m");
	refuse("exp:1,2", "expected exp:m");
	refuse("exp:1 ", "expected exp:m");
	refuse("exp:-1", "m above 0");
	refuse("exp:nan", "expected exp:m");
	refuse("erlang:2", "expected erlang:k,m");
	refuse("erlang:1.5,1", "a whole number");
	refuse("pareto:1", "expected pareto:alpha,xm[,max]");
	refuse("pareto:1,2,1", "max above xm");
	refuse("lomax:1,1", "a above 1");
	refuse("bimodal:1,2,1.5", "p from 0 to 1");
	refuse("uniform:2,1", "a below b");
	refuse("bernoulli:0,1", "p above 0");
	refuse("file:/dev/null", "expected lines");
}

/* A measured law: two size classes, a mode at 1 ms and one at 100 ms. */
static void test_file(void)
{
	static const char text[] = "# to 16 KiB\n1048576 600\n104857600 10\n# to 64 KiB\n1048576 390\n";
	char path[] = "/tmp/theory-XXXXXX", word[64];
	int file = mkstemp(path);
	double tau, load;
	struct law law, one = parse("det:1");

	if (file < 0 || write(file, text, sizeof(text) - 1) != sizeof(text) - 1)
		exit(2);
	close(file);
	snprintf(word, sizeof(word), "file:%s", path);
	law = parse(word);
	check(law.nr == 2, "file: buckets of all classes are merged");
	near(law_cdf(&law, 2000), 0.99, 1e-12, "file", "share of the lower mode");
	near(law.mean, 0.99 * 1048.576 * 1.0625 + 0.01 * (100663.296 + 109051.904) / 2, 1e-6, "file", "mean");
	near(law_cdf(&law, law_quantile(&law, 0.3)), 0.3, 1e-9, "file", "quantile");
	tau = timeout_best(&law, &one, &load);
	near(tau, 1048.576 * 1.125, 1e-9, "file", "the best timeout is the end of the lower mode");
	check_law(word);
	law_free(&law);
	unlink(path);
}

/* --- timeouts -------------------------------------------------------------------- */

static void check_best(const char *text, double tau, double load, double tolerance)
{
	struct law law = parse(text), one = parse("det:1");
	double least;

	near(timeout_best(&law, &one, &least), tau, tolerance, text, "best timeout");
	near(least, load, 1e-4, text, "its load");
	near(timeout_max_load(&law, &one), 1 / load, 1e-4, text, "largest stable load");
	law_free(&law);
}

static void check_pareto(double alpha, double xm)
{
	char text[64];
	struct law law, one = parse("det:1");
	double load;

	snprintf(text, sizeof(text), "pareto:%g,%g", alpha, xm);
	law = parse(text);
	near(timeout_best(&law, &one, &load), alpha * alpha * xm / (alpha - 1), 1e-4, text,
	     "best timeout is a^2 xm / (a - 1)");
}

/* The timeout at which L comes back to 1, by bisection. */
static double crossing(const struct law *service, const struct law *size, double low, double high)
{
	int i;

	for (i = 0; i < 50; i++) {
		double middle = (low + high) / 2;

		if (timeout_load(service, size, middle) > 1)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* L for the bimodal law, 10 or 1000 once in a hundred, and exponential sizes: both in closed form. */
static double bimodal_exponential(double t)
{
	return (9.9 * -expm1(-t / 10) + 10 * -expm1(-t / 1000)) / 19.9 +
	       0.99 * (1 + t / 10) * exp(-t / 10) + 0.01 * (1 + t / 1000) * exp(-t / 1000);
}

static void test_random_sizes(void)
{
	static const double at[] = { 1, 10, 73, 280.548035, 314.627174, 373.662682, 700, 7400, 7500, 1e5 };
	struct law bimodal = parse("bimodal:10,1000,0.99"), exponential = parse("exp:1");
	size_t i;

	for (i = 0; i < sizeof(at) / sizeof(*at); i++)
		near(timeout_load(&bimodal, &exponential, at[i]), bimodal_exponential(at[i]), 1e-7,
		     "bimodal, X exponential", "L");
}

static void test_timeouts(void)
{
	struct law bimodal = parse("bimodal:10,1000,0.99"), one = parse("det:1");
	struct law uniform = parse("uniform:0,2"), exponential = parse("exp:1");
	struct law ten = parse("det:10");

	check_best("lomax:1.5,1", 1, 0.6151, 1e-3);
	check_best("lomax:2.2,1", 1, 0.7804, 1e-3);
	check_best("lomax:3,1", 1, 0.8519, 1e-3);
	check_best("weibull:0.5,0.5", 0.5, 0.6321, 1e-3);
	check_best("hyperexp:0.95,0.5,10.5", 1.5984, 0.6115, 1e-3);
	check_best("bimodal:10,1000,0.99", 10, 0.5125, 1e-9);
	check_best("exp:1", INFINITY, 1, 0);
	check_best("erlang:3,1", INFINITY, 1, 0);
	check_best("uniform:0,2", INFINITY, 1, 0);
	check_best("uniform:1,3", INFINITY, 1, 0);
	check_pareto(1.5, 1);
	check_pareto(3, 2);

	near(timeout_load(&exponential, &one, 0.1), 1, 1e-9, "exp", "L is 1 everywhere");
	near(timeout_load(&exponential, &one, 5), 1, 1e-9, "exp", "L is 1 everywhere");
	near(timeout_load(&bimodal, &one, 10), 0.5125, 1e-4, "bimodal", "L at the atom");
	check(timeout_load(&bimodal, &one, 9.999) > 1, "bimodal: L just below the atom");
	check(timeout_load(&bimodal, &one, 980) < 1, "bimodal: L just below 980.1");
	check(timeout_load(&bimodal, &one, 980.2) > 1, "bimodal: L just above 980.1");
	near(timeout_load(&bimodal, &ten, 100), timeout_load(&bimodal, &one, 10), 1e-9, "bimodal",
	     "times scale with the size");
	near(crossing(&bimodal, &uniform, 10, 20), 13.51, 1e-3, "bimodal", "L = 1, X uniform");
	near(crossing(&bimodal, &exponential, 10, 20), 12.95, 1e-3, "bimodal", "L = 1, X exponential");
}

/* --- where a timeout gains ------------------------------------------------------- */

/* The set {L < 1} is expected to be one interval; high of 0 means that it is empty. */
static void check_gains(const char *text, const char *size_text, double low, double high)
{
	struct law law = parse(text), size = parse(size_text);
	struct timeout_interval *set;
	size_t nr = timeout_gains(&law, &size, &set);

	check(nr == (high > 0), "%s, X %s: L < 1 on %s", text, size_text, high > 0 ? "one interval" : "nothing");
	if (nr && high > 0) {
		near(set[0].low, low, 1e-3, text, "from there");
		near(set[0].high, high, 1e-3, text, "to there");
	}
	free(set);
	law_free(&law);
}

static void test_gains(void)
{
	check_gains("bimodal:10,1000,0.99", "det:1", 10, 980.1);
	check_gains("bimodal:10,1000,0.99", "uniform:0,2", 13.51, 1922);
	check_gains("bimodal:10,1000,0.99", "exp:1", 12.95, 17280);
	check_gains("pareto:1.5,1,1000", "exp:1", 3.078, 11758);
	check_gains("lomax:1.5,1", "det:1", 0, INFINITY);
	check_gains("exp:1", "det:1", 0, 0);
	check_gains("erlang:3,1", "det:1", 0, 0);
	check_gains("uniform:0,2", "det:1", 0, 0);
	check_gains("det:1", "exp:1", 0, 0);
}

/* --- classes ------------------------------------------------------------------------ */

static void check_class(const char *text, enum law_class class)
{
	struct law law = parse(text);

	check(law_classify(&law) == class, "%s: is %s", text, law_class_name(class));
	if (law_classify(&law) != class)
		printf("# is %s\n", law_class_name(law_classify(&law)));
	law_free(&law);
}

/* The class of what the kernel would have measured of a law. */
static void check_measured_class(const char *text, double scale_ns, enum law_class class)
{
	unsigned int counts[HEDGE_HIST_BUCKETS] = { 0 }, i;
	char path[] = "/tmp/theory-XXXXXX", word[64];
	struct law law = parse(text), measured;
	int file = mkstemp(path);
	FILE *stream = file < 0 ? NULL : fdopen(file, "w");
	struct rng rng;

	if (!stream)
		exit(2);
	rng_seed(&rng, 3, 0);
	for (i = 0; i < 100000; i++)
		counts[hedge_hist_bucket(law_sample(&law, &rng) * scale_ns)]++;
	for (i = 0; i < HEDGE_HIST_BUCKETS; i++)
		if (counts[i])
			fprintf(stream, "%llu %u\n", (unsigned long long)hedge_hist_lower(i), counts[i]);
	fclose(stream);
	snprintf(word, sizeof(word), "file:%s", path);
	measured = parse(word);
	check(law_classify(&measured) == class, "%s, measured: is %s", text, law_class_name(class));
	if (law_classify(&measured) != class)
		printf("# is %s\n", law_class_name(law_classify(&measured)));
	law_free(&measured);
	law_free(&law);
	unlink(path);
}

static void test_classes(void)
{
	check_class("det:1", LAW_NBU);
	check_class("exp:3", LAW_MEMORYLESS);
	check_class("erlang:2,1", LAW_NBU);
	check_class("shiftexp:1,1", LAW_NBU);
	check_class("uniform:0,1", LAW_NBU);
	check_class("uniform:1,2", LAW_NBU);
	check_class("weibull:2,1", LAW_NBU);
	check_class("weibull:0.5,1", LAW_NWU);
	check_class("hyperexp:0.9,1,10", LAW_NWU);
	check_class("lomax:2,1", LAW_NWU);
	check_class("pareto:1.5,1", LAW_NEITHER);
	check_class("bimodal:10,1000,0.99", LAW_NEITHER);
	check_class("bimodal:10,15,0.5", LAW_NBU);
	/* v or nothing: a new one may well be nothing. */
	check_class("bernoulli:0.5,1", LAW_NEITHER);
	check_measured_class("exp:1", 1e6, LAW_MEMORYLESS);
	check_measured_class("hyperexp:0.9,1,10", 1e6, LAW_NWU);
	check_measured_class("lomax:2,1", 1e6, LAW_NWU);
	check_measured_class("erlang:3,1", 1e6, LAW_NBU);
	check_measured_class("uniform:1,2", 1e6, LAW_NBU);
	check_measured_class("bimodal:1,100,0.99", 1e6, LAW_NEITHER);
}

static void check_order(const char *text, double scale, double elapsed, const char *other_text, bool expected)
{
	struct law law = parse(text), other = parse(other_text);

	check(law_residual_below(&law, scale, elapsed, &other) == expected,
	      "%s times %g after %g is %sbelow %s", text, scale, elapsed, expected ? "" : "not ", other_text);
}

static void test_order(void)
{
	check_order("exp:1", 1, 5, "exp:2", true);
	check_order("exp:1", 1, 5, "exp:0.5", false);
	check_order("exp:1", 3, 5, "exp:2", false);
	check_order("exp:1", 1, 5, "erlang:2,2", true);	/* whose hazard rises from 0 to 1... */
	check_order("erlang:2,2", 1, 0, "exp:2", false);	/* ... as that of this */
	check_order("erlang:2,2", 1, 100, "exp:2", true);
	check_order("det:3", 1, 2, "det:1", true);
	check_order("det:3", 1, 1.9, "det:1", false);
	check_order("det:3", 1, 2, "exp:10", false);
	check_order("uniform:0,2", 1, 1.5, "det:0.5", true);
	check_order("bimodal:10,1000,0.99", 1, 5, "det:5", false);
	check_order("lomax:2,1", 1, 0, "exp:1", false);
}

int main(void)
{
	gsl_set_error_handler_off();
	test_laws();
	test_reading();
	test_file();
	test_timeouts();
	test_random_sizes();
	test_gains();
	test_classes();
	test_order();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
