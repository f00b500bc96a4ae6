/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs, their tasks, and the copies of these.
 *
 * Most jobs have one task, and most tasks one copy: the first of each is part of
 * what it belongs to, so that all of such a job lies in three cache lines, of
 * which the copy is the first.
 */
#ifndef HEDGESIM_JOB_H
#define HEDGESIM_JOB_H

#include "list.h"
#include "types.h"

/*
 * Where a copy is:
 *
 *	QUEUED	in our queue of a server: it can be cancelled
 *	HANDED	at the server, which has no free slot for it (only with a
 *		queue_depth that is not the number of slots)
 *	SERVED	in a slot; its completion is in the calendar
 */
enum place { QUEUED, HANDED, SERVED };

/**
 * struct copy - a copy of a task
 * @task: the task
 * @next: the next copy of the task
 * @list: among the copies that wait at the same place
 * @end: when it will have been served; negative while it is in no slot: by how long
 * its service will be, minus infinity if that is not known before it begins
 * @handed: when it was handed to its server
 * @slow: its service time for a size of 1
 * @server: where it is
 * @depth: copies in flight at its server when it was handed over, or COPY_DEEP
 * @place: see above
 * @hedge: it was sent because of a timeout, or beside a started one
 * @probe: it is a probe
 * @went: it has been handed to a server before
 */
struct copy {
	struct task *task;
	struct copy *next;
	struct list list;
	double end, handed, slow;
	u32 server;
	u16 depth;
	u8 place;
	bool hedge : 1, probe : 1, went : 1;
};
#define COPY_DEEP 0xffff

/**
 * struct task - a part of a job that is served by itself
 * @first: memory of the first copy
 * @job: the job
 * @next: the next task of the job
 * @copies: those that are somewhere
 * @size: what a copy's service time is multiplied by
 * @nr: how many copies are somewhere
 * @out: how many of these are at a server
 * @starts: how many copies were handed to a server
 * @hedges: how many hedges were sent
 * @needed: copies that still have to complete
 * @started: its place among the tasks that may get another copy
 * @clock: its place among the tasks whose timeout is to come
 * @clocked: its clock has been started
 * @done: it has what it needs
 * @probed: a probe has decided where it is served
 * @first_used: @first is one of the copies
 */
struct task {
	struct copy first;
	struct job *job;
	struct task *next;
	struct copy *copies;
	double size;
	u32 nr, out, starts, hedges, needed;
	u32 started, clock;
	bool clocked, done, probed, first_used;
};

/**
 * struct job - a job
 * @first: memory of the first task
 * @arrival: when it arrived
 * @started: when its last task started
 * @due: when it is due, in nanoseconds of the module
 * @size: its size
 * @tasks: those that are somewhere, the last that was made first
 * @legs: the servers that can serve it, NULL for all
 * @unassigned: tasks that have not started
 * @unfinished: tasks that are not done
 * @alive: tasks that are somewhere
 * @waiting: its place in the shared queue
 * @type: its type
 * @batch: of the statistics it counts in, STATS_BATCHES for none
 * @first_used: @first is one of the tasks
 * @wants: in the shared queue: the first of @tasks wants more copies
 */
struct job {
	struct task first;
	double arrival, started, size;
	u64 due;
	struct task *tasks;
	u32 *legs;
	u32 waiting;
	u16 unassigned, unfinished, alive;
	u16 type;
	u8 batch;
	bool first_used, wants;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct copy) == 64 && sizeof(struct job) == 192, "three cache lines");

#endif
