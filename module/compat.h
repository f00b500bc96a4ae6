/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences between kernels, all of them. Kbuild finds out by compiling
 * what the kernel at hand has, and defines HAVE_... for it; the rest of the
 * module reads as if written for the newest.
 */
#ifndef DM_HEDGE_COMPAT_H
#define DM_HEDGE_COMPAT_H

#include <linux/blk_types.h>
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

/* Binary attributes became constant. */
#ifdef HAVE_CONST_BIN_ATTRIBUTE
#define HEDGE_BIN_ATTR const struct bin_attribute
#else
#define HEDGE_BIN_ATTR struct bin_attribute
#endif

#endif
