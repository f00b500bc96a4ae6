// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl: makes hedged volumes (the device-mapper target "hedge"), shows and sets them. This file
 * has the list of the commands; each is described at the end of its cmd_*.c. hedgectl.h tells what
 * every other file is for.
 */
#include <stdio.h>
#include <string.h>

#include "hedgectl.h"

static const struct command *const commands[] = {
	&create_command,
	&list_command,
	&show_command,
	&set_command,
	&hist_command,
	&assemble_command,
	&examine_command,
	&remove_command,
	&close_command,
	&wipe_command,
	&fail_command,
	&reinstate_command,
	&replace_command,
	&top_command,
	&monitor_command,
	&check_command,
	&convert_command,
	&tune_command,
	&plan_command,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *file)
{
	fprintf(file,
		"usage: hedgectl COMMAND [OPTION]... [OPERAND]...\n"
		"       hedgectl --help | --version\n\n"
		"Makes, shows and sets volumes whose reads are hedged over mirrored legs.\n\ncommands:\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(file, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(file, "\nhedgectl COMMAND --help tells more of a command, with an example.\n"
		      "exit status: 0 done, 1 failed, 2 wrong usage\n");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
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

	/* A full disk or a closed pipe must not look like success, nor what was lost before. */
	if ((ferror(stdout) | fflush(stdout)) && status == DONE) {
		fail("can not write the output");
		status = FAILED;
	}
	return status;
}
