/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line of hedgesim.
 */
#ifndef HEDGESIM_OPTIONS_H
#define HEDGESIM_OPTIONS_H

#include "sim.h"

/**
 * struct options - what the command line asks for
 * @sim: what to simulate
 * @json: print JSON
 * @analyse: only say what theory says of the laws
 * @laws: of tasks, due times and removal, which @sim points to
 */
struct options {
	struct sim_config sim;
	bool json, analyse;
	struct law laws[3];
};

void options_read(struct options *options, int argc, char **argv);
void options_free(struct options *options);

#endif
