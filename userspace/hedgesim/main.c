// SPDX-License-Identifier: GPL-2.0
/*
 * hedgesim: reads what to simulate from the command line and prints what came
 * out.
 */
#include <time.h>

#include <gsl/gsl_errno.h>

#include "options.h"
#include "print.h"

static double seconds_of_cpu(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static struct sim_result result;
	static struct options options;
	double began;

	gsl_set_error_handler_off();
	options_read(&options, argc, argv);
	if (options.analyse) {
		print_analysis(&options);
	} else {
		began = seconds_of_cpu();
		sim_run(&options.sim, &result);
		print_result(&options, &result, seconds_of_cpu() - began);
	}
	options_free(&options);
	return 0;
}
