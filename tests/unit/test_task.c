// SPDX-License-Identifier: GPL-2.0
/*
 * task.[ch]: the order of tasks, and what a free leg takes. Each rule of the
 * design is said again here as a comparison of two tasks, and must agree with
 * the ranks for random pairs.
 */
#include "task.h"
#include "tap.h"

#define STEPS 1000000

static struct hedge_knobs knobs;

static struct hedge_task_view random_task(void)
{
	struct hedge_task_view task = {
		.arrival_ns = 1000 + below(5), .unassigned = below(4),
		.copies = 1 + below(3),
	};

	task.due_ns = task.arrival_ns + below(3) * 2;
	return task;
}

static bool before(struct hedge_rank a, struct hedge_rank b)
{
	return hedge_rank_before(&a, &b);
}

/* Less than nothing, nothing, more: as the first key that differs says. */
static int compare(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

static int order(const struct hedge_task_view *a, const struct hedge_task_view *b)
{
	int by_arrival = compare(a->arrival_ns, b->arrival_ns);
	int by_due = compare(a->due_ns, b->due_ns);
	int by_tasks = compare(a->unassigned, b->unassigned);

	switch (knobs.val[HEDGE_ORDER]) {
	case HEDGE_EDD:
		return by_due ? by_due : by_arrival;
	case HEDGE_FUT:
		return by_tasks ? by_tasks : by_arrival;
	default:
		return by_arrival;
	}
}

static void ranks(void)
{
	unsigned int step;

	hedge_knobs_init(&knobs, 3);
	for (step = 0; step < STEPS; step++) {
		struct hedge_task_view a = random_task(), b = random_task();
		int by_copies = compare(a.copies, b.copies), want;

		knobs.val[HEDGE_ORDER] = below(3);
		knobs.val[HEDGE_REPLICATE] = below(4);
		want = order(&a, &b);
		CHECK(before(hedge_rank_waiting(&knobs, &a),
			     hedge_rank_waiting(&knobs, &b)) == (want < 0),
		      "step %u: order %u", step, knobs.val[HEDGE_ORDER]);
		if (knobs.val[HEDGE_REPLICATE] != HEDGE_R) {
			want = compare(a.arrival_ns, b.arrival_ns);
			if (knobs.val[HEDGE_REPLICATE] == HEDGE_NIR && by_copies)
				want = by_copies;
		}
		CHECK(before(hedge_rank_started(&knobs, &a),
			     hedge_rank_started(&knobs, &b)) == (want < 0),
		      "step %u: replicate %u", step,
		      knobs.val[HEDGE_REPLICATE]);
	}
}

/* Due at once is first come first served. */
static void edd_of_zero(void)
{
	struct hedge_knobs fcfs;
	unsigned int step;

	hedge_knobs_init(&knobs, 3);
	fcfs = knobs;
	knobs.val[HEDGE_ORDER] = HEDGE_EDD;
	for (step = 0; step < STEPS; step++) {
		struct hedge_task_view a = random_task(), b = random_task();

		a.due_ns = a.arrival_ns;
		b.due_ns = b.arrival_ns;
		CHECK(before(hedge_rank_waiting(&knobs, &a),
			     hedge_rank_waiting(&knobs, &b)) ==
		      before(hedge_rank_waiting(&fcfs, &a),
			     hedge_rank_waiting(&fcfs, &b)), "step %u", step);
	}
}

static void next(void)
{
	const struct hedge_rank early = { 1, 1 }, late = { 2, 1 };
	static const struct {
		u32 replicate, hedge_to;
		bool waiting, started, started_first, waits;
		enum hedge_next want;
	} cases[] = {
#define W HEDGE_NEXT_WAITING
#define S HEDGE_NEXT_STARTED
#define N HEDGE_NEXT_NONE
		/* What waits goes first, whatever its rank. */
		{ HEDGE_LPR, HEDGE_IDLE, 1, 1, 1, 1, W },
		{ HEDGE_NIR, HEDGE_IDLE, 1, 1, 1, 1, W },
		{ HEDGE_NR, HEDGE_IDLE, 1, 1, 1, 1, W },
		{ HEDGE_LPR, HEDGE_IDLE, 0, 1, 0, 0, S },
		{ HEDGE_NIR, HEDGE_IDLE, 0, 1, 0, 0, S },
		{ HEDGE_NR, HEDGE_IDLE, 0, 1, 0, 0, N },
		/* Something waits that this leg cannot take. */
		{ HEDGE_LPR, HEDGE_IDLE, 0, 1, 0, 1, N },
		{ HEDGE_NIR, HEDGE_IDLE, 0, 1, 0, 1, N },
		{ HEDGE_LPR, HEDGE_ANY, 0, 1, 0, 1, S },
		{ HEDGE_NR, HEDGE_ANY, 0, 1, 0, 1, N },
		/* The first of both. */
		{ HEDGE_R, HEDGE_IDLE, 1, 1, 1, 1, S },
		{ HEDGE_R, HEDGE_IDLE, 1, 1, 0, 1, W },
		{ HEDGE_R, HEDGE_IDLE, 0, 1, 0, 1, S },
		{ HEDGE_R, HEDGE_IDLE, 1, 0, 0, 1, W },
		{ HEDGE_R, HEDGE_IDLE, 0, 0, 0, 1, N },
#undef W
#undef S
#undef N
	};
	unsigned int i;

	hedge_knobs_init(&knobs, 3);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct hedge_rank *waiting = &early, *started = &late;
		enum hedge_next got;

		knobs.val[HEDGE_REPLICATE] = cases[i].replicate;
		knobs.val[HEDGE_HEDGE_TO] = cases[i].hedge_to;
		if (cases[i].started_first) {
			waiting = &late;
			started = &early;
		}
		got = hedge_next_task(&knobs, cases[i].waiting ? waiting : NULL,
				      cases[i].started ? started : NULL,
				      cases[i].waits);
		CHECK(got == cases[i].want, "case %u: %u", i, got);
	}
	knobs.val[HEDGE_REPLICATE] = HEDGE_R;
	CHECK(hedge_next_task(&knobs, &early, &early, true) ==
	      HEDGE_NEXT_STARTED, "a tie goes to the one that has begun");
}

static void due_times(void)
{
	hedge_knobs_init(&knobs, 3);
	CHECK(hedge_due_us(&knobs, HEDGE_DUE_RT) == 1000, "rt");
	CHECK(hedge_due_us(&knobs, HEDGE_DUE_BE) == 10000, "be");
	CHECK(hedge_due_us(&knobs, HEDGE_DUE_IDLE) == 100000, "idle");
}

static void at_once(void)
{
	static const bool want[] = {
		[HEDGE_NIR] = true, [HEDGE_R] = true,
	};
	unsigned int i;

	hedge_knobs_init(&knobs, 3);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		knobs.val[HEDGE_REPLICATE] = i;
		CHECK(hedge_at_once(&knobs) == want[i], "replicate %u", i);
	}
}

static const struct tap_test tests[] = {
	{ "task: ranks of random pairs", ranks },
	{ "task: edd with all due at once is fcfs", edd_of_zero },
	{ "task: what a free leg takes", next },
	{ "task: due times by class", due_times },
	{ "task: who may get a copy as soon as started", at_once },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
