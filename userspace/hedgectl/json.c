// SPDX-License-Identifier: GPL-2.0
/*
 * What the commands need of json-c: text that may be missing, and numbers that are 64 bits wide and
 * unsigned.
 */
#include <json.h>
#include <math.h>
#include <stdio.h>

#include "hedgectl.h"

void json_print(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
							    JSON_C_TO_STRING_SPACED |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

void json_add_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, text ? json_object_new_string(text) : NULL);
}

void json_add_u64(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

void json_add_value(struct json_object *object, const char *key, const char *text)
{
	uint64_t value;

	if (text && !parse_number(text, &value))
		json_add_u64(object, key, value);
	else
		json_add_text(object, key, text);
}

/* Numbers that are no whole ones, with so many decimals; what is not finite is null. */
void json_add_real(struct json_object *object, const char *key, double value, int decimals)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", decimals, value);
	json_object_object_add(object, key,
			       isfinite(value) ? json_object_new_double_s(value, text) : NULL);
}
