// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl: makes hedged volumes (the device-mapper target "hedge"), shows and sets them. This file
 * has the table of the commands; what each does is in its cmd_*.c. hedgectl.h tells what every
 * other file is for.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "hedgectl.h"

static const struct option_def create_options[] = {
	{ "log", "core|disk:DEV", "where the dirty log is kept (core: in memory)" },
	{ "region-size", "SIZE", "of the dirty log, a power of two (512K)" },
	{ "policy", "P", "the preset to start with (fcfs-lpr)" },
	{ "set", "ATTR=VALUE", "an attribute to start with; may be repeated" },
	{ "nosync", NULL, "the legs are identical already; copy nothing" },
	{ "from", "DEV", "copy the leg DEV over the others first" },
	{ "no-label", NULL, "write nothing but data on the legs (always so)" },
	{ "force", NULL, "do not ask, and accept legs that hold data" },
	{ "dry-run", NULL, "check everything, ask the kernel too, change nothing" },
	{ NULL, NULL, NULL },
};

static const struct option_def target_options[] = {
	{ "target", "N", "only the hedge target N of the table (all)" },
	{ NULL, NULL, NULL },
};

static const struct option_def no_options[] = { { NULL, NULL, NULL } };

static const struct command commands[] = {
	{
		.name = "create",
		.synopsis = "NAME --nosync|--from DEV [OPTION]... DEV DEV...",
		.summary = "Makes the volume NAME of 2 to 8 legs, as large as the smallest of them",
		.details =
			"A read may go to any leg, so all legs must hold the same data from the start:\n"
			"  --nosync    takes your word for it. Nothing is copied and nothing is compared;\n"
			"              where legs differ, reads return the data of any of them until that\n"
			"              place is written.\n"
			"  --from DEV  copies the leg DEV over the others now and loses their data. It asks\n"
			"              first; without a terminal it needs --force.\n"
			"Neither is needed with a log on disk that holds a mirror's log already.\n"
			"A leg that is mounted or in use is refused, and without --force one that holds a\n"
			"file system, a partition table or the like.",
		.options = create_options,
		.example =
			"hedgectl create vol0 --from /dev/nvme0n1 --set tau=2ms /dev/nvme0n1 /dev/nvme1n1",
		.min_operands = 2,
		.max_operands = INT_MAX,
		.run = cmd_create,
	},
	{
		.name = "list",
		.synopsis = "[--json]",
		.summary = "Lists the devices that have a hedge target",
		.details =
			"HEALTH has a letter for each leg: A alive, D write failed, S sync failed, R read failed,\n"
			"F flush failed, U unknown.",
		.options = no_options,
		.example = "hedgectl list",
		.max_operands = 0,
		.run = cmd_list,
	},
	{
		.name = "show",
		.synopsis = "NAME [--json]",
		.summary = "Shows policy, timeout, counters, budget and legs of a volume",
		.details = "While the volume is suspended it shows what the status line has.",
		.options = no_options,
		.example = "hedgectl show vol0",
		.min_operands = 1,
		.max_operands = 1,
		.run = cmd_show,
	},
	{
		.name = "set",
		.synopsis = "NAME [--target N] [leg:I.]ATTR=VALUE...",
		.summary = "Sets attributes of a running volume and prints all that changed",
		.details =
			"Times may be given in s, ms or us (tau=2ms; tau is timeout_us), sizes in K, M or G.\n"
			"leg:I. before an attribute names that of leg I. A policy changes other attributes too.",
		.options = target_options,
		.example = "hedgectl set vol0 policy=slb tau=2ms leg:1.weight=50",
		.min_operands = 2,
		.max_operands = INT_MAX,
		.run = cmd_set,
	},
	{
		.name = "hist",
		.synopsis = "NAME [LEG] [--target N] [--json]",
		.summary = "Shows how long the read copies of a volume, or of one leg, took",
		.details =
			"LEG is a number, a path or major:minor. Percentiles are upper bounds, at most 12.5 % too high.",
		.options = target_options,
		.example = "hedgectl hist vol0 1",
		.min_operands = 1,
		.max_operands = 2,
		.run = cmd_hist,
	},
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *file)
{
	fprintf(file,
		"usage: hedgectl COMMAND [OPTION]... [OPERAND]...\n"
		"       hedgectl --help | --version\n\n"
		"Makes, shows and sets volumes whose reads are hedged over mirrored legs.\n\ncommands:\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(file, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fprintf(file, "\nhedgectl COMMAND --help tells more of a command, with an example.\n"
		      "exit status: 0 done, 1 failed, 2 wrong usage\n");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static enum exit_status run(const struct command *command, int argc, char **argv)
{
	struct args args;
	enum exit_status status = args_parse(command, argc, argv, &args);

	if (status == DONE && args_has(&args, "help")) {
		command_help(command);
	} else if (status == DONE) {
		dm_begin();
		status = command->run(&args);
	}
	args_free(&args);
	return status;
}

static enum exit_status dispatch(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_help(stderr);
		return USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return DONE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("hedgectl %s\n", VERSION);
		return DONE;
	}
	command = find_command(argv[1]);
	if (command)
		return run(command, argc - 1, argv + 1);
	fail("there is no command \"%s\"", argv[1]);
	print_help(stderr);
	return USAGE;
}

int main(int argc, char **argv)
{
	enum exit_status status = dispatch(argc, argv);

	/* A full disk or a closed pipe must not look like success. */
	if (fflush(stdout) && status == DONE) {
		fail("can not write the output");
		status = FAILED;
	}
	return status;
}
