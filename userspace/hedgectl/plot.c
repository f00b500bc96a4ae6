// SPDX-License-Identifier: GPL-2.0
/*
 * Pictures of the histograms of legs. On a terminal: a row for each step of latency, the legs side
 * by side, bars whose length is the logarithm of the count on one scale for all legs, for the tail
 * that matters is a thousandth of the height of the rest. In a file: gnuplot draws the same counts,
 * both axes logarithmic. The timeout is a line across either.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hedgectl.h"

#define WIDTH 80	/* where the terminal does not say */
#define LEFT 10		/* for the latency */
#define COUNT 10	/* for a count, where columns are wide enough */

int plot_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < WIDTH)
		return WIDTH;
	return size.ws_col;
}

static uint64_t count_between(const struct histogram *histogram, uint64_t from, uint64_t to)
{
	uint64_t sum = 0;

	for (int i = 0; i < histogram->count; i++)
		if (histogram->buckets[i].from >= from && histogram->buckets[i].from < to)
			sum += histogram->buckets[i].count;
	return sum;
}

static void repeat(FILE *file, char c, int n)
{
	while (n-- > 0)
		putc(c, file);
}

/* Any count at all has a bar of at least one. */
static int bar_length(uint64_t count, uint64_t most, int room)
{
	if (!count)
		return 0;
	return 1 + (int)((room - 1) * log((double)count) / log((double)most + 1));
}

static void print_row(FILE *file, const struct leg_set *set, const struct bucket *row,
		      uint64_t most, int column)
{
	char text[TIME_TEXT];
	int blank = 0;

	fprintf(file, "%*s", LEFT, format_time(row->from, text, sizeof(text)));
	for (int i = 0; i < set->count; i++) {
		uint64_t count = count_between(&set->legs[i].sum, row->from, row->to);
		int room = column - 1, bar;

		repeat(file, ' ', blank + 1);
		if (column >= 2 * COUNT) {
			fprintf(file, "%*" PRIu64, COUNT - 1, count);
			room -= COUNT;
		}
		bar = bar_length(count, most, room);
		if (bar && room < column - 1)
			putc(' ', file);
		repeat(file, '#', bar);
		blank = room - bar + (!bar && room < column - 1);
	}
	putc('\n', file);
}

static void print_tau(FILE *file, uint64_t tau_us, int width)
{
	char text[TIME_TEXT];

	repeat(file, '-', width - fprintf(file, "%*s -- tau ", LEFT,
					  format_time(tau_us * 1000, text, sizeof(text))));
	putc('\n', file);
}

static void print_names(FILE *file, const struct leg_set *set, int column)
{
	int blank = 0;

	fprintf(file, "\n%*s", LEFT, "FROM");
	for (int i = 0; i < set->count; i++) {
		repeat(file, ' ', blank);
		blank = column - fprintf(file, " %.*s", column - 2, set->legs[i].label);
	}
	putc('\n', file);
}

/* The row that holds tau comes before the line of tau, which is somewhere inside it. */
void plot_text(FILE *file, const struct leg_set *set, uint64_t tau_us, int width)
{
	struct histogram sum = { 0 }, rows;
	int column = (width - LEFT) / (set->count ? set->count : 1);
	uint64_t most = 1;

	for (int i = 0; i < set->count; i++)
		histogram_merge(&sum, &set->legs[i].sum);
	histogram_rows(&sum, &rows);
	if (!rows.count) {
		fprintf(file, "no read was counted yet\n");
		goto out;
	}
	for (int i = 0; i < rows.count; i++)
		for (int j = 0; j < set->count; j++) {
			uint64_t n = count_between(&set->legs[j].sum, rows.buckets[i].from,
						   rows.buckets[i].to);

			most = n > most ? n : most;
		}
	print_names(file, set, column);
	for (int i = 0; i < rows.count; i++) {
		const struct bucket *row = &rows.buckets[i];

		print_row(file, set, row, most, column);
		if (tau_us && (row->from <= tau_us * 1000 || !i) &&
		    (tau_us * 1000 < row->to || i == rows.count - 1))
			print_tau(file, tau_us, width);
	}
out:
	histogram_free(&rows);
	histogram_free(&sum);
}

/* In single quotes gnuplot takes everything as it is, but a quote, which is doubled. */
static void print_quoted(FILE *file, const char *text)
{
	putc('\'', file);
	for (; *text; text++) {
		if (*text == '\'')
			putc('\'', file);
		putc(*text, file);
	}
	putc('\'', file);
}

/* Corners of the steps. What a logarithmic axis can not show, a count of 0, lies on its bottom. */
static void print_data(FILE *file, const struct histogram *histogram, int index)
{
	uint64_t end = 0;

	fprintf(file, "$leg%d << EOD\n", index);
	for (int i = 0; i < histogram->count; i++) {
		const struct bucket *b = &histogram->buckets[i];
		double from = b->from ? (double)b->from / 1e3 : 0.1;

		if (!b->count)
			continue;
		if (end != b->from)
			fprintf(file, "%.9g 0.5\n%.9g 0.5\n", end ? (double)end / 1e3 : from, from);
		fprintf(file, "%.9g %" PRIu64 "\n%.9g %" PRIu64 "\n", from, b->count,
			(double)b->to / 1e3, b->count);
		end = b->to;
	}
	if (end)
		fprintf(file, "%.9g 0.5\n", (double)end / 1e3);
	else
		fprintf(file, "1 0.5\n");
	fprintf(file, "EOD\n");
}

/* The script for gnuplot; output is a path, and never a command, which would begin with "|". */
void plot_script(FILE *file, const struct leg_set *set, uint64_t tau_us, const char *title,
		 const char *terminal, const char *output)
{
	char text[TIME_TEXT], *path = xprintf("%s%s", *output == '/' ? "" : "./", output);

	fprintf(file, "set terminal %s noenhanced\nset output ", terminal);
	print_quoted(file, path);
	fprintf(file, "\nset title ");
	print_quoted(file, title);
	fprintf(file, "\nset logscale xy\nset xlabel 'latency of a read copy, us'\n"
		      "set ylabel 'copies in a bucket'\nset yrange [0.5:*]\nset grid\n"
		      "set key top right\n");
	if (tau_us)
		fprintf(file,
			"set arrow 1 from %" PRIu64 ", graph 0 to %" PRIu64 ", graph 1 nohead dashtype 2\n"
			"set label 1 'tau %s' at %" PRIu64 ", graph 0.97 offset 0.5, 0\n",
			tau_us, tau_us, format_time(tau_us * 1000, text, sizeof(text)), tau_us);
	for (int i = 0; i < set->count; i++)
		print_data(file, &set->legs[i].sum, i);
	fprintf(file, "plot ");
	for (int i = 0; i < set->count; i++) {
		fprintf(file, "%s$leg%d with lines linewidth 2 title ", i ? ", " : "", i);
		print_quoted(file, set->legs[i].label);
	}
	fprintf(file, "\n");
	free(path);
}

int plot_file(const struct leg_set *set, uint64_t tau_us, const char *title, const char *terminal,
	      const char *output)
{
	FILE *pipe;
	int r;

	if (system("command -v gnuplot >/dev/null")) {
		fail("%s: gnuplot draws it and is not installed: apt-get install gnuplot-nox",
		     output);
		return -1;
	}
	pipe = popen("gnuplot", "we");
	if (!pipe) {
		fail("%s: can not run gnuplot: %s", output, strerror(errno));
		return -1;
	}
	plot_script(pipe, set, tau_us, title, terminal, output);
	r = pclose(pipe);
	if (r)
		fail("%s: gnuplot could not draw it", output);
	return r ? -1 : 0;
}
