/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kernels call differently, so that dm-lag.c reads as if written for the
 * newest. Kbuild finds out by compiling which of these are needed.
 */
#ifndef DM_LAG_COMPAT_H
#define DM_LAG_COMPAT_H

#include <linux/hrtimer.h>

#ifndef HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#endif
