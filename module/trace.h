/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: the life of a read, and of a leg.
 *
 * The id ties the events of one read. Sector and bytes are the read's, in the
 * device's own sectors. The last number is always in nanoseconds.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dm_hedge

#if !defined(DM_HEDGE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DM_HEDGE_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(hedge_read,
	TP_PROTO(u64 id, u64 sector, u32 bytes, u64 ns, bool direct),
	TP_ARGS(id, sector, bytes, ns, direct),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u64, sector)
		__field(u32, bytes)
		__field(bool, direct)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->sector = sector;
		__entry->bytes = bytes;
		__entry->direct = direct;
		__entry->ns = ns;
	),
	TP_printk("id=%llx sector=%llu bytes=%u direct=%d at_ns=%llu",
		  __entry->id, __entry->sector, __entry->bytes,
		  __entry->direct, __entry->ns)
);

TRACE_EVENT(hedge_start,
	TP_PROTO(u64 id, u32 leg, u64 sector, u32 bytes, u64 ns, u32 kind),
	TP_ARGS(id, leg, sector, bytes, ns, kind),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, leg)
		__field(u32, kind)
		__field(u64, sector)
		__field(u32, bytes)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->leg = leg;
		__entry->kind = kind;
		__entry->sector = sector;
		__entry->bytes = bytes;
		__entry->ns = ns;
	),
	/* kind: 0 at arrival, 1 a hedge, 2 a rescue */
	TP_printk("id=%llx leg=%u kind=%u sector=%llu bytes=%u since_arrival_ns=%llu",
		  __entry->id, __entry->leg, __entry->kind, __entry->sector,
		  __entry->bytes, __entry->ns)
);

DECLARE_EVENT_CLASS(hedge_copy,
	TP_PROTO(u64 id, u32 leg, u64 sector, u32 bytes, u64 ns),
	TP_ARGS(id, leg, sector, bytes, ns),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, leg)
		__field(u64, sector)
		__field(u32, bytes)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->leg = leg;
		__entry->sector = sector;
		__entry->bytes = bytes;
		__entry->ns = ns;
	),
	TP_printk("id=%llx leg=%u sector=%llu bytes=%u ns=%llu",
		  __entry->id, __entry->leg, __entry->sector, __entry->bytes,
		  __entry->ns)
);

/* A read is overdue; ns since it arrived. */
DEFINE_EVENT(hedge_copy, hedge_timeout,
	TP_PROTO(u64 id, u32 leg, u64 sector, u32 bytes, u64 ns),
	TP_ARGS(id, leg, sector, bytes, ns));

/* A hedge, rescue, retry or move was decided on, to this leg; likewise. */
DEFINE_EVENT(hedge_copy, hedge_reissue,
	TP_PROTO(u64 id, u32 leg, u64 sector, u32 bytes, u64 ns),
	TP_ARGS(id, leg, sector, bytes, ns));

/* A queued copy was removed; likewise. */
DEFINE_EVENT(hedge_copy, hedge_cancel,
	TP_PROTO(u64 id, u32 leg, u64 sector, u32 bytes, u64 ns),
	TP_ARGS(id, leg, sector, bytes, ns));

/* A copy answered its read; likewise. */
DEFINE_EVENT(hedge_copy, hedge_win,
	TP_PROTO(u64 id, u32 leg, u64 sector, u32 bytes, u64 ns),
	TP_ARGS(id, leg, sector, bytes, ns));

/* A started copy came too late or failed; ns since it was started. */
DEFINE_EVENT(hedge_copy, hedge_lose,
	TP_PROTO(u64 id, u32 leg, u64 sector, u32 bytes, u64 ns),
	TP_ARGS(id, leg, sector, bytes, ns));

TRACE_EVENT(hedge_leg_state,
	TP_PROTO(u32 dev, u32 leg, bool live, bool stalled, bool sitting,
		 u32 health),
	TP_ARGS(dev, leg, live, stalled, sitting, health),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, leg)
		__field(bool, live)
		__field(bool, stalled)
		__field(bool, sitting)
		__field(u32, health)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->leg = leg;
		__entry->live = live;
		__entry->stalled = stalled;
		__entry->sitting = sitting;
		__entry->health = health;
	),
	/* health: the bits of enum hedge_health */
	TP_printk("dev=%u:%u leg=%u live=%d stalled=%d sitting=%d health=%x",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->leg,
		  __entry->live, __entry->stalled, __entry->sitting,
		  __entry->health)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
