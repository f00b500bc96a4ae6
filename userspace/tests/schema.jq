# SPDX-License-Identifier: GPL-2.0
# What is wrong with a document, by a JSON schema, or by the one that $name names in its $defs:
#
#	jq -r --slurpfile schema FILE --arg name NAME -f schema.jq DOCUMENT
#
# Prints a line for each fault, and nothing if it is valid. It knows the keywords that our schema
# has, and refuses others rather than to pass over them.

def kind: if type == "number" and floor == . then "integer" else type end;

def known: ["$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "description", "enum",
	    "items", "maximum", "minItems", "minimum", "pattern", "properties", "required", "title", "type"];

def resolve($root):
	if has("$ref") then (del(.["$ref"]) + $root["$defs"][.["$ref"] | ltrimstr("#/$defs/")]) | resolve($root)
	else . end;

def faults($s; $root; $at):
	. as $doc | ($s | resolve($root)) as $s |
	def fault($text): "\($at): \($text), is \($doc | tojson | .[:80])";
	(($s | keys) - known | select(length > 0) | "\($at): the schema has keywords that are not known here: \(.)"),
	(if $s | has("type") then
		([$s.type] | flatten) as $types |
		select(($types | index($doc | kind)) == null and
		       ($types | index($doc | type)) == null) | fault("expected \($types | join(" or "))")
	 else empty end),
	(if $s | has("const") then select($doc != $s.const) | fault("expected \($s.const)") else empty end),
	(if $s | has("enum") then select($s.enum | index([$doc]) == null) | fault("expected one of \($s.enum)")
	 else empty end),
	(if ($s | has("minimum")) and ($doc | type) == "number" then select($doc < $s.minimum) | fault("too small")
	 else empty end),
	(if ($s | has("maximum")) and ($doc | type) == "number" then select($doc > $s.maximum) | fault("too large")
	 else empty end),
	(if ($s | has("pattern")) and ($doc | type) == "string" then
		select($doc | test($s.pattern) | not) | fault("expected a match of \($s.pattern)") else empty end),
	(if $s | has("anyOf") then
		[$s.anyOf[] as $one | [$doc | faults($one; $root; $at)]] |
		select(all(length > 0)) | ("\($at): is none of what it may be; the nearest:", (min_by(length) | .[]))
	 else empty end),
	(if $doc | type == "array" then
		(select(($s | has("minItems")) and ($doc | length) < $s.minItems) | fault("too few")),
		(if $s | has("items") then
			range($doc | length) as $i | $doc[$i] | faults($s.items; $root; "\($at)[\($i)]")
		 else empty end)
	 else empty end),
	(if $doc | type == "object" then
		(($s.required // [])[] as $key | select($doc | has($key) | not) | fault("\($key) is missing")),
		($doc | keys[] as $key | .[$key] |
		 if ($s.properties // {}) | has($key) then faults($s.properties[$key]; $root; "\($at).\($key)")
		 elif $s | has("additionalProperties") | not then empty
		 elif $s.additionalProperties == false then "\($at): \($key) is not in the schema"
		 else faults($s.additionalProperties; $root; "\($at).\($key)") end)
	 else empty end);

$schema[0] as $root |
if $name == "" then faults($root; $root; "$")
elif $root["$defs"] | has($name) then faults({"$ref": "#/$defs/\($name)"}; $root; "$")
else "the schema has no \($name)" end
