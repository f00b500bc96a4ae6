// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: a hedged volume as the module runs it, with servers for legs.
 *
 * A job arrives, and its copies are started or wait. A copy is in one of three
 * places:
 *
 *	QUEUED	in our queue of a server: it can be cancelled
 *	HANDED	at the server, which has no free slot for it (only with a
 *		queue_depth that is not the number of slots)
 *	SERVED	in a slot; its completion is in the calendar
 *
 * Jobs wait in up to three lists, as in the module's wait.c: `tasks', the shared
 * queue; `clock', whose timeout is to come; `late', which are overdue and may
 * not be hedged yet. All timeouts are equally long, so `clock' is in order when
 * jobs are added to its end.
 *
 * When a job is done its other copies are cancelled where they wait, and, if
 * copies can be killed, taken out of the servers. Otherwise those run to their
 * end, and only then is the job given back.
 *
 * Servers in which a slot came free are collected in `ready' until the event is
 * over, and then start what waits: dispatch().
 *
 * What happens at the same instant happens in this order: completions, timeouts,
 * arrivals. A copy that takes just as long as the timeout has finished.
 */
#include <math.h>
#include <stdlib.h>

#include "budget.h"
#include "heap.h"
#include "list.h"
#include "pick.h"
#include "rng.h"
#include "service.h"
#include "sim.h"

/* Service times are smoothed in these units, whatever the laws' unit is. */
#define MEAN_SERVICE_NS 1e7

#define CHUNK 1024	/* jobs or copies that are allocated together */

/* More jobs than this in the system: it will not settle. */
#define MAX_JOBS(slots) (20 * (u64)(slots) + 100000)

enum place { QUEUED, HANDED, SERVED };

struct job {
	double arrival, size, due;
	u64 number;
	struct copy *copies;	/* first of those that are somewhere */
	u32 nr, out;		/* how many, and how many are at a server */
	u32 wanted, starts, hedges;
	bool clocked, done;
	struct list task, clock, late;
};

struct copy {
	enum place place;
	u32 server;
	u32 ticket;		/* of its completion in the calendar */
	bool hedge;
	double handed;
	struct job *job;
	struct copy *next;	/* of the same job */
	struct list list;	/* among those that wait at the same place */
};

struct server {
	u32 busy;
	bool ready;
	struct list queue, handed;
};

/* Objects of one size, given back to a free list. */
struct pool {
	void **chunk, *free;
	size_t size, nr;
};

struct sim {
	const struct sim_config *config;
	struct sim_result *result;
	struct pick pick;
	struct server *server;
	struct heap calendar;
	struct list tasks, clock, late;
	struct pool jobs, copies;
	struct rng arrivals, sizes, services;
	double now, next_arrival, gap, scale;
	u32 depth, budget;
	u64 queued, busy, in_system;
	u32 *ready, nr_ready, *chosen, *except;
	u64 arrived, measured;
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

/* --- memory -------------------------------------------------------------------- */

static void *allocate(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	if (!p)
		abort();
	return p;
}

static void *pool_get(struct pool *pool)
{
	void *object;
	size_t i;

	if (!pool->free) {
		char *chunk = allocate(CHUNK, pool->size);

		pool->chunk = realloc(pool->chunk, (pool->nr + 1) * sizeof(*pool->chunk));
		if (!pool->chunk)
			abort();
		pool->chunk[pool->nr++] = chunk;
		for (i = 0; i < CHUNK; i++) {
			*(void **)(chunk + i * pool->size) = pool->free;
			pool->free = chunk + i * pool->size;
		}
	}
	object = pool->free;
	pool->free = *(void **)object;
	return object;
}

static void pool_put(struct pool *pool, void *object)
{
	*(void **)object = pool->free;
	pool->free = object;
}

static void pool_free(struct pool *pool)
{
	while (pool->nr)
		free(pool->chunk[--pool->nr]);
	free(pool->chunk);
}

static struct copy *copy_new(struct sim *s, struct job *job, bool hedge)
{
	struct copy *c = pool_get(&s->copies);

	c->job = job;
	c->hedge = hedge;
	c->next = job->copies;
	job->copies = c;
	job->nr++;
	return c;
}

/* Gives a copy back that is nowhere any more, and its job after the last one. */
static void copy_free(struct sim *s, struct copy *c)
{
	struct job *job = c->job;
	struct copy **p = &job->copies;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	job->nr--;
	pool_put(&s->copies, c);
	if (job->done && !job->nr)
		pool_put(&s->jobs, job);
}

/* --- one server ------------------------------------------------------------------- */

static bool shared(const struct sim *s)
{
	return s->depth && knob(s, HEDGE_QUEUE) == HEDGE_QUEUE_SHARED;
}

static bool has_slot(const struct sim *s, u32 server)
{
	return !s->depth || s->pick.leg[server].inflight < s->depth;
}

static void serve(struct sim *s, struct copy *c)
{
	double service = law_sample(&s->config->service, &s->services);

	c->place = SERVED;
	s->server[c->server].busy++;
	s->busy++;
	c->ticket = heap_add(&s->calendar, s->now + service * c->job->size, c);
}

static void set_clock(struct sim *s, struct job *job)
{
	if (!isfinite(s->config->tau) || job->hedges >= knob(s, HEDGE_MAX_HEDGES))
		return;
	job->due = s->now + s->config->tau;
	list_del(&job->clock);
	list_add_tail(&s->clock, &job->clock);
}

/* Hands a copy to its server. */
static void hand(struct sim *s, struct copy *c, u32 server)
{
	struct server *at = &s->server[server];
	struct job *job = c->job;

	c->server = server;
	c->handed = s->now;
	job->out++;
	job->starts++;
	s->sent++;
	s->pick.leg[server].inflight++;
	pick_update(&s->pick, server);
	if (at->busy < s->config->slots) {
		serve(s, c);
	} else {
		c->place = HANDED;
		list_add_tail(&at->handed, &c->list);
	}
	if (!job->clocked && !job->done && knob(s, HEDGE_TIMEOUT_FROM) == HEDGE_FROM_START) {
		job->clocked = true;
		set_clock(s, job);
	}
}

static bool budget_pays(const struct sim *s)
{
	return !s->config->budget || hedge_budget_pays(s->budget);
}

/* Starts a copy if the budget allows it: only one beside another one costs. */
static bool start(struct sim *s, struct copy *c, u32 server)
{
	if (c->job->out) {
		if (!budget_pays(s))
			return false;
		if (s->config->budget)
			s->budget -= HEDGE_COPY_COST;
	}
	hand(s, c, server);
	return true;
}

/* Starts a copy or lets it wait. Returns false if the budget does not allow it. */
static bool place(struct sim *s, struct copy *c, u32 server)
{
	struct hedge_leg_view *leg = &s->pick.leg[server];

	s->messages++;
	if (has_slot(s, server) && !leg->queued)
		return start(s, c, server);
	c->server = server;
	c->place = QUEUED;
	list_add_tail(&s->server[server].queue, &c->list);
	leg->queued++;
	s->queued++;
	pick_update(&s->pick, server);
	return true;
}

static void dequeue(struct sim *s, struct copy *c)
{
	list_del(&c->list);
	s->pick.leg[c->server].queued--;
	s->queued--;
	pick_update(&s->pick, c->server);
}

/* Takes a copy out of its slot, and lets the next one that was handed over in. */
static void leave(struct sim *s, struct copy *c)
{
	struct server *at = &s->server[c->server];

	if (c->place == HANDED) {
		list_del(&c->list);
	} else {
		heap_remove(&s->calendar, c->ticket);
		at->busy--;
		s->busy--;
	}
	c->job->out--;
	s->pick.leg[c->server].inflight--;
	pick_update(&s->pick, c->server);
	if (c->place == SERVED && !list_empty(&at->handed)) {
		struct copy *next = list_entry(at->handed.next, struct copy, list);

		list_del(&next->list);
		serve(s, next);
	}
	if (!at->ready)
		s->ready[s->nr_ready++] = c->server;
	at->ready = true;
}

/* Cancels or kills a copy. The job may be gone after that. */
static void discard(struct sim *s, struct copy *c)
{
	s->messages++;
	if (c->place == QUEUED)
		dequeue(s, c);
	else
		leave(s, c);
	copy_free(s, c);
}

/* Cancels the copies of a job that wait, and kills others than @keep if told to. */
static void discard_copies(struct sim *s, struct job *job, const struct copy *keep, bool kill)
{
	struct copy *c, *next;

	for (c = job->copies; c; c = next) {
		next = c->next;
		if (c != keep && (c->place == QUEUED || kill))
			discard(s, c);
	}
}

/* --- choices ------------------------------------------------------------------------- */

static u32 choose(struct sim *s, const struct job *job, bool idle, u32 wanted)
{
	const struct copy *c;
	u32 n = 0;

	for (c = job->copies; c; c = c->next)
		s->except[n++] = c->server;
	return pick_choose(&s->pick, idle, s->except, n, wanted, s->chosen);
}

/* Of the chosen servers keeps those that are idle: the module's decision. */
static u32 keep_idle(struct sim *s, u32 nr)
{
	u32 depth = max(s->depth, 1U), i, n = 0, idle = 0;

	for (i = 0; i < nr; i++)
		if (s->pick.leg[s->chosen[i]].inflight < depth)
			idle |= 1U << i;
	s->messages += nr;
	idle = hedge_keep_idle(nr < 32 ? (1U << nr) - 1 : ~0U, idle, &s->pick.random);
	for (i = 0; i < nr; i++)
		if (idle & (1U << i))
			s->chosen[n++] = s->chosen[i];
	return n;
}

/* --- hedges ---------------------------------------------------------------------------- */

static void late_add(struct sim *s, struct job *job)
{
	if (list_empty(&job->late))
		list_add_tail(&s->late, &job->late);
}

/* A copy that had been queued cannot be paid for: a hedge is due again. */
static void drop_unpaid(struct sim *s, struct copy *c)
{
	struct job *job = c->job;

	if (c->hedge && !job->done) {
		job->hedges--;
		late_add(s, job);
	}
	copy_free(s, c);
}

/*
 * Under "arrival" a copy that still waits at the timeout is moved. Where copies
 * can be killed, one that is sent on without regard to idleness replaces what
 * the job has: that is speculative load balancing.
 */
static bool replaces(const struct sim *s, const struct job *job)
{
	if (knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_NONE)
		return false;
	if (s->config->kill && knob(s, HEDGE_HEDGE_TO) == HEDGE_ANY)
		return true;
	return knob(s, HEDGE_TIMEOUT_FROM) == HEDGE_FROM_ARRIVAL && !job->out;
}

enum outcome { HEDGED, NO_SERVER, NO_TOKEN, NEVER };

static enum outcome hedge(struct sim *s, struct job *job)
{
	bool replace = replaces(s, job), again = replace && s->config->reroute_any;
	bool idle = knob(s, HEDGE_HEDGE_TO) == HEDGE_IDLE;
	struct copy *c;
	u32 server;

	if (job->hedges >= knob(s, HEDGE_MAX_HEDGES) || knob(s, HEDGE_REPLICATE) == HEDGE_NR ||
	    (job->nr >= s->pick.nr && !again))
		return NEVER;
	if (!replace && !budget_pays(s))
		return NO_TOKEN;
	if (again ? !pick_choose(&s->pick, idle, NULL, 0, 1, s->chosen) : !choose(s, job, idle, 1))
		return NO_SERVER;
	server = s->chosen[0];
	job->hedges++;
	c = copy_new(s, job, true);
	if (replace)
		discard_copies(s, job, c, true);
	if (!place(s, c, server))
		drop_unpaid(s, c);
	else
		set_clock(s, job);
	return HEDGED;
}

/* Hedges overdue jobs, the oldest first, as far as servers and budget allow. */
static void serve_late(struct sim *s)
{
	bool idle = knob(s, HEDGE_HEDGE_TO) == HEDGE_IDLE;
	struct list *link, *next;

	for (link = s->late.next; link != &s->late; link = next) {
		struct job *job = list_entry(link, struct job, late);
		enum outcome outcome;

		if (idle && (!list_empty(&s->tasks) || s->queued || !s->pick.idle.nr))
			return;
		next = link->next;
		if (!job->nr)
			continue;
		list_del(&job->late);
		outcome = hedge(s, job);
		if (outcome == NO_SERVER || outcome == NO_TOKEN) {
			/* Back to where it was. */
			list_add_tail(next, &job->late);
			if (outcome == NO_TOKEN)
				return;
		}
	}
}

/* --- what starts when a slot is free ------------------------------------------------------ */

static void serve_first(struct sim *s, u32 server)
{
	struct copy *c = list_entry(s->server[server].queue.next, struct copy, list);

	dequeue(s, c);
	if (!start(s, c, server))
		drop_unpaid(s, c);
	else if (knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_START)
		discard_copies(s, c->job, c, false);
}

/* Starts the first task that can use an idle server. Returns whether one could. */
static bool serve_task(struct sim *s)
{
	struct list *link;

	if (!s->pick.idle.nr)
		return false;
	for (link = s->tasks.next; link != &s->tasks; link = link->next) {
		struct job *job = list_entry(link, struct job, task);
		struct copy *c;

		if (!choose(s, job, true, 1))
			continue;
		c = copy_new(s, job, false);
		s->messages++;
		if (job->starts + 1 >= job->wanted || knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_START)
			list_del(&job->task);
		if (!start(s, c, s->chosen[0])) {
			list_del(&job->task);
			copy_free(s, c);
		}
		return true;
	}
	return false;
}

static void dispatch(struct sim *s)
{
	do {
		while (s->nr_ready) {
			u32 server = s->ready[--s->nr_ready];

			s->server[server].ready = false;
			while (has_slot(s, server) && !list_empty(&s->server[server].queue))
				serve_first(s, server);
		}
		while (!list_empty(&s->tasks) && serve_task(s))
			;
		/* This may kill, and so free slots again. */
		if (!list_empty(&s->late))
			serve_late(s);
	} while (s->nr_ready);
}

/* --- the events ------------------------------------------------------------------------------ */

static void arrive_at_servers(struct sim *s, struct job *job)
{
	bool once = knob(s, HEDGE_CANCEL) == HEDGE_CANCEL_START;
	u32 i, nr = choose(s, job, false, job->wanted);

	if (nr > 1 && knob(s, HEDGE_COPIES_TO) == HEDGE_IDLE)
		nr = keep_idle(s, nr);
	for (i = 0; i < nr && !(once && job->starts); i++) {
		struct copy *c = copy_new(s, job, false);

		if (!place(s, c, s->chosen[i]))
			copy_free(s, c);
	}
	if (once && job->starts)
		discard_copies(s, job, NULL, false);
}

static void arrive(struct sim *s)
{
	struct job *job = pool_get(&s->jobs);

	*job = (struct job) {
		.arrival = s->now,
		.size = law_sample(&s->config->size, &s->sizes),
		.number = s->arrived++,
		.wanted = knob(s, HEDGE_COPIES),
	};
	list_init(&job->task);
	list_init(&job->clock);
	list_init(&job->late);
	s->in_system++;
	s->next_arrival = s->now - s->gap * log(rng_uniform(&s->arrivals));
	if (s->config->budget && s->pick.nr > 1)
		s->budget = hedge_budget_credit(s->budget, knob(s, HEDGE_BUDGET_PCT));
	if (knob(s, HEDGE_TIMEOUT_FROM) == HEDGE_FROM_ARRIVAL)
		set_clock(s, job);
	if (shared(s))
		list_add_tail(&s->tasks, &job->task);
	else
		arrive_at_servers(s, job);
	dispatch(s);
}

static void record(struct sim *s, const struct job *job)
{
	u64 warm = s->config->jobs / 5;

	if (job->number < warm || job->number >= s->config->jobs)
		return;
	stats_add(&s->result->stats, job->number - warm, s->now - job->arrival);
	s->measured++;
}

static void learn(struct sim *s, const struct copy *c)
{
	u32 *service_us = &s->pick.leg[c->server].service_us;

	if (knob(s, HEDGE_BALANCE) == HEDGE_BALANCE_LATENCY)
		*service_us = hedge_service_update(*service_us, (s->now - c->handed) * s->scale);
}

static void complete(struct sim *s, struct copy *c)
{
	struct job *job = c->job;

	s->messages++;
	learn(s, c);
	leave(s, c);
	if (!job->done) {
		record(s, job);
		s->in_system--;
		list_del(&job->task);
		list_del(&job->clock);
		list_del(&job->late);
		if (knob(s, HEDGE_CANCEL) != HEDGE_CANCEL_NONE)
			discard_copies(s, job, c, s->config->kill);
		job->done = true;
	}
	copy_free(s, c);
	dispatch(s);
}

static void time_out(struct sim *s, struct job *job)
{
	list_del(&job->clock);
	late_add(s, job);
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
	u64 warm = s->config->jobs / 5, counted = s->config->jobs - warm;
	double capacity = (double)s->pick.nr * s->config->slots;

	if (4 * s->arrived >= (s->quarter + 1) * s->config->jobs)
		s->quarter_began[++s->quarter] = s->now;
	if (s->arrived == warm + 1) {
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
 * Without balance the number of jobs grows in proportion to time, so that its
 * mean over the last quarter is 7/3 of that over the second, and all servers are
 * always busy.
 */
static bool grows(const struct sim *s)
{
	const double *began = s->quarter_began;
	double second = s->jobs_area[1] / (began[2] - began[1]);
	double last = s->jobs_area[3] / (s->now - began[3]);

	return s->result->utilisation > 0.99 && last > 1.6 * second;
}

static void step(struct sim *s, bool arrivals)
{
	double completion = s->calendar.nr ? s->calendar.slot[0].time : INFINITY;
	double timeout = INFINITY, arrival = arrivals ? s->next_arrival : INFINITY;
	struct job *job = NULL;

	if (!list_empty(&s->clock)) {
		job = list_entry(s->clock.next, struct job, clock);
		timeout = job->due;
	}
	s->result->events++;
	if (completion <= timeout && completion <= arrival) {
		pass_time(s, completion);
		complete(s, heap_first(&s->calendar));
	} else if (timeout <= arrival) {
		pass_time(s, timeout);
		time_out(s, job);
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
	bool hedges = isfinite(s->config->tau);
	u32 use = shared(s) ? PICK_IDLE : PICK_ALL;

	if (hedges)
		use |= knob(s, HEDGE_HEDGE_TO) == HEDGE_IDLE ? PICK_IDLE : PICK_ALL;
	return use;
}

static void init(struct sim *s, const struct sim_config *config, struct sim_result *result)
{
	u32 idle, i, nr = config->knobs.nr_legs;
	struct rng choices;
	size_t room;

	*s = (struct sim) { .config = config, .result = result };
	*result = (struct sim_result) { .stable = true };
	stats_init(&result->stats, config->service.mean * config->size.mean,
		   config->jobs - config->jobs / 5);
	s->depth = config->knobs.val[HEDGE_QUEUE_DEPTH];
	idle = s->depth ? s->depth : config->knobs.val[HEDGE_HEDGE_DEPTH];
	rng_seed(&s->arrivals, config->seed, 0);
	rng_seed(&s->sizes, config->seed, 1);
	rng_seed(&s->services, config->seed, 2);
	rng_seed(&choices, config->seed, 3);
	pick_init(&s->pick, &config->knobs, idle ? idle : config->slots, use(s), rng_u64(&choices));
	s->gap = config->service.mean * config->size.mean / (config->load * nr * config->slots);
	s->scale = MEAN_SERVICE_NS / (config->service.mean * config->size.mean);
	s->next_arrival = -s->gap * log(rng_uniform(&s->arrivals));

	s->server = allocate(nr, sizeof(*s->server));
	heap_init(&s->calendar, (size_t)nr * config->slots);
	s->ready = allocate(nr, sizeof(*s->ready));
	room = max(config->knobs.val[HEDGE_COPIES], config->knobs.val[HEDGE_CHOICES]);
	s->chosen = allocate(room + 1, sizeof(*s->chosen));
	s->except = allocate((size_t)nr + 1, sizeof(*s->except));
	for (i = 0; i < nr; i++) {
		list_init(&s->server[i].queue);
		list_init(&s->server[i].handed);
	}
	list_init(&s->tasks);
	list_init(&s->clock);
	list_init(&s->late);
	s->jobs.size = sizeof(struct job);
	s->copies.size = sizeof(struct copy);
}

static void finish(struct sim *s)
{
	pick_free(&s->pick);
	pool_free(&s->jobs);
	pool_free(&s->copies);
	free(s->server);
	heap_free(&s->calendar);
	free(s->ready);
	free(s->chosen);
	free(s->except);
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
	struct sim s;

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
