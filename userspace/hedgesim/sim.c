// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: a hedged volume as the module runs it, with servers for legs.
 *
 * A job arrives, and is one task or several. The copies of each task are started
 * or wait, see job.h. Jobs and tasks wait in up to three heaps:
 *
 *	waiting	the shared queue: jobs with tasks that want to be started, in the
 *		order of the module
 *	clock	tasks whose timeout is to come
 *	started	tasks that may get another copy, in the order of the module
 *
 * Which of the first of `waiting' and `started' is next, and where it goes, is
 * decided by the module's functions (task.h, policy.h).
 *
 * When a task is done its other copies are cancelled where they wait, and, if
 * copies can be killed, taken out of the servers. Otherwise those run to their
 * end, and only then is the task given back.
 *
 * Servers in which a slot came free are collected in `ready' until the event is
 * over, and then start what waits: dispatch(). Until then the choice does not
 * look at them.
 *
 * What happens at the same instant happens in this order: completions, timeouts,
 * arrivals. A copy that takes just as long as the timeout has finished.
 */
#include <math.h>
#include <stdlib.h>

#include "budget.h"
#include "calendar.h"
#include "classify.h"
#include "heap.h"
#include "job.h"
#include "learn.h"
#include "list.h"
#include "memory.h"
#include "pick.h"
#include "rng.h"
#include "service.h"
#include "sim.h"

/* More jobs than this in the system: it will not settle. */
#define MAX_JOBS(slots) (20 * (u64)(slots) + 100000)

#define ANSWERS 8192

/* Whether what is left of a service is below the removal, for times about those. */
struct answer {
	u32 about[2];
	bool below;
};

struct sim {
	const struct sim_config *config;
	struct sim_result *result;
	struct pick pick;
	struct learn learn;
	struct calendar calendar;
	struct heap waiting, started, clock;
	struct job *first;		/* arrives, and nothing is served before it */
	struct pool jobs, tasks, copies, legs;
	struct rng arrivals, sizes, services, others;
	double now, next_arrival, gap, next_tick, stretch, epoch;
	u64 at;				/* in a file of arrivals */
	u32 depth, budget;
	bool shared, at_once, learns, known_work;
	u64 queued, busy, in_system;
	u32 *ready, nr_ready, *chosen, *except;
	/* What the choice was offered and could not use. */
	struct job **aside_jobs;
	struct task **aside_tasks;
	u32 room_jobs, room_tasks;
	struct copy **running;		/* of each server, if probes preempt */
	double *present;		/* for llw: work, or when it will be done */
	struct answer *answers;
	u64 arrived, measured, per_batch, warm;
	/* Counted while the window between warm-up and last job is open. */
	bool window;
	double opened, busy_area;
	/* Jobs in the system times time, while each quarter of the jobs arrived. */
	u32 quarter;
	double jobs_area[4], quarter_began[5];
	u64 sent, messages;
};

static u32 knob(const struct sim *s, enum hedge_knob k)
{
	return s->config->knobs.val[k];
}

/* --- jobs, tasks and copies -------------------------------------------------------- */

static struct copy *copy_new(struct sim *s, struct task *task, bool hedge)
{
	struct copy *c = task->first_used ? pool_get(&s->copies) : &task->first;

	task->first_used = true;
	c->task = task;
	c->hedge = hedge;
	c->probe = !hedge && knob(s, HEDGE_PROBE);
	c->went = false;
	c->place = QUEUED;
	c->end = -INFINITY;
	c->next = task->copies;
	task->copies = c;
	task->nr++;
	return c;
}

static struct task *task_new(struct sim *s, struct job *job)
{
	struct task *task = job->first_used ? pool_get(&s->tasks) : &job->first;

	job->first_used = true;
	task->job = job;
	task->copies = NULL;
	task->size = job->size;
	task->nr = task->out = task->starts = task->hedges = 0;
	task->needed = s->config->need;
	task->started = task->clock = 0;
	task->clocked = task->done = task->probed = task->first_used = false;
	task->next = job->tasks;
	job->tasks = task;
	job->alive++;
	return task;
}

static void task_free(struct sim *s, struct task *task)
{
	struct job *job = task->job;
	struct task **p = &job->tasks;

	while (*p != task)
		p = &(*p)->next;
	*p = task->next;
	if (task == &job->first)
		job->first_used = false;
	else
		pool_put(&s->tasks, task);
	if (--job->alive || job->unfinished)
		return;
	if (job->legs)
		pool_put(&s->legs, job->legs);
	pool_put(&s->jobs, job);
}

/* Gives a copy back that is nowhere any more, and its task after the last one. */
static void copy_free(struct sim *s, struct copy *c)
{
	struct task *task = c->task;
	struct copy **p = &task->copies;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	task->nr--;
	if (c == &task->first)
		task->first_used = false;
	else
		pool_put(&s->copies, c);
	if (task->done && !task->nr)
		task_free(s, task);
}

/* The task of the shared queue that wants more copies. */
static struct task *wants_more(const struct job *job)
{
	return job->wants ? job->tasks : NULL;
}

/* --- the order of jobs and tasks ---------------------------------------------------- */

static struct hedge_task_view view_of(const struct sim *s, const struct job *job, u32 copies)
{
	return (struct hedge_task_view) {
		.arrival_ns = job->arrival * s->learn.scale,
		.due_ns = job->due,
		.unassigned = job->unassigned,
		.copies = copies,
	};
}

/* Puts a job where it belongs in the shared queue. */
static void queue_job(struct sim *s, struct job *job)
{
	struct hedge_task_view view = view_of(s, job, 0);

	heap_set(&s->waiting, &job->waiting, hedge_rank_waiting(&s->config->knobs, &view));
}

/* Puts a task where it belongs among those that may get another copy. */
static void offer_task(struct sim *s, struct task *task)
{
	struct hedge_task_view view = view_of(s, task->job, task->out);

	heap_set(&s->started, &task->started, hedge_rank_started(&s->config->knobs, &view));
}

/* A copy of a task has been handed to a server, the first one or another. */
static void task_starts(struct sim *s, struct task *task)
{
	struct job *job = task->job;

	if (++task->starts == 1 && !--job->unassigned)
		job->started = s->now;
	if (!s->at_once)
		return;
	if (!task->done)
		offer_task(s, task);
	if (task->starts == 1 && knob(s, HEDGE_ORDER) == HEDGE_FUT)
		for (task = job->tasks; task; task = task->next)
			if (task->started)
				offer_task(s, task);
}

/* --- one server ------------------------------------------------------------------- */

static bool has_slot(const struct sim *s, u32 server)
{
	return !s->depth || s->pick.server[server].view.inflight < s->depth;
}

static double speed(const struct sim *s, const struct copy *c, u32 server)
{
	double speed = s->config->speeds ? s->config->speeds[server] : 1;

	return s->config->types ? speed * s->config->types[c->task->job->type][server] : speed;
}

/* How long a copy with a size of 1 takes at a server. */
static double slowness(struct sim *s, const struct copy *c, u32 server)
{
	return law_sample(&s->config->service, &s->services) / speed(s, c, server);
}

static double service_of(const struct sim *s, const struct copy *c)
{
	double size = c->task->size;

	return c->slow * (c->probe && s->config->probe < size ? s->config->probe : size);
}

/* How much work the choice sees at a server (llw). */
static void see_work(struct sim *s, u32 server)
{
	struct hedge_leg_view *view = &s->pick.server[server].view;

	if (!s->present)
		return;
	if (s->known_work)
		/* Until then; where nothing is, nothing is left. */
		view->work = view->inflight + view->queued ?
			     1 + (u64)(s->present[server] * s->learn.scale) : 0;
	else
		view->work = s->present[server] * max(view->service_us, 1U);
}

/* A copy comes to a server, to its queue or its slots. */
static void add_work(struct sim *s, struct copy *c, u32 server)
{
	if (!s->present || c->went)
		return;
	if (s->known_work) {
		c->slow = slowness(s, c, server);
		c->end = -service_of(s, c);
		s->present[server] = fmax(s->present[server], s->now) - c->end / s->config->slots;
	} else {
		/* In parts of a usual size, so that the key is whole. */
		s->present[server] += c->task->size / s->config->size.mean * 1024;
	}
}

/* A copy has left a server. */
static void drop_work(struct sim *s, struct copy *c)
{
	if (!s->present)
		return;
	if (s->known_work) {
		double left = c->place == SERVED ? c->end - s->now :
			      isfinite(c->end) ? -c->end : service_of(s, c);

		s->present[c->server] -= left / s->config->slots;
	} else {
		s->present[c->server] = fmax(0, s->present[c->server] -
					     c->task->size / s->config->size.mean * 1024);
	}
	see_work(s, c->server);
}

static void serve(struct sim *s, struct copy *c)
{
	struct server *at = &s->pick.server[c->server];
	double service = -c->end;

	if (!isfinite(service)) {
		c->slow = slowness(s, c, c->server);
		service = service_of(s, c);
	}
	c->place = SERVED;
	at->busy++;
	s->busy++;
	calendar_add(&s->calendar, s->now + service, c);
	if (s->running)
		s->running[c->server] = c;
}

static double timeout_at(const struct sim *s, u32 server)
{
	return s->config->taus ? s->config->taus[server] : s->learn.timeout;
}

static void set_clock(struct sim *s, struct task *task, double from, u32 server)
{
	double tau = timeout_at(s, server);

	if (s->at_once || !isfinite(tau) || task->hedges >= knob(s, HEDGE_MAX_HEDGES))
		return;
	heap_set(&s->clock, &task->clock, heap_time(fmax(from + tau, s->now)));
}

/* Whether a copy will complete its task before the timeout could see it. */
static bool in_time(const struct sim *s, const struct copy *c)
{
	return c->place == SERVED && c->task->needed == 1 && !c->probe && !s->running &&
	       c->end <= s->now + timeout_at(s, c->server);
}

/* Hands a copy to its server. The caller updates the view of the server. */
static void hand(struct sim *s, struct copy *c, u32 server)
{
	struct server *at = &s->pick.server[server];
	struct task *task = c->task;

	c->server = server;
	task->out++;
	at->view.inflight++;
	if (at->busy < s->config->slots) {
		serve(s, c);
	} else {
		c->place = HANDED;
		list_add_tail(&at->handed, &c->list);
	}
	if (c->went)
		return;
	c->went = true;
	c->handed = s->now;
	c->depth = min(at->view.inflight, COPY_DEEP);
	s->sent++;
	task_starts(s, task);
	/* The next hedge is due after the one before has started, or was moved. */
	if (c->hedge && !task->done && !task->clock && !task->started)
		set_clock(s, task, s->now, server);
	if (!task->clocked && !task->done && knob(s, HEDGE_TIMEOUT_FROM) == HEDGE_FROM_START) {
		task->clocked = true;
		if (!in_time(s, c))
			set_clock(s, task, s->now, server);
	}
}

static bool budget_pays(const struct sim *s)
{
	return !s->config->budget || hedge_budget_pays(s->budget);
}

/*
 * Starts a copy if the budget allows it: only one beside those needed costs, and
 * one that comes too late (with "cancel none").
 */
static bool start(struct sim *s, struct copy *c, u32 server)
{
	if ((c->task->out || c->task->done) && c->task->starts >= s->config->need && !c->went) {
		if (!budget_pays(s))
			return false;
		if (s->config->budget)
			s->budget -= HEDGE_COPY_COST;
	}
	hand(s, c, server);
	return true;
}

static bool goes_first(const struct sim *s, const struct copy *c)
{
	return c->probe && knob(s, HEDGE_PROBE_PRIORITY);
}

/* Queues a copy, a probe with priority behind other probes only. */
static void enqueue(struct sim *s, struct copy *c, u32 server, bool first)
{
	struct server *at = &s->pick.server[server];
	struct list *before = &at->queue;

	if (first || goes_first(s, c))
		for (before = at->queue.next; before != &at->queue; before = before->next)
			if (!list_entry(before, struct copy, list)->probe)
				break;
	c->server = server;
	c->place = QUEUED;
	list_add_tail(before, &c->list);
	at->view.queued++;
	s->queued++;
}

static void ready(struct sim *s, u32 server)
{
	if (!s->pick.server[server].ready)
		s->ready[s->nr_ready++] = server;
	s->pick.server[server].ready = true;
}

/* A slot came free: the next copy that was handed over gets it. */
static void free_slot(struct sim *s, u32 server)
{
	struct server *at = &s->pick.server[server];

	at->busy--;
	s->busy--;
	at->view.inflight--;
	if (s->running)
		s->running[server] = NULL;
	if (!list_empty(&at->handed)) {
		struct copy *next = list_entry(at->handed.next, struct copy, list);

		list_del(&next->list);
		serve(s, next);
	}
	ready(s, server);
}

/* Takes a copy out of its server. */
static void leave(struct sim *s, struct copy *c)
{
	drop_work(s, c);
	c->task->out--;
	if (c->place == HANDED) {
		list_del(&c->list);
		s->pick.server[c->server].view.inflight--;
		ready(s, c->server);
	} else {
		calendar_remove(c);
		free_slot(s, c->server);
	}
	see_work(s, c->server);
}

/* Makes room for a probe: what is served goes on later, where it was. */
static bool preempt(struct sim *s, u32 server)
{
	struct copy *c = s->running ? s->running[server] : NULL;

	if (!c || c->probe)
		return false;
	c->end = s->now - c->end;
	c->task->out--;
	free_slot(s, server);
	enqueue(s, c, server, true);
	return true;
}

/* Starts a copy or lets it wait. Returns false if the budget does not allow it. */
static bool place(struct sim *s, struct copy *c, u32 server)
{
	struct hedge_leg_view *view = &s->pick.server[server].view;
	bool started = true;

	s->messages++;
	c->server = server;
	add_work(s, c, server);
	if ((has_slot(s, server) && !view->queued) || (goes_first(s, c) && preempt(s, server)))
		started = start(s, c, server);
	else
		enqueue(s, c, server, false);
	see_work(s, server);
	pick_update(&s->pick, server);
	return started;
}

static void dequeue(struct sim *s, struct copy *c)
{
	list_del(&c->list);
	s->pick.server[c->server].view.queued--;
	s->queued--;
}

/* --- ends of copies ------------------------------------------------------------------- */

static void learn(struct sim *s, const struct copy *c, double until)
{
	u32 *service_us = &s->pick.server[c->server].view.service_us;
	u32 balance = knob(s, HEDGE_BALANCE);

	if (s->learns)
		learn_copy(&s->learn, c->server, until - c->handed, c->depth);
	if (balance == HEDGE_BALANCE_LATENCY || balance == HEDGE_BALANCE_LLW)
		*service_us = hedge_service_update(*service_us, (until - c->handed) * s->learn.scale);
	if (s->pick.nr <= HEDGE_MAX_LEGS)
		s->learn.last[c->server] = s->now;
}

/* A time within 1 %, as a whole number above 0. */
static u32 rounded(const struct sim *s, double time)
{
	return fmax(2000 + 100 * log(time * s->learn.scale / LEARN_SERVICE_NS), 1);
}

/*
 * Whether a started copy is worth killing: not if it ends before it is removed.
 * The answer is kept for all times that are about the same.
 */
static bool worth_killing(struct sim *s, const struct copy *c)
{
	double scale, elapsed;
	struct answer *answer;
	u32 about[2];

	if (!s->config->removal || c->place != SERVED)
		return true;
	scale = c->task->size / speed(s, c, c->server);
	elapsed = service_of(s, c) - (c->end - s->now);
	about[0] = rounded(s, scale);
	about[1] = rounded(s, fmax(elapsed, 0));
	answer = &s->answers[(about[0] * 977 + about[1]) % ANSWERS];
	if (answer->about[0] != about[0] || answer->about[1] != about[1])
		*answer = (struct answer) {
			.about = { about[0], about[1] },
			.below = law_residual_below(&s->config->service, scale, fmax(elapsed, 0),
						    s->config->removal),
		};
	return !answer->below;
}

/* Takes a started copy out; its slot may stay busy for a while with that. */
static void kill_copy(struct sim *s, struct copy *c)
{
	double end;

	if (c->place != SERVED) {
		leave(s, c);
		return;
	}
	end = c->end;
	/* What it would have taken, else the law that is learnt were cut. */
	if (s->learns)
		learn_copy(&s->learn, c->server, end - c->handed, c->depth);
	if (s->config->resume && c->slow > 0)
		c->task->size = (end - s->now) / c->slow;
	if (!s->config->removal) {
		leave(s, c);
		return;
	}
	drop_work(s, c);
	c->task->out--;
	calendar_remove(c);
	calendar_put(&s->calendar, (struct calendar_entry) {
		.time = s->now + law_sample(s->config->removal, &s->others), .server = c->server,
	});
}

/* Cancels or kills a copy. The task may be gone after that. */
static void discard(struct sim *s, struct copy *c)
{
	s->messages++;
	if (c->place == QUEUED) {
		dequeue(s, c);
		drop_work(s, c);
		pick_update(&s->pick, c->server);
	} else {
		kill_copy(s, c);
	}
	copy_free(s, c);
}

/* Cancels the copies of a task that wait, and kills others than @keep if told to. */
static void discard_copies(struct sim *s, struct task *task, const struct copy *keep, bool kill)
{
	struct copy *c, *next;

	for (c = task->copies; c; c = next) {
		next = c->next;
		if (c != keep && (c->place == QUEUED || (kill && worth_killing(s, c))))
			discard(s, c);
	}
}

/* --- choices ------------------------------------------------------------------------- */

/* Servers for copies of a task, or of one that is to come if there is none. */
static u32 choose(struct sim *s, const struct job *job, const struct task *task, struct wish wish)
{
	const struct copy *c;

	for (c = task ? task->copies : NULL; c; c = c->next)
		s->except[wish.nr_except++] = c->server;
	wish.except = s->except;
	wish.among = job->legs;
	wish.nr_among = job->legs ? s->config->eligible : 0;
	return pick_choose(&s->pick, &wish, s->chosen);
}

/* Of the chosen servers keeps those that are idle: the module's decision. */
static u32 keep_idle(struct sim *s, u32 nr)
{
	u32 i, n = 0, idle = 0;

	for (i = 0; i < nr; i++)
		if (s->pick.server[s->chosen[i]].view.inflight < max(s->depth, 1U))
			idle |= 1U << i;
	s->messages += nr;
	idle = hedge_keep_idle(nr < 32 ? (1U << nr) - 1 : ~0U, idle, &s->pick.random);
	for (i = 0; i < nr; i++)
		if (idle & (1U << i))
			s->chosen[n++] = s->chosen[i];
	return n;
}

/* --- hedges ---------------------------------------------------------------------------- */

/* A copy that had been queued cannot be paid for: a hedge is due again. */
static void drop_unpaid(struct sim *s, struct copy *c)
{
	struct task *task = c->task;

	drop_work(s, c);
	if (c->hedge && !task->done) {
		task->hedges--;
		offer_task(s, task);
	}
	copy_free(s, c);
}

/*
 * Under "arrival" a copy that still waits at the timeout is moved. Where copies
 * can be killed, one that is sent on without regard to idleness replaces what
 * the task has: that is speculative load balancing.
 */
static bool replaces(const struct sim *s, const struct task *task)
{
	if (knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_NONE)
		return false;
	if (s->config->kill && knob(s, HEDGE_HEDGE_TO) == HEDGE_ANY)
		return true;
	return knob(s, HEDGE_TIMEOUT_FROM) == HEDGE_FROM_ARRIVAL && !task->out;
}

enum outcome { HEDGED, NO_SERVER, NEVER };

/* Sends another copy of a task, which is the first of those that may get one. */
static enum outcome hedge(struct sim *s, struct task *task)
{
	bool replace = replaces(s, task), again = replace && s->config->reroute_any;
	struct wish wish = {
		.idle = knob(s, HEDGE_HEDGE_TO) == HEDGE_IDLE, .hedge = true, .wanted = 1,
	};
	struct job *job = task->job;
	struct copy *c;
	u32 server;

	if (task->hedges >= knob(s, HEDGE_MAX_HEDGES) ||
	    (task->nr >= (job->legs ? s->config->eligible : s->pick.nr) && !again))
		return NEVER;
	if (!choose(s, job, again ? NULL : task, wish))
		return NO_SERVER;
	server = s->chosen[0];
	heap_remove(&s->started, &task->started);
	task->hedges++;
	c = copy_new(s, task, true);
	if (replace)
		discard_copies(s, task, c, true);
	if (!place(s, c, server))
		drop_unpaid(s, c);
	else if (replace)
		set_clock(s, task, s->now, server);
	return HEDGED;
}

/* --- what starts when a slot is free ------------------------------------------------------ */

static void serve_first(struct sim *s, u32 server)
{
	struct copy *c = list_entry(s->pick.server[server].queue.next, struct copy, list);

	dequeue(s, c);
	if (!start(s, c, server))
		drop_unpaid(s, c);
	else if (knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_START)
		discard_copies(s, c->task, c, false);
}

/* How many copies a task from the shared queue gets: some only of servers that are idle when it arrives. */
static u32 copies_of(const struct sim *s, const struct job *job)
{
	if (knob(s, HEDGE_COPIES_TO) == HEDGE_IDLE && job != s->first)
		return 1;
	return knob(s, HEDGE_COPIES);
}

/* Starts a task of a job from the shared queue at a server. */
static void serve_job(struct sim *s, struct job *job, u32 server)
{
	struct task *task = wants_more(job);
	struct copy *c;
	bool started;

	if (!task) {
		task = task_new(s, job);
		if (knob(s, HEDGE_TIMEOUT_FROM) == HEDGE_FROM_ARRIVAL)
			set_clock(s, task, job->arrival, server);
	}
	c = copy_new(s, task, false);
	job->wants = true;
	s->messages++;
	c->server = server;
	add_work(s, c, server);
	started = start(s, c, server);
	if (!started) {
		drop_work(s, c);
		copy_free(s, c);
	}
	see_work(s, server);
	pick_update(&s->pick, server);
	if (!started || task->starts >= copies_of(s, job) ||
	    knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_START)
		job->wants = false;
	if (job->wants || job->unassigned)
		queue_job(s, job);
	else
		heap_remove(&s->waiting, &job->waiting);
}

/* The first of the tasks that may get another copy, if one could be sent now. */
static struct task *first_started(const struct sim *s)
{
	struct task *task;

	if (!s->started.nr || (knob(s, HEDGE_HEDGE_TO) == HEDGE_IDLE && !s->pick.idle.nr))
		return NULL;
	task = heap_entry(heap_first(&s->started), struct task, started);
	/* What takes another's place costs nothing, unless that is not worth killing. */
	return (replaces(s, task) && !s->config->removal) || budget_pays(s) ? task : NULL;
}

static void *grow(void *array, u32 *room, u32 nr, size_t size)
{
	if (nr < *room)
		return array;
	*room = *room ? 2 * *room : 64;
	array = realloc(array, *room * size);
	if (!array)
		abort();
	return array;
}

/*
 * Gives idle servers what waits and what may get another copy, in the order that
 * the module says. What no idle server can take is set aside, and put back.
 */
static void share(struct sim *s)
{
	const struct wish wish = { .idle = true, .wanted = 1 };
	u32 nr_jobs = 0, nr_tasks = 0;
	bool stuck = false;
	enum hedge_next next;

	do {
		struct job *job = NULL;
		struct task *task = first_started(s);
		enum outcome outcome;

		if (s->waiting.nr && s->pick.idle.nr && !stuck)
			job = heap_entry(heap_first(&s->waiting), struct job, waiting);
		next = hedge_next_task(&s->config->knobs, job ? heap_least(&s->waiting) : NULL,
				       task ? heap_least(&s->started) : NULL,
				       s->waiting.nr + nr_jobs || s->queued);
		if (next == HEDGE_NEXT_WAITING) {
			if (choose(s, job, wants_more(job), wish)) {
				serve_job(s, job, s->chosen[0]);
				continue;
			}
			/* If one that could go anywhere cannot, no other can. */
			stuck = !job->legs && !job->wants;
			heap_remove(&s->waiting, &job->waiting);
			s->aside_jobs = grow(s->aside_jobs, &s->room_jobs, nr_jobs, sizeof(job));
			s->aside_jobs[nr_jobs++] = job;
		} else if (next == HEDGE_NEXT_STARTED) {
			outcome = hedge(s, task);
			if (outcome == HEDGED)
				continue;
			heap_remove(&s->started, &task->started);
			if (outcome == NEVER)
				continue;
			s->aside_tasks = grow(s->aside_tasks, &s->room_tasks, nr_tasks, sizeof(task));
			s->aside_tasks[nr_tasks++] = task;
		}
		/* Killing may free slots: their own queues come first. */
	} while (next != HEDGE_NEXT_NONE && !s->nr_ready);

	while (nr_jobs)
		queue_job(s, s->aside_jobs[--nr_jobs]);
	while (nr_tasks)
		offer_task(s, s->aside_tasks[--nr_tasks]);
}

static void dispatch(struct sim *s)
{
	do {
		while (s->nr_ready) {
			u32 server = s->ready[--s->nr_ready];
			struct server *at = &s->pick.server[server];

			at->ready = false;
			while (has_slot(s, server) && !list_empty(&at->queue))
				serve_first(s, server);
			see_work(s, server);
			pick_update(&s->pick, server);
		}
		if (s->waiting.nr || s->started.nr)
			share(s);
	} while (s->nr_ready);
}

/* --- the events ------------------------------------------------------------------------------ */

static void arrive_at_servers(struct sim *s, struct job *job)
{
	const struct wish wish = { .wanted = knob(s, HEDGE_COPIES) };
	bool once = knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_START;
	struct task *task = task_new(s, job);
	u32 i, nr = choose(s, job, NULL, wish);

	if (nr > 1 && knob(s, HEDGE_COPIES_TO) == HEDGE_IDLE)
		nr = keep_idle(s, nr);
	if (knob(s, HEDGE_TIMEOUT_FROM) == HEDGE_FROM_ARRIVAL)
		set_clock(s, task, s->now, s->chosen[0]);
	for (i = 0; i < nr && !(once && task->starts); i++) {
		struct copy *c = copy_new(s, task, false);

		if (!place(s, c, s->chosen[i])) {
			drop_work(s, c);
			copy_free(s, c);
		}
	}
	if (once && task->starts)
		discard_copies(s, task, NULL, false);
}

static double next_arrival(struct sim *s)
{
	const struct sim_config *config = s->config;
	double time;

	if (!config->arrivals)
		return s->now - s->gap * log(rng_uniform(&s->arrivals));
	time = s->epoch + s->stretch * config->arrivals[s->at++];
	if (s->at == config->nr_arrivals) {
		s->at = 0;
		s->epoch = time;
	}
	return time;
}

static u32 number_of_tasks(const struct law *law, struct rng *rng)
{
	double k;

	if (!law)
		return 1;
	k = ceil(law_sample(law, rng));
	return fmin(fmax(k, 1), SIM_MAX_TASKS);
}

static u64 due_time(struct sim *s, const struct job *job)
{
	double due = s->config->due ? law_sample(s->config->due, &s->others) :
		     hedge_due_us(&s->config->knobs, HEDGE_DUE_BE);

	return (job->arrival + due) * s->learn.scale;
}

static u16 draw_type(struct sim *s)
{
	double u = rng_uniform(&s->others);
	u16 type = 0;

	while (type + 1U < s->config->nr_types && u >= s->config->shares[type])
		type++;
	return type;
}

/* Random servers that can serve a job. */
static u32 *draw_legs(struct sim *s)
{
	u32 *legs = pool_get(&s->legs), i, j;

	for (i = 0; i < s->config->eligible; i++) {
		legs[i] = rng_u64(&s->others) % s->pick.nr;
		for (j = 0; j < i && legs[j] != legs[i]; j++)
			;
		if (j < i)
			i--;
	}
	return legs;
}

static struct job *job_new(struct sim *s)
{
	const struct sim_config *config = s->config;
	struct job *job = pool_get(&s->jobs);
	u64 number = s->arrived++;

	job->arrival = s->now;
	job->size = config->size.kind == LAW_DET ? config->size.a : law_sample(&config->size, &s->sizes);
	job->tasks = NULL;
	job->waiting = job->alive = 0;
	job->first_used = job->wants = false;
	job->unassigned = job->unfinished = number_of_tasks(config->tasks, &s->others);
	job->due = knob(s, HEDGE_ORDER) == HEDGE_EDD ? due_time(s, job) : 0;
	job->type = config->types ? draw_type(s) : 0;
	job->legs = config->eligible ? draw_legs(s) : NULL;
	job->batch = number < s->warm || number >= config->jobs ? STATS_BATCHES :
		     (number - s->warm) / s->per_batch;
	return job;
}

/* A job comes to the shared queue. What copies wait for once it has arrived is no idle server. */
static void arrive_in_queue(struct sim *s, struct job *job)
{
	bool joins = knob(s, HEDGE_REPLICATE) == HEDGE_R;

	s->first = s->waiting.nr || (joins && s->started.nr) ? NULL : job;
	queue_job(s, job);
	dispatch(s);
	s->first = NULL;
	if (!job->wants || knob(s, HEDGE_COPIES_TO) != HEDGE_IDLE)
		return;
	job->wants = false;
	if (!job->unassigned)
		heap_remove(&s->waiting, &job->waiting);
}

static void arrive(struct sim *s)
{
	struct job *job = job_new(s);
	u32 i, nr = job->unfinished;

	s->in_system++;
	s->next_arrival = next_arrival(s);
	/* A task counts as a read. */
	if (s->config->budget && s->pick.nr > 1)
		s->budget = hedge_budget_credit(s->budget, nr * knob(s, HEDGE_BUDGET_PCT));
	if (s->shared) {
		arrive_in_queue(s, job);
		return;
	}
	for (i = 0; i < nr; i++)
		arrive_at_servers(s, job);
	dispatch(s);
}

static void record(struct sim *s, const struct job *job)
{
	s->in_system--;
	if (job->batch == STATS_BATCHES)
		return;
	stats_add(&s->result->stats, job->batch, s->now - job->arrival, job->started - job->arrival);
	s->measured++;
}

/* A task has what it needs, the last of it from a copy that is still there. */
static void finish_task(struct sim *s, struct task *task, const struct copy *last)
{
	struct job *job = task->job;

	heap_remove(&s->started, &task->started);
	heap_remove(&s->clock, &task->clock);
	if (wants_more(job) == task) {
		job->wants = false;
		if (!job->unassigned)
			heap_remove(&s->waiting, &job->waiting);
	}
	if (knob(s, HEDGE_CANCEL) != HEDGE_CANCEL_NONE)
		discard_copies(s, task, last, s->config->kill);
	task->done = true;
	if (!--job->unfinished)
		record(s, job);
}

/* The first probe is done: what it probed for follows, with the same slowness. */
static void probe_wins(struct sim *s, struct copy *c)
{
	struct task *task = c->task;
	double service = c->slow * task->size;

	task->probed = true;
	if (knob(s, HEDGE_CANCEL) != HEDGE_CANCEL_NONE)
		discard_copies(s, task, c, s->config->kill);
	c->probe = false;
	if (!s->config->probe_tail) {
		calendar_add(&s->calendar, s->now + service, c);
		return;
	}
	leave(s, c);
	c->end = -service;
	place(s, c, c->server);
}

static void complete(struct sim *s, const struct calendar_entry *first)
{
	struct copy *c = first->copy;
	u32 server = first->server;
	struct task *task;

	calendar_pop(&s->calendar);
	if (!c) {
		/* It was a copy that is removed by now. */
		free_slot(s, server);
		dispatch(s);
		return;
	}
	task = c->task;
	s->messages++;
	if (c->probe && !task->done && !task->probed && task->size > s->config->probe) {
		probe_wins(s, c);
		dispatch(s);
		return;
	}
	learn(s, c, s->now);
	leave(s, c);
	/* A probe that comes after the first one is of no use. */
	if (!task->done && !(c->probe && task->probed) && !--task->needed)
		finish_task(s, task, c);
	else if (task->started)
		offer_task(s, task);
	copy_free(s, c);
	dispatch(s);
}

static void time_out(struct sim *s)
{
	struct task *task = heap_entry(heap_first(&s->clock), struct task, clock);

	heap_remove(&s->clock, &task->clock);
	if (knob(s, HEDGE_REPLICATE) != HEDGE_NR)
		offer_task(s, task);
	dispatch(s);
}

/* --- the run ------------------------------------------------------------------------------------ */

static void pass_time(struct sim *s, double now)
{
	if (s->quarter < 4)
		s->jobs_area[s->quarter] += s->in_system * (now - s->now);
	if (s->window)
		s->busy_area += s->busy * (now - s->now);
	s->now = now;
}

/* Opens and closes the window in which things are counted. */
static void watch(struct sim *s)
{
	u64 counted = s->config->jobs - s->warm;
	double capacity = (double)s->pick.nr * s->config->slots;

	if (4 * s->arrived >= (s->quarter + 1) * s->config->jobs)
		s->quarter_began[++s->quarter] = s->now;
	if (s->arrived == s->warm + 1) {
		s->window = true;
		s->opened = s->now;
		s->sent = 0;
		s->messages = 0;
	} else if (s->arrived == s->config->jobs) {
		s->window = false;
		s->result->utilisation = s->busy_area / capacity / (s->now - s->opened);
		s->result->copies_per_job = (double)s->sent / counted;
		s->result->messages_per_job = (double)s->messages / counted;
	}
}

/*
 * Without balance the number of jobs grows in proportion to time: its means over
 * the quarters are as 1, 3, 5 and 7. Either all servers are always busy and that
 * is nearly so, or some are not and it is very much so.
 */
static bool grows(const struct sim *s)
{
	const double *began = s->quarter_began;
	double mean[4], rise;
	int i;

	for (i = 0; i < 4; i++)
		mean[i] = s->jobs_area[i] / ((i < 3 ? began[i + 1] : s->now) - began[i]);
	if (s->result->utilisation > 0.99 && mean[3] > 1.6 * mean[1])
		return true;
	rise = (mean[3] - mean[0]) / 3;
	for (i = 0; i < 3; i++)
		if (mean[i + 1] - mean[i] < 0.6 * rise || mean[i + 1] - mean[i] > 1.4 * rise)
			return false;
	return mean[3] > 4 * mean[0];
}

/* The evaluation once a second of the module. */
static void tick(struct sim *s)
{
	s->next_tick += HEDGE_NS_PER_S / s->learn.scale;
	learn_tick(&s->learn, s->now);
	dispatch(s);
}

static double earlier(double a, double b)
{
	return a < b ? a : b;
}

static void step(struct sim *s, bool arrivals)
{
	const struct calendar_entry *first = calendar_first(&s->calendar, &s->pick);
	double completion = first ? first->time : INFINITY;
	double timeout = INFINITY, arrival = arrivals ? s->next_arrival : INFINITY;

	if (s->clock.nr)
		memcpy(&timeout, &heap_least(&s->clock)->key, sizeof(timeout));
	while (earlier(completion, earlier(timeout, arrival)) > s->next_tick) {
		pass_time(s, s->next_tick);
		tick(s);
		first = calendar_first(&s->calendar, &s->pick);
		completion = first ? first->time : INFINITY;
	}
	s->result->events++;
	if (completion <= timeout && completion <= arrival) {
		pass_time(s, completion);
		complete(s, first);
	} else if (timeout <= arrival) {
		pass_time(s, timeout);
		time_out(s);
	} else {
		pass_time(s, arrival);
		arrive(s);
		if (s->arrived <= s->config->jobs)
			watch(s);
	}
}

/* Which servers are ever chosen from. */
static u32 use(const struct sim *s)
{
	bool hedges = s->at_once || s->config->timeout != SIM_NO_TIMEOUT;
	u32 use = s->shared ? PICK_IDLE : PICK_ALL;

	if (hedges)
		use |= knob(s, HEDGE_HEDGE_TO) == HEDGE_IDLE ? PICK_IDLE : PICK_ALL;
	return use;
}

/**
 * sim_mean_tasks - the mean number of tasks of a job
 * @config: of which the law of tasks is looked at
 */
double sim_mean_tasks(const struct sim_config *config)
{
	double mean = 1;
	u32 k;

	if (!config->tasks)
		return 1;
	for (k = 1; k < SIM_MAX_TASKS; k++)
		mean += law_tail(config->tasks, k);
	return mean;
}

static void init_arrivals(struct sim *s)
{
	const struct sim_config *config = s->config;
	double work = config->service.mean * config->size.mean * sim_mean_tasks(config) * config->need;

	s->gap = work / (config->load * s->pick.nr * config->slots);
	s->stretch = 1;
	/* A file of arrivals is stretched to give the load, if one is wanted. */
	if (config->arrivals && config->load > 0)
		s->stretch = s->gap * config->nr_arrivals / config->arrivals[config->nr_arrivals - 1];
	s->next_arrival = next_arrival(s);
}

static void init_learning(struct sim *s)
{
	const struct sim_config *config = s->config;
	u32 balance = knob(s, HEDGE_BALANCE);

	s->learn.pick = &s->pick;
	s->learn.tau = config->timeout == SIM_LEARNT_TIMEOUT;
	s->learn.depth = !s->depth && !knob(s, HEDGE_HEDGE_DEPTH) && s->pick.use & PICK_IDLE;
	s->learn.sit = config->sitout && s->pick.nr <= HEDGE_MAX_LEGS;
	s->learn.forget = (balance == HEDGE_BALANCE_LATENCY || balance == HEDGE_BALANCE_LLW) &&
			  s->pick.nr <= HEDGE_MAX_LEGS;
	s->learn.scale = config->unit > 0 ? config->unit :
			 LEARN_SERVICE_NS / (config->service.mean * config->size.mean);
	s->learn.timeout = config->timeout == SIM_FIXED_TIMEOUT ? config->tau : INFINITY;
	s->learns = s->learn.tau || s->learn.depth || s->learn.sit;
	s->next_tick = s->learns || s->learn.forget ? HEDGE_NS_PER_S / s->learn.scale : INFINITY;
}

static void init(struct sim *s, const struct sim_config *config, struct sim_result *result)
{
	u32 idle, nr = config->knobs.nr_legs;
	struct rng choices;
	size_t room;

	memset(s, 0, sizeof(*s));
	s->config = config;
	s->result = result;
	*result = (struct sim_result) { .stable = true };
	s->warm = config->jobs / 5;
	stats_init(&result->stats, config->service.mean * config->size.mean, config->jobs - s->warm);
	s->per_batch = result->stats.per_batch;
	s->depth = knob(s, HEDGE_QUEUE_DEPTH);
	s->shared = s->depth && knob(s, HEDGE_QUEUE) == HEDGE_QUEUE_SHARED;
	s->at_once = hedge_at_once(&config->knobs);
	s->known_work = config->known_work;
	idle = s->depth ? s->depth : knob(s, HEDGE_HEDGE_DEPTH);
	rng_seed(&s->arrivals, config->seed, 0);
	rng_seed(&s->sizes, config->seed, 1);
	rng_seed(&s->services, config->seed, 2);
	rng_seed(&choices, config->seed, 3);
	rng_seed(&s->others, config->seed, 4);
	pick_init(&s->pick, &config->knobs, idle ? idle : 1, use(s), config->routing,
		  config->rerouting, rng_u64(&choices));
	init_learning(s);
	init_arrivals(s);

	calendar_init(&s->calendar, (size_t)nr * config->slots,
		      config->service.mean * config->size.mean);
	s->ready = memory_get(nr * sizeof(*s->ready));
	room = max(knob(s, HEDGE_COPIES), knob(s, HEDGE_CHOICES));
	s->chosen = memory_get((room + HEDGE_MAX_LEGS) * sizeof(*s->chosen));
	s->except = memory_get(((size_t)nr + 1) * sizeof(*s->except));
	if (knob(s, HEDGE_PROBE) && knob(s, HEDGE_PROBE_PRIORITY) && config->kill)
		s->running = memory_get(nr * sizeof(*s->running));
	if (config->removal)
		s->answers = memory_get(ANSWERS * sizeof(*s->answers));
	if (knob(s, HEDGE_BALANCE) == HEDGE_BALANCE_LLW)
		s->present = memory_get(nr * sizeof(*s->present));
	s->jobs.size = sizeof(struct job);
	s->tasks.size = sizeof(struct task);
	s->copies.size = sizeof(struct copy);
	s->legs.size = HEDGE_MAX_LEGS * sizeof(u32);
}

static void finish(struct sim *s)
{
	s->result->tau = s->learn.timeout;
	pick_free(&s->pick);
	pool_free(&s->jobs);
	pool_free(&s->tasks);
	pool_free(&s->copies);
	pool_free(&s->legs);
	calendar_free(&s->calendar);
	free(s->waiting.slot);
	free(s->started.slot);
	free(s->clock.slot);
	free(s->ready);
	free(s->chosen);
	free(s->except);
	free(s->aside_jobs);
	free(s->aside_tasks);
	free(s->running);
	free(s->present);
	free(s->answers);
}

/**
 * sim_run - simulate
 * @config: what
 * @result: where what comes out is put
 *
 * Jobs go on arriving, uncounted, until the counted ones are done, so that the
 * last of those meet the same load; but no more than as many again.
 */
void sim_run(const struct sim_config *config, struct sim_result *result)
{
	u64 wanted = config->jobs - config->jobs / 5;
	u64 limit = MAX_JOBS((u64)config->knobs.nr_legs * config->slots);
	static struct sim s;

	init(&s, config, result);
	while (s.measured < wanted) {
		step(&s, s.arrived < 2 * config->jobs);
		if (s.in_system > limit ||
		    (s.arrived == config->jobs && !s.window && grows(&s))) {
			result->stable = false;
			break;
		}
	}
	finish(&s);
}
