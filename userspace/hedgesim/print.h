/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What hedgesim prints, for people and for programs.
 */
#ifndef HEDGESIM_PRINT_H
#define HEDGESIM_PRINT_H

#include "options.h"

void print_result(const struct options *options, const struct sim_result *result, double seconds);
void print_analysis(const struct options *options);

#endif
