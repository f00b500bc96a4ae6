/* SPDX-License-Identifier: GPL-2.0 */
/* metrics.c: samples as text for Prometheus. */
#ifndef METRICS_H
#define METRICS_H

#include "sample.h"

void metrics_print(FILE *file, const struct samples *samples);

#endif
