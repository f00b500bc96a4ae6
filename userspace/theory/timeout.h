/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a timeout costs, and which timeout is best.
 *
 * Let the service time of a copy be S X, with S drawn anew for each copy and X,
 * the size, once for each job. A copy that has run for tau is given up, and the
 * job is sent once more without a timeout. The work that a job then makes,
 * relative to a job without a timeout, is
 *
 *	L(tau) = E[min(S X, tau) + 1{S X > tau} S' X] / (E[S] E[X])
 *
 * where S' is independent of S. A copy that takes just tau has finished. The
 * servers are stable as long as the load is below 1 / L(tau), if copies can be
 * killed and work spreads evenly.
 */
#ifndef THEORY_TIMEOUT_H
#define THEORY_TIMEOUT_H

#include "law.h"

/**
 * struct timeout_interval - timeouts from @low on and below @high
 * @low: lower bound
 * @high: upper bound, may be infinite
 */
struct timeout_interval {
	double low, high;
};

double timeout_load(const struct law *service, const struct law *size, double tau);
double timeout_best(const struct law *service, const struct law *size, double *load);
double timeout_max_load(const struct law *service, const struct law *size);
size_t timeout_gains(const struct law *service, const struct law *size,
		     struct timeout_interval **set);

#endif
