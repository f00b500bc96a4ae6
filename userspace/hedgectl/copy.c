// SPDX-License-Identifier: GPL-2.0
/*
 * Makes one leg a copy of another before the device exists. The caller holds both exclusively, so
 * nothing can change them meanwhile; what is written to is what is held, whatever the path leads
 * to by now. The data is on the disk when this returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hedgectl.h"

#define CHUNK (1024 * 1024)

/* For a terminal, each time the per cent change; before is what it was told last. */
static void progress(const struct device *to, uint64_t done, uint64_t bytes, int *before)
{
	int percent = (int)(100.0 * (double)done / (double)bytes);

	if (percent != *before && isatty(STDERR_FILENO))
		fprintf(stderr, "\r%s: %3d %% copied%s", to->path, percent,
			done == bytes ? "\n" : "");
	*before = percent;
}

/* All of it, however the kernel splits it; the end of the device counts as an error. */
static int read_all(int fd, char *buffer, size_t size, uint64_t at)
{
	ssize_t n;

	for (; size; size -= n, buffer += n, at += n) {
		n = pread(fd, buffer, size, at);
		if (n <= 0) {
			errno = n ? errno : EIO;
			return -1;
		}
	}
	return 0;
}

static int write_all(int fd, const char *buffer, size_t size, uint64_t at)
{
	ssize_t n;

	for (; size; size -= n, buffer += n, at += n) {
		n = pwrite(fd, buffer, size, at);
		if (n <= 0) {
			errno = n ? errno : EIO;
			return -1;
		}
	}
	return 0;
}

static int copy_all(const struct device *from, const struct device *to, int out, char *buffer,
		    uint64_t bytes)
{
	int percent = -1;

	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		size_t size = bytes - at < CHUNK ? bytes - at : CHUNK;

		if (read_all(from->fd, buffer, size, at)) {
			fail("%s: can not be read at byte %llu: %s", from->path,
			     (unsigned long long)at, strerror(errno));
			return -1;
		}
		if (write_all(out, buffer, size, at)) {
			fail("%s: can not be written at byte %llu: %s", to->path,
			     (unsigned long long)at, strerror(errno));
			return -1;
		}
		progress(to, at + size, bytes, &percent);
	}
	if (fsync(out)) {
		fail("%s: the copy is not on the disk: %s", to->path, strerror(errno));
		return -1;
	}
	return 0;
}

int device_copy(const struct device *from, const struct device *to, uint64_t bytes)
{
	char *held = xprintf("/proc/self/fd/%d", to->fd);
	int out = open(held, O_WRONLY | O_CLOEXEC);
	char *buffer;
	int r;

	free(held);
	if (out < 0) {
		fail("%s: can not be opened to be written: %s", to->path, strerror(errno));
		return -1;
	}
	buffer = xcalloc(1, CHUNK);
	r = copy_all(from, to, out, buffer, bytes);
	free(buffer);
	if (close(out) && !r) {
		fail("%s: the copy is not on the disk: %s", to->path, strerror(errno));
		r = -1;
	}
	return r;
}
