import { describe } from "vitest";
import { type Refused, refuses, withRule } from "./fixtures.ts";

const RULE_FIELDS =
  "name, match, key, limit, window, limits, capacity, maxReserved, start, timeZone, shards, cost, count, tiers, exempt, ban, mode, tellOrigin, onError, localShare, retryJitter, response, lease";
/**
 * Fields that other rate limiters have and Weir does not have. If Weir ignored such a field, the
 * rule would limit less than expected.
 */
const OF_OTHERS = ["tokens", "burst", "points", "skip", "blockDuration"];
const LONG = "a".repeat(65);

describe("refuses a rule's field", () => {
  const field = (name: string, value: unknown, ...says: string[]): Refused => [
    `${name}: ${typeof value === "number" ? value : JSON.stringify(value)}`,
    withRule({ [name]: value }),
    `rules[0].${name}`,
    ...says,
  ];
  refuses([
    ...OF_OTHERS.map((name) => field(name, 1, "unknown field; write ", RULE_FIELDS)),
    field("onerror", "open", 'unknown field; did you mean "onError"?', RULE_FIELDS),
    field("paths", ["/a"], "unknown field"),
    ...["", "Login", "_a", "-a", "log in", "a/b", "é", LONG, 5, null].map((value) =>
      field(
        "name",
        value,
        "allowed: 1 to 64 characters of a-z, 0-9, - and _, the first a letter or digit",
      ),
    ),
    ...[-1, 1.5, "5", 1e15, true, null].map((value) =>
      field("limit", value, `got ${JSON.stringify(value)}`, "from 0 to 999999999999999"),
    ),
    field("limit", Number.NaN, "got NaN", "allowed: a whole number"),
    field("limit", Number.POSITIVE_INFINITY, "got Infinity", "allowed: a whole number"),
    ...[
      "",
      "1x",
      "1M",
      "1.5m",
      "1 m",
      " 1m",
      "1m30s",
      "500ms",
      "60",
      "0s",
      "53w",
      0,
      -1,
      1.5,
      31_449_601,
      null,
      true,
    ].map((value) =>
      field(
        "window",
        value,
        `got ${JSON.stringify(value)}`,
        `allowed: "10s", "1m", "1h", "1d", "1w"`,
        "whole seconds",
        "52 weeks",
      ),
    ),
    ...[
      "Spread",
      "",
      "2026-01-01",
      "2026-01-01T09:00:00",
      "2026-13-01T00:00:00Z",
      "2026-02-30T00:00:00Z",
      "2026-01-01T09:00:00+24:00",
      "1767225600",
      0,
      null,
    ].map((value) =>
      field("start", value, 'allowed: "epoch", or a time with its zone, such as "2026-'),
    ),
    ...["dry-run", "Shadow", null].map((value) =>
      field("mode", value, 'allowed: "enforce", "shadow", "mark"'),
    ),
    ...["yes", 1, null].map((value) => field("tellOrigin", value, "allowed: true or false")),
    ...Object.entries({
      ban: "1m",
      retryJitter: "10s",
      response: { status: 402 },
      onError: "closed",
    }).map(
      ([name, value]): Refused => [
        `${name} with mode: "mark"`,
        withRule({ mode: "mark", [name]: value }),
        `rules[0].${name}`,
        `remove ${name}: a rule with mode: "mark" never denies a request`,
      ],
    ),
    [
      'tellOrigin with mode: "shadow"',
      withRule({ mode: "shadow", tellOrigin: true }),
      "rules[0].tellOrigin",
      'remove tellOrigin: a rule with mode: "shadow" must not change how a request is answered',
    ],
    [
      'tellOrigin with for: "programs"',
      withRule({ for: "programs", tellOrigin: true }),
      "rules[0].tellOrigin",
      'remove tellOrigin: a rule with for: "programs" counts no HTTP request',
    ],
    ...[true, "false", "Auto", "off", 0, 8, null, {}].map((value) =>
      field("lease", value, `got ${JSON.stringify(value)}`, 'allowed: "auto", false'),
    ),
    field("leases", false, 'unknown field; did you mean "lease"?', RULE_FIELDS),
    field("mode", "Shadow", 'got "Shadow"; write "shadow"'),
    field("onError", "close", 'got "close"; did you mean "closed"?'),
    ...["constructor", "__proto__", "prototype"].map(
      (name): Refused => [
        `a field called ${name}`,
        { rules: [JSON.parse(`{"name":"api","limit":5,"window":"1m","${name}":{}}`)] },
        "rules[0]",
        "allowed: an object with name, match",
      ],
    ),
    ...["Local", "fail", true].map((value) =>
      field("onError", value, 'allowed: "open", "closed", "local"'),
    ),
    ...[0, -0.5, 1.01, "0.5", "25%", null, true].map(
      (value): Refused => [
        `localShare: ${JSON.stringify(value)}`,
        withRule({ onError: "local", localShare: value }),
        "rules[0].localShare",
        "allowed: a number above 0, at most 1",
      ],
    ),
    ...[{}, { onError: "open" }, { onError: "closed" }].map(
      (fields): Refused => [
        `localShare beside ${JSON.stringify(fields)}`,
        withRule({ localShare: 0.5, ...fields }),
        "rules[0].localShare",
        'remove localShare: it needs onError: "local"',
      ],
    ),
  ]);
});
