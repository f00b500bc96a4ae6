// SPDX-License-Identifier: GPL-2.0
/* types.h: the random generator, and scnprintf as the kernel has it. */
#include "tap.h"

#define DRAWS 1000000

static void random_below_bound(void)
{
	unsigned int i;

	for (i = 0; i < DRAWS; i++) {
		u32 bound = (hedge_random(&rng) >> below(32)) | 1;
		u32 n = below(bound);

		CHECK(n < bound, "%u of %u", n, bound);
	}
}

/* Chi-square with 7 degrees of freedom exceeds 36 once in 130,000 times. */
static void random_is_even(void)
{
	unsigned int i, seen[8] = { 0 };
	double chi2 = 0;

	for (i = 0; i < DRAWS; i++)
		seen[below(8)]++;
	for (i = 0; i < 8; i++)
		chi2 += (seen[i] - DRAWS / 8.0) * (seen[i] - DRAWS / 8.0) /
			(DRAWS / 8.0);
	CHECK(chi2 < 36, "chi-square %g", chi2);
}

static void random_never_sticks(void)
{
	unsigned int i;

	for (i = 0; i < DRAWS; i++) {
		u64 before = rng;

		hedge_random(&rng);
		CHECK(rng && rng != before, "step %u", i);
	}
}

static void scnprintf_stays_inside(void)
{
	char buf[8];

	CHECK(scnprintf(buf, 8, "%s", "seven77") == 7, "%s", buf);
	CHECK(scnprintf(buf, 8, "%s", "eight888") == 7, "%s", buf);
	CHECK(!strcmp(buf, "eight88"), "%s", buf);
	CHECK(scnprintf(buf, 1, "%s", "x") == 0 && !buf[0], "%s", buf);
	buf[0] = 'y';
	CHECK(scnprintf(buf, 0, "%s", "x") == 0 && buf[0] == 'y', "written");
}

static const struct tap_test tests[] = {
	{ "types: random numbers stay below their bound", random_below_bound },
	{ "types: random numbers are even", random_is_even },
	{ "types: the generator never sticks", random_never_sticks },
	{ "types: scnprintf stays inside its room", scnprintf_stays_inside },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
