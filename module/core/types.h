/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The integer types and the few helpers of the decision code, which is built
 * into the kernel module, the simulator and the unit tests alike.
 */
#ifndef HEDGE_CORE_TYPES_H
#define HEDGE_CORE_TYPES_H

#ifdef __KERNEL__

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>

#else

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define div64_u64(a, b) ((a) / (b))
#define hweight32(a) ((unsigned int)__builtin_popcount(a))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* As the kernel's: returns what was written, so that sums never pass @size. */
static inline int scnprintf(char *buf, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	if (!size)
		return 0;
	va_start(args, format);
	n = vsnprintf(buf, size, format, args);
	va_end(args);
	return n < (int)size ? n : (int)size - 1;
}

#endif

#define HEDGE_MAX_LEGS 8
#define HEDGE_NO_LEG HEDGE_MAX_LEGS

#define HEDGE_NS_PER_US 1000ULL
#define HEDGE_NS_PER_S 1000000000ULL

/**
 * hedge_random - next number of a xorshift64* generator
 * @state: the generator's state, never 0; private to the caller
 *
 * Good enough to spread reads, and cheap: the reads themselves wait for it.
 *
 * Return: 32 random bits.
 */
static inline u32 hedge_random(u64 *state)
{
	u64 x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return (x * 0x2545F4914F6CDD1DULL) >> 32;
}

/**
 * hedge_random_below - a random number below a bound
 * @state: the generator's state
 * @bound: exclusive bound, at least 1
 *
 * Return: a number in [0, @bound), by multiplication instead of division.
 */
static inline u32 hedge_random_below(u64 *state, u32 bound)
{
	return ((u64)hedge_random(state) * bound) >> 32;
}

#endif
