// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl top: what the volumes do, anew each second: rates of the interval for each volume and leg.
 *
 * Each turn takes a sample of every target (sample.c), compares it with that of the turn before and
 * prints the lines that page.c makes of the two; what is new has nothing to compare with and appears
 * a turn later. On a terminal ncurses shows the lines, elsewhere they are printed.
 */
#include <json.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "page.h"

#define MAX_INTERVAL 3600

struct request {
	const char *name;	/* of a volume, or NULL: all */
	uint64_t interval, count;	/* seconds; turns, 0: no end */
	bool json;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* --- samples -------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static int turn_read(const struct request *request, struct samples *turn)
{
	return samples_read(request->name ? &request->name : NULL, request->name ? 1 : 0, now_ns(),
			    turn);
}

static void make_page(const struct samples *before, const struct samples *now, int width,
		      struct page *page)
{
	*page = (struct page){ 0 };
	for (int i = 0; i < now->count; i++) {
		const struct sample *old = samples_before(before, &now->items[i]);

		if (old)
			page_target(page, old, &now->items[i], width);
	}
}

/* --- lines -------------------------------------------------------------------------------- */

static struct json_object *leg_json(const struct sample *old, const struct sample *now, int leg)
{
	static const char *const attrs[] = { "inflight", "queued", "oldest_us", "sitting", "stalled" };
	struct json_object *object = json_object_new_object();
	double seconds = (double)(now->ns - old->ns) / 1e9;
	char health[2] = { now->status.health[leg] };
	struct histogram copies;
	uint64_t value;

	sample_copies(old, now, leg, &copies);
	json_add_u64(object, "leg", leg);
	json_add_text(object, "device", now->status.devices[leg]);
	json_add_text(object, "health", health);
	json_add_real(object, "copies_per_s", (double)copies.total / seconds, 3);
	json_add_real(object, "bytes_per_s", (double)sample_bytes(old, now, leg) / seconds, 0);
	if (copies.total) {
		json_add_u64(object, "p50_ns", histogram_percentile(&copies, 50));
		json_add_u64(object, "p99_ns", histogram_percentile(&copies, 99));
		json_add_u64(object, "p99_9_ns", histogram_percentile(&copies, 99.9));
	} else {
		json_object_object_add(object, "p50_ns", NULL);
		json_object_object_add(object, "p99_ns", NULL);
		json_object_object_add(object, "p99_9_ns", NULL);
	}
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		if (sample_leg_number(now, leg, attrs[i], &value))
			json_add_u64(object, attrs[i], value);
		else
			json_object_object_add(object, attrs[i], NULL);
	}
	histogram_free(&copies);
	return object;
}

static struct json_object *target_json(const struct sample *old, const struct sample *now)
{
	static const char *const counters[] = { "reads", "hedged", "won", "extra", "wasted",
						"rescued" };
	struct json_object *object = json_object_new_object(), *legs = json_object_new_array();
	double seconds = (double)(now->ns - old->ns) / 1e9;

	json_add_text(object, "name", now->name);
	json_add_u64(object, "target", now->target);
	json_add_value(object, "policy", kv_get(&now->status.fields, "policy"));
	json_add_value(object, "tau_us", kv_get(&now->status.fields, "tau_us"));
	json_add_real(object, "seconds", seconds, 3);
	json_add_u64(object, "bytes", sample_bytes(old, now, -1));
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		json_add_u64(object, counters[i], sample_rise(old, now, counters[i]));
	for (int i = 0; i < now->status.nr_legs; i++)
		json_object_array_add(legs, leg_json(old, now, i));
	json_object_object_add(object, "legs", legs);
	return object;
}

static void print_json(const struct samples *before, const struct samples *now)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < now->count; i++) {
		const struct sample *old = samples_before(before, &now->items[i]);

		if (old)
			json_object_array_add(array, target_json(old, &now->items[i]));
	}
	json_print(array);
}

static void print_lines(const struct samples *before, const struct samples *now)
{
	time_t clock = time(NULL);
	char text[32];
	struct page page;

	strftime(text, sizeof(text), "%F %T", localtime(&clock));
	make_page(before, now, plot_width(), &page);
	printf("%s\n", text);
	if (!now->count)
		printf("no device has a hedge target\n");
	for (int i = 0; i < page.count; i++)
		puts(page.lines[i].text);
	page_free(&page);
}

/* At the end of the interval, or earlier if told to stop. */
static void wait_interval(const struct request *request)
{
	struct timespec left = { .tv_sec = (time_t)request->interval };

	if (!stopped)
		nanosleep(&left, NULL);
}

static int run_batch(const struct request *request)
{
	struct samples before, now;
	int r = turn_read(request, &before);

	for (uint64_t i = 0; !r && (!request->count || i < request->count); i++) {
		wait_interval(request);
		if (stopped)
			break;
		r = turn_read(request, &now);
		if (r) {
			samples_free(&now);
			break;
		}
		if (request->json)
			print_json(&before, &now);
		else
			print_lines(&before, &now);
		if (fflush(stdout))
			r = -1;
		samples_free(&before);
		before = now;
	}
	samples_free(&before);
	return r;
}

/* --- the screen ------------------------------------------------------------------------------ */

static void draw(const struct page *page, int first, const struct samples *now,
		 const struct request *request)
{
	static const int styles[] = {
		[STYLE_PLAIN] = A_NORMAL, [STYLE_BOLD] = A_BOLD, [STYLE_HEADING] = A_REVERSE,
	};
	time_t clock = time(NULL);
	char text[32];

	strftime(text, sizeof(text), "%T", localtime(&clock));
	erase();
	mvprintw(0, 0, "hedgectl top  %s  %d target%s  every %llu s  q quits, arrows scroll", text,
		 now->count, now->count == 1 ? "" : "s", (unsigned long long)request->interval);
	if (message_kept()[0])
		mvaddnstr(1, 0, message_kept(), COLS);
	else if (!now->count)
		mvaddnstr(1, 0, "no device has a hedge target", COLS);
	for (int i = first, y = 2; i < page->count && y < LINES; i++, y++) {
		attrset(styles[page->lines[i].style]);
		mvaddnstr(y, 0, page->lines[i].text, COLS);
		attrset(A_NORMAL);
	}
	refresh();
}

static void scroll_to(int *first, int by, const struct page *page)
{
	int last = page->count - (LINES - 2);

	*first += by;
	if (*first > last)
		*first = last;
	if (*first < 0)
		*first = 0;
}

/* Keys until the interval is over; false when the user quits. */
static bool handle_keys(const struct request *request, const struct samples *before,
			const struct samples *now, int *first)
{
	uint64_t end = now_ns() + request->interval * 1000000000ull, at;
	struct page page;
	bool go_on = true;

	make_page(before, now, COLS, &page);
	scroll_to(first, 0, &page);
	draw(&page, *first, now, request);
	while (go_on && !stopped && (at = now_ns()) < end) {
		timeout((int)((end - at) / 1000000 + 1));
		switch (getch()) {
		case 'q':
		case 'Q':
			go_on = false;
			break;
		case KEY_RESIZE:
			page_free(&page);
			make_page(before, now, COLS, &page);
			scroll_to(first, 0, &page);
			break;
		case KEY_UP:
			scroll_to(first, -1, &page);
			break;
		case KEY_DOWN:
			scroll_to(first, 1, &page);
			break;
		case KEY_PPAGE:
			scroll_to(first, 2 - LINES, &page);
			break;
		case KEY_NPAGE:
			scroll_to(first, LINES - 2, &page);
			break;
		default:
			continue;
		}
		draw(&page, *first, now, request);
	}
	page_free(&page);
	return go_on && !stopped;
}

/* A turn that can not be read shows why, and the next one tries again: devices come and go. */
static int run_screen(const struct request *request)
{
	struct samples before = { 0 }, now;
	SCREEN *screen = newterm(NULL, stdout, stdin);
	uint64_t turns = 0;
	int first = 0;
	bool go_on = true;

	if (!screen || !tigetstr("cup")) {
		if (screen) {
			endwin();
			delscreen(screen);
		}
		note("the terminal \"%s\" is not known, or its cursor can not be moved: printing lines instead",
		     getenv("TERM") ? getenv("TERM") : "");
		return run_batch(request);
	}
	messages_keep(true);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	while (go_on && (!request->count || turns++ <= request->count)) {
		messages_keep(true);
		turn_read(request, &now);
		go_on = handle_keys(request, &before, &now, &first);
		samples_free(&before);
		before = now;
	}
	samples_free(&before);
	endwin();
	delscreen(screen);
	messages_keep(false);
	return 0;
}

/* --- the command ------------------------------------------------------------------------------- */

static int parse(const struct args *args, struct request *request)
{
	const char *interval = args_get(args, "interval"), *count = args_get(args, "count");

	request->name = args->nr_operands ? args->operands[0] : NULL;
	request->json = args_has(args, "json");
	request->interval = 1;
	if (interval && (parse_number(interval, &request->interval) || !request->interval ||
			 request->interval > MAX_INTERVAL)) {
		fail("--interval %s: expected seconds, 1 to %d", interval, MAX_INTERVAL);
		return -1;
	}
	if (count && parse_number(count, &request->count)) {
		fail("--count %s: expected a number of turns; 0 goes on for ever", count);
		return -1;
	}
	return 0;
}

static enum exit_status run(const struct args *args)
{
	struct sigaction action = { .sa_handler = stop };
	struct request request = { 0 };
	struct samples turn;
	int r;

	if (parse(args, &request))
		return USAGE;
	/* What is wrong from the start is said on a plain terminal. */
	r = turn_read(&request, &turn);
	samples_free(&turn);
	if (r)
		return FAILED;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (args_has(args, "batch") || request.json || !isatty(STDOUT_FILENO))
		r = run_batch(&request);
	else
		r = run_screen(&request);
	return r ? FAILED : DONE;
}

static const struct option_def options[] = {
	{ "interval", "S", "seconds between two turns (1)" },
	{ "count", "N", "end after N turns (0: never)" },
	{ "batch", NULL, "print lines, as without a terminal" },
	{ NULL, NULL, NULL },
};

const struct command top_command = {
	.name = "top",
	.synopsis = "[NAME] [OPTION]...",
	.summary = "Shows what the volumes do, anew each second",
	.details =
		"COPIES/S and the percentiles are of the read copies that completed in the interval, FLY those\n"
		"that are out now, QUEUE those that wait, OLDEST the age of the oldest one out. H is the health,\n"
		"as in list. Keys: q quits, the arrows and page keys scroll.",
	.options = options,
	.example = "hedgectl top vol0 --batch --count 1",
	.max_operands = 1,
	.run = run,
};
