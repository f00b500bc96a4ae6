/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences between kernels, all of them. Kbuild finds out by compiling
 * what the kernel at hand has, and defines HAVE_... for it; the rest of the
 * module reads as if written for the newest.
 */
#ifndef DM_HEDGE_COMPAT_H
#define DM_HEDGE_COMPAT_H

#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>

#ifdef HAVE_HRTIMER_SETUP
#define hedge_hrtimer_setup hrtimer_setup
#else
static inline void
hedge_hrtimer_setup(struct hrtimer *timer,
		    enum hrtimer_restart (*function)(struct hrtimer *),
		    clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* Misaligned requests have a status of their own on newer kernels. */
#ifdef BLK_STS_INVAL
#define HEDGE_STS_INVAL BLK_STS_INVAL
#else
#define HEDGE_STS_INVAL BLK_STS_NOTSUPP
#endif

/* How a device is opened got a type and names of its own. */
#ifndef BLK_OPEN_WRITE
#define BLK_OPEN_WRITE FMODE_WRITE
#endif

/* Where device-mapper knows no atomic writes none are asked for. */
#ifndef DM_TARGET_ATOMIC_WRITES
#define DM_TARGET_ATOMIC_WRITES 0
#endif

/*
 * Whether dm_submit_bio_remap(), by which device-mapper also hands on what map has
 * remapped, charges the bio to the cgroup of the original. If it does not, we have
 * to: the block layer crashes on a bio without a cgroup.
 */
#ifdef HAVE_DM_CHARGES
#define HEDGE_DM_CHARGES true
#else
#define HEDGE_DM_CHARGES false
#endif

/*
 * The block cgroup that a bio is charged to, be it by a thread of another one; the
 * bio holds it. A bio without one is charged to its submitter's. The caller is in
 * an RCU read section.
 */
#ifdef CONFIG_BLK_CGROUP
static inline struct cgroup_subsys_state *hedge_css_get(struct bio *bio)
{
	struct cgroup_subsys_state *css;

	if (unlikely(bio->bi_blkg)) {
		css = bio_blkcg_css(bio);
		css_get(css);
		return css;
	}
	/* The task may be on its way out of one that is being removed. */
	do {
		css = task_css(current, io_cgrp_id);
	} while (unlikely(!css_tryget(css)));
	return css;
}

static inline void hedge_css_put(struct cgroup_subsys_state *css)
{
	if (css)
		css_put(css);
}
#else
static inline struct cgroup_subsys_state *hedge_css_get(struct bio *bio)
{
	return NULL;
}

static inline void hedge_css_put(struct cgroup_subsys_state *css)
{
}
#endif

/* dm_io() got an I/O priority, then a mask of what regions do not support. */
#ifdef HAVE_DM_IO_UNSUPPORTED
#define hedge_dm_io(req, nr, where, error) \
	dm_io(req, nr, where, error, NULL, IOPRIO_DEFAULT)
#elif defined(HAVE_DM_IO_PRIORITY)
#define hedge_dm_io(req, nr, where, error) \
	dm_io(req, nr, where, error, IOPRIO_DEFAULT)
#else
#define hedge_dm_io dm_io
#endif

/* Binary attributes became constant. */
#ifdef HAVE_CONST_BIN_ATTRIBUTE
#define HEDGE_BIN_ATTR const struct bin_attribute
#else
#define HEDGE_BIN_ATTR struct bin_attribute
#endif

#endif
