/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers with exact seeds: xoshiro256** (Blackman and Vigna), whose
 * state is filled by splitmix64, so that any seed will do, even 0. The same seed
 * gives the same numbers on every machine.
 */
#ifndef THEORY_RNG_H
#define THEORY_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

static inline uint64_t rng_splitmix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/**
 * rng_seed - start a generator
 * @rng: the generator
 * @seed: any number
 * @stream: generators with the same seed and another stream are independent
 */
static inline void rng_seed(struct rng *rng, uint64_t seed, uint64_t stream)
{
	uint64_t state = seed;
	int i;

	state = rng_splitmix(&state) + stream;
	for (i = 0; i < 4; i++)
		rng->s[i] = rng_splitmix(&state);
}

/**
 * rng_u64 - the next 64 random bits
 * @rng: the generator
 */
static inline uint64_t rng_u64(struct rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = s[1] * 5, t = s[1] << 17;

	result = ((result << 7) | (result >> 57)) * 9;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

/**
 * rng_uniform - a random number inside (0, 1)
 * @rng: the generator
 *
 * Neither end is ever given, so that its logarithm is finite.
 */
static inline double rng_uniform(struct rng *rng)
{
	return ((rng_u64(rng) >> 12) + 0.5) * 0x1p-52;
}

#endif
