// SPDX-License-Identifier: GPL-2.0
/*
 * The words of a command line. Each command has a table of its options, from which both the parser
 * and --help are made, so that they can not disagree. Options may stand anywhere; "--" ends them.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

static const struct option_def common[] = {
	{ "json", NULL, "print JSON" },
	{ "help", NULL, "print this and exit" },
	{ NULL, NULL, NULL },
};

const struct option_def no_options[] = { { NULL, NULL, NULL } };

/* The n-th option of a command, the common ones last. */
static const struct option_def *option_at(const struct command *command, int n)
{
	const struct option_def *option = command->options;

	for (; option->name; option++)
		if (!n--)
			return option;
	return &common[n];
}

static int count_options(const struct command *command)
{
	int n = 0;

	while (option_at(command, n)->name)
		n++;
	return n;
}

static enum exit_status usage_error(const struct command *command)
{
	fprintf(stderr, "usage: hedgectl %s %s\n(hedgectl %s --help says more)\n", command->name,
		command->synopsis, command->name);
	return USAGE;
}

/* The n-th operand that a synopsis names, in capitals, such as LEG; for the caller to free. */
static char *operand_name(const struct command *command, int n)
{
	char *copy = xstrdup(command->synopsis), *rest = copy, *word, *name = NULL;

	while (!name && (word = next_word(&rest))) {
		word[strcspn(word, ".")] = '\0';
		if (strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(word) && !n--)
			name = xstrdup(word);
	}
	free(copy);
	return name ? name : xstrdup("an operand");
}

static void fail_missing(const struct args *args)
{
	char *name = operand_name(args->command, args->nr_operands);

	if (args->nr_operands)
		fail("%s: %s is missing after \"%s\"", args->command->name, name,
		     args->operands[args->nr_operands - 1]);
	else
		fail("%s: %s is missing", args->command->name, name);
	free(name);
}

/* Fills args->options; false when there is a word that no option is called. */
static bool parse_options(const struct command *command, int argc, char **argv, struct args *args)
{
	int n = count_options(command), c, which;
	struct option *options = xcalloc(n + 1, sizeof(*options));

	for (int i = 0; i < n; i++) {
		options[i].name = option_at(command, i)->name;
		options[i].has_arg = option_at(command, i)->value ? required_argument : no_argument;
	}
	args->options = xcalloc(argc, sizeof(*args->options));
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, &which)) == 0) {
		args->options[args->nr_options].name = option_at(command, which)->name;
		args->options[args->nr_options++].value = optarg;
	}
	if (c == ':')
		fail("%s: %s needs a value", command->name, argv[optind - 1]);
	else if (c != -1)
		fail("%s: there is no option %s", command->name, argv[optind - 1]);
	free(options);
	return c == -1;
}

/* DONE also when --help was asked for: the caller looks. */
enum exit_status args_parse(const struct command *command, int argc, char **argv, struct args *args)
{
	*args = (struct args){ .command = command };
	if (!parse_options(command, argc, argv, args))
		return usage_error(command);
	args->operands = argv + optind;
	args->nr_operands = argc - optind;
	if (args_has(args, "help"))
		return DONE;
	if (args->nr_operands < command->min_operands)
		fail_missing(args);
	else if (args->nr_operands > command->max_operands)
		fail("%s: unexpected operand \"%s\"", command->name,
		     args->operands[command->max_operands]);
	else
		return DONE;
	return usage_error(command);
}

void args_free(struct args *args)
{
	free(args->options);
}

const char *args_get(const struct args *args, const char *name)
{
	for (int i = args->nr_options - 1; i >= 0; i--)
		if (!strcmp(args->options[i].name, name))
			return args->options[i].value;
	return NULL;
}

bool args_has(const struct args *args, const char *name)
{
	for (int i = 0; i < args->nr_options; i++)
		if (!strcmp(args->options[i].name, name))
			return true;
	return false;
}

int args_target(const struct args *args, int *target)
{
	const char *text = args_get(args, "target");
	uint64_t value;

	*target = -1;
	if (!text)
		return 0;
	if (parse_number(text, &value) || value > 10000) {
		fail("--target %s: not a number of a target; 0 is the first hedge target of the table",
		     text);
		return -1;
	}
	*target = (int)value;
	return 0;
}

void command_help(const struct command *command)
{
	const struct option_def *option;

	printf("usage: hedgectl %s %s\n\n%s.\n", command->name, command->synopsis,
	       command->summary);
	if (command->details)
		printf("\n%s\n", command->details);
	printf("\noptions:\n");
	for (int i = 0; (option = option_at(command, i))->name; i++) {
		char *left = xprintf("--%s%s%s", option->name, option->value ? " " : "",
				     option->value ? option->value : "");

		printf("  %-22s %s\n", left, option->help);
		free(left);
	}
	if (command->more)
		command->more();
	printf("\nexample:\n  %s\n", command->example);
}
