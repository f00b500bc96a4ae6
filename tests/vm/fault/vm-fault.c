// SPDX-License-Identifier: GPL-2.0
/*
 * A module that misbehaves on request, once, while it is loaded, so that
 * tests/vm/selftest can show that a rig notices:
 *
 *	modprobe vm-fault kind=warn|hang|leak|uaf|sleep|lock|shift|timer
 *
 * All but warn and hang need the checks of the debug rig's kernel, which report each
 * of them and go on.
 */

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *kind = "";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "what to do wrong");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spin);

static void warn(void)
{
	WARN(1, "vm-fault\n");
}

static void spin_for_ever(void *unused)
{
	for (;;)
		cpu_relax();
}

/* Called with interrupts off on each processor: none does anything else any more. */
static void hang(void)
{
	on_each_cpu(spin_for_ever, NULL, 0);
}

/* kmemleak searches stacks and data for the address: nothing may keep it. */
static noinline void leak(void)
{
	void *p = NULL;
	int i;

	for (i = 0; i < 16; i++) {
		p = kmalloc(100, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(p);
	}
	kfree(p);
}

static void use_after_free(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(p);
	kfree(p);
	if (p)
		READ_ONCE(*p);
}

static void sleep_in_atomic(void)
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
}

static void lock_both_ways(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void shift_too_far(void)
{
	unsigned int by = 40;
	int value = 1;

	OPTIMIZER_HIDE_VAR(by);
	value <<= by;
	OPTIMIZER_HIDE_VAR(value);
}

static void no_op(struct timer_list *timer)
{
}

/* debug objects stops the timer, so that it never fires in freed memory. */
static void free_active_timer(void)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, no_op, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer);
}

static const struct {
	const char *name;
	void (*act)(void);
} kinds[] = {
	{ "warn", warn },
	{ "hang", hang },
	{ "leak", leak },
	{ "uaf", use_after_free },
	{ "sleep", sleep_in_atomic },
	{ "lock", lock_both_ways },
	{ "shift", shift_too_far },
	{ "timer", free_active_timer },
};

static int __init vm_fault_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(kind, kinds[i].name)) {
			kinds[i].act();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit vm_fault_exit(void)
{
}

module_init(vm_fault_init);
module_exit(vm_fault_exit);

MODULE_DESCRIPTION("Faults on request");
MODULE_LICENSE("GPL");
