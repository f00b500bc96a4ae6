// SPDX-License-Identifier: GPL-2.0
/*
 * The decisions of module/core all together: a small volume that arrivals,
 * completions, timeouts, legs that go out of sync and changes of settings happen
 * to at random. After each step what must always hold is looked at:
 *
 *	no two copies of a task on one leg, none started on a leg that is not
 *	usable by then
 *	no more copies on a leg than it has slots
 *	no more extra copies than the budget has paid for
 *	no hedge while others wait, where hedges go to idle legs
 *	no copy at arrival on a leg that is not idle, where they go to idle ones,
 *	but for the first when none is
 *	tasks of equal rank start in the order of their arrival, and none of the
 *	shared queue before one that ranks better and could have started
 *	every job ends once, and after all its tasks
 *
 * The volume does what the module does, in the simplest way: lists of all tasks
 * that are searched, where the module has trees and queues.
 */
#include "budget.h"
#include "policy.h"
#include "sitout.h"
#include "task.h"
#include "tap.h"

#define STEPS 2000000
#define MAX_JOBS 24
#define MAX_TASKS 4
#define QUEUE 256

struct job {
	bool there, ended;
	u64 arrival, due;
	u32 left, unassigned;
};

struct task {
	bool there, done, overdue;
	struct job *job;
	u32 usable, on, out, queued, wanted, starts, hedges;
};

/* A copy that waits for a slot of its leg. */
struct queued {
	struct task *task;
	u64 since;
};

static struct hedge_knobs knobs;
static struct job jobs[MAX_JOBS];
static struct task tasks[MAX_JOBS * MAX_TASKS];
static struct queued queue[HEDGE_MAX_LEGS][QUEUE];
static u32 queue_len[HEDGE_MAX_LEGS], inflight[HEDGE_MAX_LEGS];
static unsigned int nr_legs;
static u32 sitting, stalled, turn, bucket;
static u64 now, extra, earned, ended, hedged, joined, cut, spared, moved;

static u32 slots(void)
{
	return knobs.val[HEDGE_QUEUE_DEPTH];
}

static bool has_slot(unsigned int leg)
{
	return !slots() || inflight[leg] < slots();
}

static struct hedge_view view(u32 usable)
{
	struct hedge_view v = {
		.nr_legs = nr_legs, .usable = usable, .avoid = stalled,
		.sitting = sitting, .random = &rng, .turn = &turn,
	};
	unsigned int i;

	for (i = 0; i < nr_legs; i++)
		v.leg[i] = (struct hedge_leg_view) {
			.inflight = inflight[i], .queued = queue_len[i],
			.service_us = 100 + i, .weight = 100,
			.work = 100 * (inflight[i] + queue_len[i]),
		};
	return v;
}

static struct hedge_task_view view_of(const struct task *t)
{
	return (struct hedge_task_view) {
		.arrival_ns = t->job->arrival, .due_ns = t->job->due,
		.unassigned = t->job->unassigned,
		.copies = hweight32(t->out),
	};
}

static struct hedge_rank waiting_rank(const struct task *t)
{
	struct hedge_task_view v = view_of(t);

	return hedge_rank_waiting(&knobs, &v);
}

static struct hedge_rank started_rank(const struct task *t)
{
	struct hedge_task_view v = view_of(t);

	return hedge_rank_started(&knobs, &v);
}

/* --- what copies do --------------------------------------------------------- */

static bool pays(const struct task *t)
{
	return !t->out || hedge_budget_pays(bucket);
}

static void start(struct task *t, unsigned int leg)
{
	CHECK(!(t->out & (1U << leg)), "leg %u has a copy", leg);
	CHECK(t->usable & (1U << leg), "leg %u is not usable", leg);
	CHECK(has_slot(leg), "leg %u has no slot", leg);
	if (t->out) {
		CHECK(hedge_budget_pays(bucket), "no budget");
		bucket -= HEDGE_COPY_COST;
		extra++;
	}
	if (!t->starts++)
		t->job->unassigned--;
	t->out |= 1U << leg;
	t->on |= 1U << leg;
	inflight[leg]++;
}

static void unqueue(struct task *t, unsigned int leg)
{
	u32 i;

	for (i = 0; queue[leg][i].task != t; i++)
		;
	memmove(&queue[leg][i], &queue[leg][i + 1],
		(--queue_len[leg] - i) * sizeof(queue[leg][0]));
	t->queued &= ~(1U << leg);
}

static void cancel(struct task *t)
{
	for (; t->queued; t->queued &= t->queued - 1) {
		unsigned int leg = __builtin_ctz(t->queued);

		t->on &= ~(1U << leg);
		unqueue(t, leg);
		t->queued |= 1U << leg;
	}
}

static void place(struct task *t, unsigned int leg)
{
	if (has_slot(leg)) {
		if (pays(t))
			start(t, leg);
		return;
	}
	CHECK(!(t->on & (1U << leg)), "leg %u has or had a copy", leg);
	queue[leg][queue_len[leg]++] = (struct queued) { t, now };
	t->queued |= 1U << leg;
	t->on |= 1U << leg;
}

/* --- what a free leg takes --------------------------------------------------- */

static bool in_queue(const struct task *t)
{
	return t->there && !t->done && !t->on && !t->starts;
}

static bool wants_more(const struct task *t)
{
	return t->there && !t->done && t->starts && !t->queued &&
	       t->starts < t->wanted;
}

static bool may_hedge(const struct task *t)
{
	return t->there && !t->done && t->out && pays(t) &&
	       t->hedges < knobs.val[HEDGE_MAX_HEDGES] &&
	       (t->overdue || hedge_at_once(&knobs));
}

static bool anything_waits(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		if (in_queue(&tasks[i]) || tasks[i].queued)
			return true;
	return false;
}

static struct task *first(unsigned int leg, bool (*is)(const struct task *),
			  struct hedge_rank (*rank)(const struct task *),
			  struct hedge_rank *best)
{
	struct task *t, *found = NULL;

	for (t = tasks; t < tasks + ARRAY_SIZE(tasks); t++) {
		struct hedge_rank r;

		if (!is(t) || t->on & (1U << leg) ||
		    !(t->usable & (1U << leg)))
			continue;
		r = rank(t);
		if (found && !hedge_rank_before(&r, best))
			continue;
		found = t;
		*best = r;
	}
	return found;
}

static void check_order(const struct task *taken, unsigned int leg)
{
	const struct task *t;
	struct hedge_rank mine = waiting_rank(taken);

	for (t = tasks; t < tasks + ARRAY_SIZE(tasks); t++) {
		struct hedge_rank rank;

		if (!in_queue(t) || t == taken || !(t->usable & (1U << leg)))
			continue;
		rank = waiting_rank(t);
		CHECK(!hedge_rank_before(&rank, &mine), "passed by");
		if (rank.key == mine.key)
			CHECK(rank.arrival_ns >= mine.arrival_ns, "not fcfs");
	}
}

/* Returns whether the leg has taken something. */
static bool serve(unsigned int leg)
{
	struct hedge_rank wait_rank, start_rank;
	struct task *waits, *started;

	if (!has_slot(leg))
		return false;
	if (queue_len[leg]) {
		struct task *t = queue[leg][0].task;
		u32 i;

		for (i = 1; i < queue_len[leg]; i++)
			CHECK(queue[leg][i].since >= queue[leg][0].since,
			      "leg %u: not fcfs", leg);
		unqueue(t, leg);
		if (pays(t))
			start(t, leg);
		else
			t->on &= ~(1U << leg);
		if (knobs.val[HEDGE_CANCEL] == HEDGE_CANCEL_START && t->starts)
			cancel(t);
		return true;
	}
	waits = first(leg, in_queue, waiting_rank, &wait_rank);
	if (!waits && bucket >= HEDGE_COPY_COST)
		waits = first(leg, wants_more, waiting_rank, &wait_rank);
	started = first(leg, may_hedge, started_rank, &start_rank);
	switch (hedge_next_task(&knobs, waits ? &wait_rank : NULL,
				started ? &start_rank : NULL,
				anything_waits())) {
	case HEDGE_NEXT_WAITING:
		if (!waits->starts)
			check_order(waits, leg);
		start(waits, leg);
		return true;
	case HEDGE_NEXT_STARTED:
		CHECK(knobs.val[HEDGE_REPLICATE] != HEDGE_NR, "nr hedges");
		joined += anything_waits();
		CHECK(knobs.val[HEDGE_REPLICATE] == HEDGE_R ||
		      knobs.val[HEDGE_HEDGE_TO] == HEDGE_ANY ||
		      !anything_waits(), "a hedge while others wait");
		started->hedges++;
		started->overdue = false;
		start(started, leg);
		hedged++;
		return true;
	default:
		return false;
	}
}

static void dispatch(void)
{
	unsigned int leg = 0;

	while (leg < nr_legs)
		leg = serve(leg) ? 0 : leg + 1;
}

/* Legs that are idle, for copies at arrival. */
static u32 idle_legs(void)
{
	u32 i, idle = 0;

	for (i = 0; i < nr_legs; i++)
		if (inflight[i] < max(slots(), 1U))
			idle |= 1U << i;
	return idle;
}

/* Of the legs chosen for a read's copies keeps those that are idle. */
static u32 keep_idle(u8 *chosen, u32 n)
{
	u32 i, mask = 0, kept, idle = idle_legs(), left = 0;

	for (i = 0; i < n; i++)
		mask |= 1U << chosen[i];
	kept = hedge_keep_idle(mask, idle, &rng);
	CHECK(kept && !(kept & ~mask), "kept %x of %x", kept, mask);
	if (mask & idle)
		CHECK(kept == (mask & idle), "kept %x of %x, idle %x", kept, mask, idle);
	else
		CHECK(!(kept & (kept - 1)), "kept %x, none idle", kept);
	for (i = 0; i < n; i++)
		if (kept & (1U << chosen[i]))
			chosen[left++] = chosen[i];
	spared += n - left;
	return left;
}

/* --- the events ---------------------------------------------------------------- */

static void arrive(void)
{
	u32 nr = 1 + (below(3) ? 0 : below(MAX_TASKS)), usable, i, n;
	u8 chosen[HEDGE_MAX_LEGS];
	struct task *t = tasks;
	struct job *job = jobs;

	while (job < jobs + MAX_JOBS && job->there)
		job++;
	if (job == jobs + MAX_JOBS)
		return;
	do {
		usable = below(4) ? (1U << nr_legs) - 1 : below(1U << nr_legs);
	} while (!usable);
	*job = (struct job) {
		.there = true, .arrival = now, .left = nr, .unassigned = nr,
		.due = now + hedge_due_us(&knobs, below(3)),
	};
	cut += nr > 1;
	for (i = 0; i < nr; i++) {
		struct hedge_view v;

		while (t->there)
			t++;
		*t = (struct task) { .there = true, .job = job, .usable = usable };
		t->wanted = min(knobs.val[HEDGE_COPIES], hweight32(usable));
		if (usable & (usable - 1)) {
			bucket = hedge_budget_credit(bucket,
						     knobs.val[HEDGE_BUDGET_PCT]);
			earned += knobs.val[HEDGE_BUDGET_PCT];
		}
		if (slots() && knobs.val[HEDGE_QUEUE] == HEDGE_QUEUE_SHARED)
			continue;	/* dispatch() takes it from there */
		v = view(usable);
		n = hedge_choose(&knobs, &v, usable, t->wanted, chosen);
		CHECK(n, "no leg for a new read");
		if (n > 1 && knobs.val[HEDGE_COPIES_TO] == HEDGE_IDLE)
			n = keep_idle(chosen, n);
		while (n && !(knobs.val[HEDGE_CANCEL] == HEDGE_CANCEL_START &&
			      t->starts))
			place(t, chosen[--n]);
		if (knobs.val[HEDGE_CANCEL] == HEDGE_CANCEL_START && t->starts)
			cancel(t);
		t->wanted = 1;
	}
}

static void end_job(struct job *job)
{
	CHECK(!job->ended, "a job ends twice");
	job->ended = true;
	ended++;
}

static void drop(struct task *t)
{
	unsigned int i;
	struct job *job = t->job;

	if (!t->done || t->out || t->queued)
		return;
	t->there = false;
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		if (tasks[i].there && tasks[i].job == job)
			return;
	CHECK(job->ended, "a job is gone before its end");
	job->there = false;
}

/* A random copy that is out comes back; sometimes with an error. */
static void complete(void)
{
	unsigned int at = below(ARRAY_SIZE(tasks)), i, leg = below(nr_legs);
	struct task *t = NULL;

	for (i = 0; i < ARRAY_SIZE(tasks) && !t; i++) {
		t = &tasks[(at + i) % ARRAY_SIZE(tasks)];
		if (!t->there || !(t->out & (1U << leg)))
			t = NULL;
	}
	if (!t)
		return;
	t->out &= ~(1U << leg);
	inflight[leg]--;
	if (!t->done && !below(20) && (t->out || t->queued))
		return;	/* failed, and another copy is left */
	if (!t->done) {
		t->done = true;
		if (knobs.val[HEDGE_CANCEL] != HEDGE_CANCEL_NONE)
			cancel(t);
		CHECK(t->job->left, "more tasks done than there are");
		if (!--t->job->left)
			end_job(t->job);
	}
	drop(t);
}

static void expire(void)
{
	struct task *t = &tasks[below(ARRAY_SIZE(tasks))];

	if (t->there && t->out && !t->done)
		t->overdue = true;
}

/*
 * A leg goes out of sync for a task. What it has started goes on; what waits for it
 * is moved to another leg, or there is none and it stays usable.
 */
static void lose_sync(void)
{
	struct task *t = &tasks[below(ARRAY_SIZE(tasks))];
	u32 bit = 1U << below(nr_legs), left = t->usable & ~bit;
	u8 chosen[HEDGE_MAX_LEGS];
	struct hedge_view v;

	if (!t->there || t->done || !left)
		return;
	if (!(t->queued & bit)) {
		t->usable = left;
		return;
	}
	if (!(left & ~t->on))
		return;
	t->usable = left;
	unqueue(t, __builtin_ctz(bit));
	t->on &= ~bit;
	v = view(left);
	CHECK(hedge_choose(&knobs, &v, left & ~t->on, 1, chosen) == 1,
	      "no leg to move to");
	place(t, chosen[0]);
	moved++;
}

/* --- settings --------------------------------------------------------------------- */

static void set_at_random(void)
{
	static const u32 ends[][2] = {
		{ HEDGE_COPIES_TO, 2 }, { HEDGE_CANCEL, 3 },
		{ HEDGE_HEDGE_TO, 2 }, { HEDGE_BALANCE, 5 },
		{ HEDGE_QUEUE, 2 }, { HEDGE_ORDER, 3 }, { HEDGE_REPLICATE, 4 },
	};
	u32 budget, i;
	char word[16];

	if (below(2)) {
		static const char * const presets[] = {
			"fcfs-lpr", "fcfs-nr", "fcfs-nir", "fcfs-r", "edd-lpr",
			"edd-r", "fut-lpr", "fut-nir", "fut-r", "jsq", "llw",
			"slb", "coc", "cos", "riq", "probe",
		};

		hedge_knob_set(&knobs, HEDGE_POLICY,
			       presets[below(ARRAY_SIZE(presets))]);
	} else {
		for (i = 0; i < ARRAY_SIZE(ends); i++)
			if (below(2))
				knobs.val[ends[i][0]] = below(ends[i][1]);
		knobs.val[HEDGE_COPIES] = 1 + below(nr_legs);
		knobs.val[HEDGE_MAX_HEDGES] = below(nr_legs);
	}
	knobs.val[HEDGE_QUEUE_DEPTH] = below(4);
	budget = below(3) ? 10 * below(10 * nr_legs - 9) : 0;
	snprintf(word, sizeof(word), "%u", budget);
	if (below(2))
		CHECK(!hedge_knob_set(&knobs, HEDGE_BUDGET_PCT, word), "%s",
		      word);
	sitting = below(3) ? 0 : below(1U << nr_legs);
	stalled = below(4) ? 0 : below(1U << nr_legs);
}

static void check_all(void)
{
	u32 count[HEDGE_MAX_LEGS] = { 0 }, i;
	const struct task *t;

	for (t = tasks; t < tasks + ARRAY_SIZE(tasks); t++) {
		if (!t->there)
			continue;
		CHECK(!(t->out & t->queued), "two copies on a leg");
		CHECK(!(t->queued & ~t->usable) || t->done, "not usable");
		CHECK(!(t->out & ~t->on) && !(t->queued & ~t->on), "on");
		for (i = 0; i < nr_legs; i++)
			count[i] += !!(t->out & (1U << i));
	}
	for (i = 0; i < nr_legs; i++)
		CHECK(count[i] == inflight[i], "leg %u: %u, not %u", i,
		      count[i], inflight[i]);
	CHECK(extra * HEDGE_COPY_COST + bucket <= earned, "over budget");
	CHECK(bucket <= HEDGE_BUDGET_CAP, "over the cap");
}

/* Nothing is left once all copies have come back. */
static void drain(void)
{
	unsigned int n, i;

	for (n = 0; n < 1000000; n++) {
		complete();
		dispatch();
		for (i = 0; i < MAX_JOBS && !jobs[i].there; i++)
			;
		if (i == MAX_JOBS)
			return;
	}
	CHECK(false, "a job never ends");
}

static void begin(void)
{
	memset(jobs, 0, sizeof(jobs));
	memset(tasks, 0, sizeof(tasks));
	memset(queue_len, 0, sizeof(queue_len));
	memset(inflight, 0, sizeof(inflight));
	nr_legs = 2 + below(HEDGE_MAX_LEGS - 1);
	bucket = 0;
	extra = 0;
	earned = 0;
	hedge_knobs_init(&knobs, nr_legs);
	set_at_random();
}

static void random_volume(void)
{
	u64 begun = 0;
	u32 step;

	printf("# SEED=%llu\n", (unsigned long long)tap_seed());
	begin();
	for (step = 0; step < STEPS; step++) {
		now++;
		switch (below(16)) {
		case 0: case 1: case 2: case 3: case 4:
			arrive();
			break;
		case 5: case 6:
			expire();
			break;
		case 7:
			lose_sync();
			break;
		default:
			complete();
		}
		if (!below(200))
			set_at_random();
		dispatch();
		check_all();
		if (!below(20000)) {
			drain();
			begin();
			begun++;
		}
	}
	drain();
	printf("# %llu volumes, %llu jobs, %llu cut, %llu hedges, %llu while others waited, %llu spared, %llu moved\n",
	       (unsigned long long)begun, (unsigned long long)ended,
	       (unsigned long long)cut, (unsigned long long)hedged,
	       (unsigned long long)joined, (unsigned long long)spared,
	       (unsigned long long)moved);
	CHECK(ended > STEPS / 20 && cut && hedged > 1000 && joined > 100 &&
	      spared > 100 && moved > 100, "too little has happened");
}

static const struct tap_test tests_model[] = {
	{ "model: random volumes: what must always hold", random_volume },
};

int main(void)
{
	return tap_run(tests_model, ARRAY_SIZE(tests_model));
}
