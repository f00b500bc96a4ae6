// SPDX-License-Identifier: GPL-2.0
/*
 * Printing: see print.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "classify.h"
#include "print.h"
#include "timeout.h"

#define CURVE_POINTS 400

/* --- a simulation --------------------------------------------------------------- */

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
	const struct stats *stats = &result->stats;
	bool stable = result->stable;
	size_t i;

	printf("{\n  \"policy\": \"%s\",\n", hedge_policy_name(&config->knobs));
	json_number("tau", result->tau, true);
	json_number("mean", stable ? stats_mean(stats) : 0, stable);
	json_number("ci95", stable ? stats_ci95(stats) : 0, stable);
	for (i = 0; i < ARRAY_SIZE(quantiles); i++)
		json_number(quantiles[i].key, stable ? stats_quantile(stats, quantiles[i].p) : 0,
			    stable);
	json_number("started", stable ? stats->started / stats->nr : 0, stable);
	json_number("utilisation", result->utilisation, stable);
	json_number("copies_per_job", result->copies_per_job, stable);
	json_number("messages_per_job", result->messages_per_job, stable);
	printf("  \"events\": %llu,\n  \"stable\": %s\n}\n", (unsigned long long)result->events,
	       stable ? "true" : "false");
}

static void print_text(const struct sim_config *config, const struct sim_result *result,
		       double seconds)
{
	const struct stats *stats = &result->stats;
	size_t i;

	printf("policy           %s\n", hedge_policy_name(&config->knobs));
	if (config->taus)
		printf("timeout          one of each server\n");
	else if (isfinite(result->tau))
		printf("timeout          %.6g\n", result->tau);
	else
		printf("timeout          none\n");
	if (result->stable) {
		printf("mean             %.6g +- %.2g\n", stats_mean(stats), stats_ci95(stats));
		for (i = 0; i < ARRAY_SIZE(quantiles); i++)
			printf("%-17s%.6g\n", quantiles[i].label,
			       stats_quantile(stats, quantiles[i].p));
		printf("mean to start    %.6g\n", stats->started / stats->nr);
		printf("utilisation      %.4f\n", result->utilisation);
		printf("copies per job   %.4f\n", result->copies_per_job);
		printf("messages per job %.4f\n", result->messages_per_job);
	} else {
		puts("not stable: jobs pile up");
	}
	printf("events           %llu, %.2g million a second\n", (unsigned long long)result->events,
	       result->events / seconds / 1e6);
}

/**
 * print_result - print what came out of a simulation
 * @options: what was asked
 * @result: what came out
 * @seconds: of processor time that it took
 */
void print_result(const struct options *options, const struct sim_result *result, double seconds)
{
	if (options->json)
		print_json(&options->sim, result);
	else
		print_text(&options->sim, result, seconds);
}

/* --- what theory says -------------------------------------------------------------- */

/* L at timeouts from far below to far above those that matter. */
static void print_curve(const struct law *service, const struct law *size)
{
	double low = service->mean * size->mean / 100, high;
	int i;

	high = fmax(law_quantile(service, 0.9999) * law_quantile(size, 0.9999), 100 * low) * 2;
	puts("  \"curve\": [");
	for (i = 0; i < CURVE_POINTS; i++) {
		double tau = low * pow(high / low, (double)i / (CURVE_POINTS - 1));

		printf("    [%.9g, %.9g]%s\n", tau, timeout_load(service, size, tau),
		       i + 1 < CURVE_POINTS ? "," : "");
	}
	puts("  ]");
}

static void analysis_json(const struct law *service, const struct law *size, double tau, double load,
			  const struct timeout_interval *set, size_t nr)
{
	size_t i;

	puts("{");
	json_number("service_mean", service->mean, true);
	json_number("size_mean", size->mean, true);
	printf("  \"class\": \"%s\",\n", law_class_name(law_classify(service)));
	json_number("tau", tau, true);
	json_number("load", load, true);
	json_number("max_load", 1 / load, true);
	printf("  \"gains\": [");
	for (i = 0; i < nr; i++) {
		printf("%s[%.9g, ", i ? ", " : "", set[i].low);
		if (isfinite(set[i].high))
			printf("%.9g]", set[i].high);
		else
			printf("null]");
	}
	puts("],");
	print_curve(service, size);
	puts("}");
}

static void analysis_text(const struct law *service, const struct law *size, double tau, double load,
			  const struct timeout_interval *set, size_t nr)
{
	enum law_class class = law_classify(service);
	size_t i;

	printf("mean of S           %.6g\nmean of X           %.6g\n", service->mean, size->mean);
	printf("class of S          %s%s\n", law_class_name(class),
	       class == LAW_NBU ? " (light-everywhere)" :
	       class == LAW_NWU ? " (heavy-everywhere)" : "");
	if (isfinite(tau))
		printf("best timeout        %.6g\n", tau);
	else
		printf("best timeout        none\n");
	printf("its load            %.6g\nlargest stable load %.6g\n", load, 1 / load);
	printf("less work than none");
	for (i = 0; i < nr; i++)
		printf("%s from %.6g to %.6g", i ? "," : " ", set[i].low, set[i].high);
	puts(nr ? "" : " nowhere");
}

/**
 * print_analysis - print what theory says of the laws
 * @options: the laws
 */
void print_analysis(const struct options *options)
{
	const struct law *service = &options->sim.service, *size = &options->sim.size;
	struct timeout_interval *set;
	size_t nr = timeout_gains(service, size, &set);
	double load, tau = timeout_best(service, size, &load);

	(options->json ? analysis_json : analysis_text)(service, size, tau, load, set, nr);
	free(set);
}
