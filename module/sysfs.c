// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes: /sys/block/dm-N/hedge0/.
 *
 * The directories appear at resume and go at postsuspend, so only the active
 * table of a device has them, and a table that is loaded while another is active
 * does not collide with it. Values live in the target and survive. Making and
 * removing directories allocates memory while the device may be suspended, so
 * no reclaim that needs I/O is allowed then.
 *
 * A directory's object is released before hedge_sysfs_remove() returns: kernfs
 * waits for readers and writers of its files, and we wait for the release.
 */
#include <linux/sysfs.h>
#include <linux/vmalloc.h>

#include "hedge.h"

/* Targets that have directories, to number those of one device. */
static LIST_HEAD(visible);
static DEFINE_MUTEX(visible_mutex);

static struct hedge *to_hedge(struct kobject *kobj)
{
	return container_of(kobj, struct hedge, kobj);
}

static struct hedge_leg *to_leg(struct kobject *kobj)
{
	return container_of(kobj, struct hedge_leg, kobj);
}

/* Sets an attribute to what was written, without the line feed behind it. */
static ssize_t store_word(struct hedge *h, int leg, const char *attribute,
			  const char *buf, size_t len)
{
	char word[32];
	int r;

	if (len && buf[len - 1] == '\n')
		len--;
	if (!len || len >= sizeof(word) || memchr(buf, '\0', len))
		return -EINVAL;
	memcpy(word, buf, len);
	word[len] = '\0';
	r = hedge_conf_set(h, leg, attribute, word);
	return r;
}

static ssize_t knob_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct hedge *h = to_hedge(kobj);
	int n;

	rcu_read_lock();
	n = hedge_knob_list(&rcu_dereference(h->conf)->knobs,
			    hedge_knob_find(attr->attr.name), buf, PAGE_SIZE);
	rcu_read_unlock();
	return n + sysfs_emit_at(buf, n, "\n");
}

static ssize_t knob_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t len)
{
	ssize_t r = store_word(to_hedge(kobj), -1, attr->attr.name, buf, len);

	return r ?: len;
}

#define KNOB(_name) \
	static struct kobj_attribute knob_##_name = \
		__ATTR(_name, 0644, knob_show, knob_store)

KNOB(policy);
KNOB(copies);
KNOB(copies_to);
KNOB(cancel);
KNOB(timeout_us);
KNOB(timeout_from);
KNOB(max_hedges);
KNOB(hedge_to);
KNOB(balance);
KNOB(choices);
KNOB(queue);
KNOB(order);
KNOB(replicate);
KNOB(probe);
KNOB(probe_kb);
KNOB(probe_priority);
KNOB(task_kb);
KNOB(due_us_rt);
KNOB(due_us_be);
KNOB(due_us_idle);
KNOB(sitout_pct);
KNOB(sitout_s);
KNOB(queue_depth);
KNOB(budget_pct);
KNOB(hedge_depth);
KNOB(rescue_us);
KNOB(max_copy_kb);
KNOB(bounce_mb);

static ssize_t tau_us_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%llu\n", hedge_tau_us(to_hedge(kobj)));
}

static struct kobj_attribute tau_us = __ATTR_RO(tau_us);

static ssize_t check_done_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	struct hedge *h = to_hedge(kobj);

	return sysfs_emit(buf, "%llu/%llu\n",
			  (u64)READ_ONCE(h->check.next), (u64)h->nr_regions);
}

static struct kobj_attribute check_done = __ATTR_RO(check_done);

static struct attribute *hedge_attrs[] = {
	&knob_policy.attr, &knob_copies.attr, &knob_copies_to.attr,
	&knob_cancel.attr, &knob_timeout_us.attr, &knob_timeout_from.attr,
	&knob_max_hedges.attr, &knob_hedge_to.attr, &knob_balance.attr,
	&knob_choices.attr, &knob_queue.attr, &knob_order.attr,
	&knob_replicate.attr, &knob_probe.attr, &knob_probe_kb.attr,
	&knob_probe_priority.attr, &knob_task_kb.attr,
	&knob_due_us_rt.attr, &knob_due_us_be.attr,
	&knob_due_us_idle.attr, &knob_sitout_pct.attr, &knob_sitout_s.attr,
	&knob_queue_depth.attr, &knob_budget_pct.attr, &knob_hedge_depth.attr,
	&knob_rescue_us.attr, &knob_max_copy_kb.attr, &knob_bounce_mb.attr,
	&tau_us.attr, &check_done.attr, NULL
};

static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf);

#define COUNTER(_name) \
	static struct kobj_attribute counter_##_name = \
		__ATTR(_name, 0444, counter_show, NULL)

COUNTER(reads);
COUNTER(copies);
COUNTER(extra);
COUNTER(hedged);
COUNTER(won);
COUNTER(wasted);
COUNTER(cancelled);
COUNTER(moved);
COUNTER(rescued);
COUNTER(unhedged_budget);
COUNTER(unhedged_memory);
COUNTER(unhedged_sync);
COUNTER(unhedged_large);
COUNTER(retried);
COUNTER(repaired);
COUNTER(mismatches);

static struct attribute *counter_attrs[] = {
	&counter_reads.attr, &counter_copies.attr, &counter_extra.attr,
	&counter_hedged.attr, &counter_won.attr, &counter_wasted.attr,
	&counter_cancelled.attr, &counter_moved.attr, &counter_rescued.attr,
	&counter_unhedged_budget.attr, &counter_unhedged_memory.attr,
	&counter_unhedged_sync.attr, &counter_unhedged_large.attr,
	&counter_retried.attr, &counter_repaired.attr,
	&counter_mismatches.attr, NULL
};

static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	unsigned int i;

	for (i = 0; i < HEDGE_NR_COUNTERS; i++)
		if (!strcmp(hedge_counter_names[i], attr->attr.name))
			return sysfs_emit(buf, "%lu\n",
					  hedge_counter_sum(to_hedge(kobj), i));
	return -ENOENT;
}

static const struct attribute_group hedge_group = { .attrs = hedge_attrs };
static const struct attribute_group counter_group = {
	.name = "stats",
	.attrs = counter_attrs,
};

static const struct attribute_group *hedge_groups[] = {
	&hedge_group, &counter_group, NULL
};

/* The settings and measurements of a leg. */

static ssize_t leg_conf_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	struct hedge_leg *leg = to_leg(kobj);
	struct hedge_leg_conf conf;
	int n;

	rcu_read_lock();
	conf = rcu_dereference(leg->hedge->conf)->leg[leg->index];
	rcu_read_unlock();
	if (!strcmp(attr->attr.name, "weight"))
		return sysfs_emit(buf, "%u\n", conf.weight);
	if (!strcmp(attr->attr.name, "hedge_weight"))
		return sysfs_emit(buf, "%u\n", conf.hedge_weight);
	n = hedge_format_timeout(conf.timeout_us, buf, PAGE_SIZE);
	return n + sysfs_emit_at(buf, n, "\n");
}

static ssize_t leg_conf_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t len)
{
	struct hedge_leg *leg = to_leg(kobj);
	ssize_t r = store_word(leg->hedge, leg->index, attr->attr.name, buf,
			       len);

	return r ?: len;
}

static struct kobj_attribute leg_weight =
	__ATTR(weight, 0644, leg_conf_show, leg_conf_store);
static struct kobj_attribute leg_hedge_weight =
	__ATTR(hedge_weight, 0644, leg_conf_show, leg_conf_store);
static struct kobj_attribute leg_timeout_us =
	__ATTR(timeout_us, 0644, leg_conf_show, leg_conf_store);

#define LEG_ATTR(_name, _format, _value) \
	static ssize_t _name##_show(struct kobject *kobj, \
				    struct kobj_attribute *attr, char *buf) \
	{ \
		struct hedge_leg *leg = to_leg(kobj); \
\
		return sysfs_emit(buf, _format "\n", _value); \
	} \
	static struct kobj_attribute leg_##_name = __ATTR_RO(_name)

LEG_ATTR(device, "%s", hedge_leg_name(leg));
LEG_ATTR(state, "%s", hedge_leg_state(leg));
LEG_ATTR(stalled, "%d", !!(READ_ONCE(leg->hedge->stalled) & BIT(leg->index)));
LEG_ATTR(sitting, "%d", !!(READ_ONCE(leg->hedge->sitting) & BIT(leg->index)));
LEG_ATTR(inflight, "%d", atomic_read(&leg->inflight));
LEG_ATTR(queued, "%u", READ_ONCE(leg->queued));
LEG_ATTR(latency_us, "%u", READ_ONCE(leg->service_us));
LEG_ATTR(oldest_us, "%llu",
	 div_u64(hedge_leg_oldest(leg, ktime_get_ns()), NSEC_PER_USEC));
LEG_ATTR(reads, "%lu", hedge_leg_reads(leg));
LEG_ATTR(errors, "%lu", hedge_leg_errors(leg));
LEG_ATTR(missed, "%llu", (unsigned long long)READ_ONCE(leg->nr_missed));

static struct attribute *leg_attrs[] = {
	&leg_device.attr, &leg_state.attr, &leg_stalled.attr, &leg_sitting.attr,
	&leg_weight.attr, &leg_hedge_weight.attr, &leg_timeout_us.attr,
	&leg_inflight.attr, &leg_queued.attr, &leg_latency_us.attr,
	&leg_oldest_us.attr, &leg_reads.attr, &leg_errors.attr,
	&leg_missed.attr, NULL
};

/*
 * Reads as text. It may be longer than a page, so it is a binary attribute; the
 * text is made anew for each piece that is read.
 */
static ssize_t histogram_read(struct file *file, struct kobject *kobj,
			      HEDGE_BIN_ATTR *attr, char *buf, loff_t off,
			      size_t count)
{
	struct hedge_leg *leg = to_leg(kobj);
	struct hedge_leg_stats *sum = kmalloc(sizeof(*sum), GFP_NOIO);
	char *text = __vmalloc(HEDGE_HIST_TEXT_MAX, GFP_NOIO);
	ssize_t n = -ENOMEM;

	if (sum && text) {
		hedge_leg_stats_sum(leg, sum);
		n = hedge_hist_print(sum, text, HEDGE_HIST_TEXT_MAX);
		n = memory_read_from_buffer(buf, count, &off, text, n);
	}
	vfree(text);
	kfree(sum);
	return n;
}

static struct bin_attribute leg_histogram = {
	.attr = { .name = "histogram", .mode = 0444 },
	.read = histogram_read,
};

static HEDGE_BIN_ATTR *leg_bin_attrs[] = { &leg_histogram, NULL };

static const struct attribute_group leg_group = {
	.attrs = leg_attrs,
	.bin_attrs = leg_bin_attrs,
};

static const struct attribute_group *leg_groups[] = { &leg_group, NULL };

static void hedge_release(struct kobject *kobj)
{
	complete(&to_hedge(kobj)->released);
}

static void leg_release(struct kobject *kobj)
{
	complete(&to_leg(kobj)->released);
}

static const struct kobj_type hedge_ktype = {
	.release = hedge_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = hedge_groups,
};

static const struct kobj_type leg_ktype = {
	.release = leg_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = leg_groups,
};

/* Number of a target among those of its device. Caller holds visible_mutex. */
static unsigned int target_index(struct hedge *h)
{
	struct mapped_device *md = dm_table_get_md(h->ti->table);
	unsigned int index = 0;
	struct hedge *other;

	list_for_each_entry(other, &visible, visible)
		if (dm_table_get_md(other->ti->table) == md)
			index++;
	return index;
}

static int add_legs(struct hedge *h)
{
	unsigned int i;
	int r;

	h->legs_kobj = kobject_create_and_add("legs", &h->kobj);
	if (!h->legs_kobj)
		return -ENOMEM;
	for (i = 0; i < h->nr_legs; i++) {
		struct hedge_leg *leg = &h->leg[i];

		init_completion(&leg->released);
		memset(&leg->kobj, 0, sizeof(leg->kobj));
		r = kobject_init_and_add(&leg->kobj, (struct kobj_type *)&leg_ktype,
					 h->legs_kobj, "%u", i);
		leg->has_kobj = true;
		if (r)
			return r;
	}
	return 0;
}

/* Removes a directory, which may not have been made, and awaits its release. */
static void remove_one(struct kobject *kobj, struct completion *released)
{
	if (kobj->state_in_sysfs)
		kobject_del(kobj);
	kobject_put(kobj);
	wait_for_completion(released);
}

/* Removes whatever of the directories is there. */
static void remove_all(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++) {
		struct hedge_leg *leg = &h->leg[i];

		if (!leg->has_kobj)
			continue;
		remove_one(&leg->kobj, &leg->released);
		leg->has_kobj = false;
	}
	kobject_put(h->legs_kobj);
	h->legs_kobj = NULL;
	remove_one(&h->kobj, &h->released);
}

/**
 * hedge_sysfs_add - make the directories of a target
 * @h: the target
 *
 * A target runs without them if they cannot be made; the log says so.
 *
 * Context: process. May sleep, but not for I/O.
 */
void hedge_sysfs_add(struct hedge *h)
{
	struct gendisk *disk = dm_disk(dm_table_get_md(h->ti->table));
	unsigned int noio = memalloc_noio_save();
	int r;

	mutex_lock(&visible_mutex);
	init_completion(&h->released);
	memset(&h->kobj, 0, sizeof(h->kobj));
	r = kobject_init_and_add(&h->kobj, (struct kobj_type *)&hedge_ktype,
				 &disk_to_dev(disk)->kobj, "hedge%u",
				 target_index(h));
	if (!r)
		r = add_legs(h);
	if (r) {
		DMWARN("%s: no attributes in sysfs: error %d",
		       dm_table_device_name(h->ti->table), r);
		remove_all(h);
	} else {
		list_add_tail(&h->visible, &visible);
	}
	mutex_unlock(&visible_mutex);
	memalloc_noio_restore(noio);
}

/**
 * hedge_sysfs_remove - remove the directories of a target
 * @h: the target
 *
 * Context: process. May sleep, but not for I/O.
 */
void hedge_sysfs_remove(struct hedge *h)
{
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&visible_mutex);
	if (!list_empty(&h->visible)) {
		list_del_init(&h->visible);
		remove_all(h);
	}
	mutex_unlock(&visible_mutex);
	memalloc_noio_restore(noio);
}
