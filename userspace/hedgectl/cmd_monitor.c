// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl monitor: reports what happens to volumes, by a line, a hook or a mail.
 *
 * It wakes at every event of device-mapper, for a leg that goes out, stalls or sits out raises one,
 * and once an interval for what raises none. Then it compares the volumes with what they were
 * (event.c). Hooks and mails run one after the other, none longer than HOOK_SECONDS: a leg that
 * fails may take along the disk on which the hook is.
 */
#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <linux/dm-ioctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "event.h"

#define INTERVAL 60
#define MAX_INTERVAL 86400
#define HOOK_SECONDS 60
#define SENDMAIL "/usr/sbin/sendmail"

struct request {
	const struct args *args;
	const char *hook, *mail;
	uint64_t interval;
	bool json;
	int reported;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* --- hooks and mails ------------------------------------------------------------------ */

/* Waits for a child; one that takes too long is killed, with its group. */
static void wait_for(pid_t pid, const char *what)
{
	int status;

	for (int i = 0; i < HOOK_SECONDS * 10; i++) {
		pid_t r = waitpid(pid, &status, WNOHANG);

		if (r == pid && status)
			note("%s ended with status %d", what,
			     WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
		if (r == pid || (r < 0 && errno != EINTR))
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	note("%s took longer than %d s and was killed", what, HOOK_SECONDS);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* Runs a program with a text on its standard input. */
static void run_program(const char *const *argv, const char *input)
{
	int in[2];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC)) {
		note("%s: can not be run: %s", argv[0], strerror(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		signal(SIGPIPE, SIG_DFL);
		dup2(in[0], STDIN_FILENO);
		execv(argv[0], (char *const *)argv);
		fprintf(stderr, "hedgectl: %s: can not be run: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(in[0]);
	if (pid < 0) {
		note("%s: can not be run: %s", argv[0], strerror(errno));
	} else {
		/* Fits a pipe, so this does not wait for the reader; one that went is none of ours. */
		if (write(in[1], input, strlen(input)) < 0 && errno != EPIPE)
			note("%s: can not be written to: %s", argv[0], strerror(errno));
		close(in[1]);
		in[1] = -1;
		wait_for(pid, argv[0]);
	}
	if (in[1] >= 0)
		close(in[1]);
}

static void run_hook(const struct request *request, const struct event *event)
{
	const char *device = event->leg < 0 ? "" : event->sample->status.devices[event->leg];
	const char *argv[] = { request->hook, event->name, event->sample->name, device, NULL };
	char *target = xprintf("%d", event->sample->target);
	char *leg = event->leg < 0 ? xstrdup("") : xprintf("%d", event->leg);

	setenv("HEDGE_EVENT", event->name, 1);
	setenv("HEDGE_VOLUME", event->sample->name, 1);
	setenv("HEDGE_TARGET", target, 1);
	setenv("HEDGE_LEG", leg, 1);
	setenv("HEDGE_DEVICE", device, 1);
	setenv("HEDGE_MESSAGE", event->message, 1);
	free(target);
	free(leg);
	run_program(argv, "");
}

static void send_mail(const struct request *request, const struct event *event)
{
	const char *program = getenv("HEDGECTL_SENDMAIL");
	const char *argv[] = { program && *program ? program : SENDMAIL, "-t", "-oi", NULL };
	char host[256] = "", *text;

	gethostname(host, sizeof(host) - 1);
	text = xprintf("To: %s\nSubject: %s on %s: %s\n\n%s\n\nhedgectl show %s tells more.\n",
		       request->mail, event->name, host, event->sample->name, event->message,
		       event->sample->name);
	run_program(argv, text);
	free(text);
}

static void print_json(const struct event *event)
{
	struct json_object *object = json_object_new_object();

	json_add_text(object, "event", event->name);
	json_add_text(object, "name", event->sample->name);
	json_add_u64(object, "target", event->sample->target);
	json_object_object_add(object, "leg",
			       event->leg < 0 ? NULL : json_object_new_int(event->leg));
	json_add_text(object, "device",
		      event->leg < 0 ? NULL : event->sample->status.devices[event->leg]);
	json_add_text(object, "message", event->message);
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

static void report(const struct event *event, void *context)
{
	struct request *request = context;

	request->reported++;
	if (request->json)
		print_json(event);
	else
		printf("%s: %s\n", event->name, event->message);
	fflush(stdout);
	if (request->hook)
		run_hook(request, event);
	if (request->mail)
		send_mail(request, event);
}

/* --- turns ------------------------------------------------------------------------------ */

/* While a volume is suspended half of its state is away: what it was before is kept until it runs. */
static void keep_suspended(struct samples *before, struct samples *now)
{
	for (int i = 0; i < now->count; i++) {
		struct sample *old = (struct sample *)samples_before(before, &now->items[i]), new;

		if (!now->items[i].suspended || !old)
			continue;
		new = now->items[i];
		now->items[i] = *old;
		now->items[i].ns = new.ns;
		*old = new;
	}
}

static bool is_there(const struct samples *samples, const struct sample *wanted)
{
	for (int i = 0; i < samples->count; i++)
		if (samples->items[i].target == wanted->target &&
		    !strcmp(samples->items[i].uuid, wanted->uuid) &&
		    !strcmp(samples->items[i].name, wanted->name))
			return true;
	return false;
}

/*
 * The targets that a volume has by now, -1 if that is not known: what could not be read may still be there, and
 * only a list of all that is complete tells that it is not.
 */
static int count_targets(const struct sample *sample)
{
	struct volume *volumes;
	int count, targets = dm_volumes_read(&volumes, &count) ? -1 : 0;

	for (int i = 0; i < count && !targets; i++)
		if (!strcmp(volumes[i].uuid, sample->uuid) && !strcmp(volumes[i].name, sample->name))
			targets = volumes[i].nr_targets;
	volumes_free(volumes, count);
	return targets;
}

static void report_gone(struct request *request, const struct sample *sample)
{
	char *message = xprintf("%s: there is no hedged volume of this name any more", sample->name);
	struct event event = { "volume-gone", sample, -1, message };

	report(&event, request);
	free(message);
}

/* Reports the volumes that went away, each once, and keeps what could not be read for the next turn. */
static void look_for_missing(struct request *request, struct samples *before, struct samples *now)
{
	for (int i = 0; i < before->count; i++) {
		struct sample *old = &before->items[i];
		int targets;

		if (!old->name || is_there(now, old))
			continue;
		targets = count_targets(old);
		if (!targets && !old->target)
			report_gone(request, old);
		if (targets >= 0 && targets <= old->target)
			continue;
		now->items = xrealloc(now->items, (now->count + 1) * sizeof(*now->items));
		now->items[now->count++] = *old;
		*old = (struct sample){ 0 };
	}
}

/* Numbers the turns: a sample is later than one of a turn before. */
static int take_turn(struct request *request, struct samples *before)
{
	static uint64_t turn;
	struct samples now;
	int r = samples_read((const char *const *)request->args->operands,
			     request->args->nr_operands, ++turn, &now);

	for (int i = 0; i < now.count; i++)
		if (!now.items[i].suspended)
			events_between(samples_before(before, &now.items[i]), &now.items[i],
				       report, request);
	keep_suspended(before, &now);
	look_for_missing(request, before, &now);
	samples_free(before);
	*before = now;
	return r;
}

/*
 * The control node is readable when device-mapper had an event since it was armed; it is armed before
 * the volumes are looked at, so that no event is lost in between.
 */
static void arm(int control)
{
	struct dm_ioctl command = {
		.version = { DM_VERSION_MAJOR, 0, 0 },
		.data_size = sizeof(command),
	};

	if (control >= 0)
		ioctl(control, DM_DEV_ARM_POLL, &command);
}

static int watch(struct request *request)
{
	struct pollfd control = {
		.fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC), .events = POLLIN,
	};
	struct samples before = { 0 };
	bool first = true;
	int r = 0;

	while (!stopped) {
		arm(control.fd);
		r = take_turn(request, &before);
		if (r && first)
			break;
		first = false;
		if (!stopped)
			poll(&control, 1, (int)request->interval * 1000);
	}
	samples_free(&before);
	if (control.fd >= 0)
		close(control.fd);
	return first ? r : 0;
}

static int once(struct request *request)
{
	struct samples none = { 0 };
	int r = take_turn(request, &none);

	samples_free(&none);
	if (!r && !request->reported && !request->json)
		printf("all is well\n");
	return r;
}

/* --- the command --------------------------------------------------------------------------- */

static int parse(struct request *request)
{
	const char *interval = args_get(request->args, "interval");

	request->hook = args_get(request->args, "hook");
	request->mail = args_get(request->args, "mail");
	request->json = args_has(request->args, "json");
	request->interval = INTERVAL;
	if (interval && (parse_number(interval, &request->interval) || !request->interval ||
			 request->interval > MAX_INTERVAL)) {
		fail("--interval %s: expected seconds, 1 to %d", interval, MAX_INTERVAL);
		return -1;
	}
	if (request->hook && (request->hook[0] != '/' || access(request->hook, X_OK))) {
		fail("--hook %s: expected the absolute path of a program", request->hook);
		return -1;
	}
	if (request->mail && (!*request->mail || strpbrk(request->mail, "\n\r"))) {
		fail("--mail: expected an address");
		return -1;
	}
	return 0;
}

/* The event of --test. */
static void test_event(struct request *request)
{
	struct sample sample = { .name = request->args->nr_operands ?
						 request->args->operands[0] :
						 (char *)"test" };
	struct event event = { "test", &sample, -1, "this is a test: nothing has happened" };

	report(&event, request);
}

static enum exit_status run(const struct args *args)
{
	struct request request = { .args = args };
	struct sigaction action = { .sa_handler = stop }, ignore = { .sa_handler = SIG_IGN };
	int r = 0;

	if (parse(&request))
		return USAGE;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	if (args_has(args, "test"))
		test_event(&request);
	else if (args_has(args, "once"))
		r = once(&request);
	else
		r = watch(&request);
	return r ? FAILED : DONE;
}

static const struct option_def options[] = {
	{ "hook", "PROGRAM", "run it for each event" },
	{ "mail", "ADDRESS", "mail each event (" SENDMAIL ")" },
	{ "interval", "S", "look at least this often, in seconds (60)" },
	{ "once", NULL, "report what is wrong now, and end" },
	{ "test", NULL, "report a test event, and end" },
	{ NULL, NULL, NULL },
};

const struct command monitor_command = {
	.name = "monitor",
	.synopsis = "[NAME]... [OPTION]...",
	.summary = "Reports legs that go out, stall, sit out or come back, mismatches, held writes, failed logs",
	.details =
		"It prints a line for each event, and goes on until it is stopped. What is wrong when it begins\n"
		"is reported too. PROGRAM gets the event, the name of the volume and the device of the leg as\n"
		"arguments, and HEDGE_EVENT, HEDGE_VOLUME, HEDGE_TARGET, HEDGE_LEG, HEDGE_DEVICE and\n"
		"HEDGE_MESSAGE in its environment. Events: leg-out leg-error leg-back leg-stalled leg-answers\n"
		"leg-sitting leg-returns mismatches writes-held writes-go-on log-failed log-back volume-gone\n"
		"test.",
	.options = options,
	.example = "hedgectl monitor --mail root",
	.max_operands = 1000,
	.run = run,
};
