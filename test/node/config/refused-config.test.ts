import { describe } from "vitest";
import { type Refused, refuses, rule } from "./fixtures.ts";

const A_CONFIG = "allowed: an object with rules, origin, origins, store, clock";
const A_RULE = "allowed: an object with name, match, key, limit, window";
const LONG = "a".repeat(65);

describe("refuses a value that is not a configuration", () => {
  refuses([
    ...[null, 5, "rules", true, () => ({})].map(
      (input): Refused => [String(input), input, "", A_CONFIG],
    ),
    ["undefined", undefined, "", "missing", A_CONFIG],
    ["a list", [], "", "got []", A_CONFIG],
    ["an empty object", {}, "rules", "missing", "allowed: a list"],
    ["rules: null", { rules: null }, "rules", "got null", "allowed: a list"],
    ["rules: an object", { rules: { login: rule() } }, "rules", "allowed: a list"],
    [
      "10001 rules",
      { rules: Array.from({ length: 10_001 }, (_, index) => rule({ name: `r${index}` })) },
      "rules",
      "there can be at most 10000 rules",
    ],
    ["a rule that is null", { rules: [null] }, "rules[0]", "got null", A_RULE],
    ["a rule that is a number", { rules: [rule(), 5] }, "rules[1]", "got 5", A_RULE],
    ["a rule that is a Map", { rules: [new Map([["name", "a"]])] }, "rules[0]", "got {}", A_RULE],
    ["match: a Date", { rules: [rule({ match: new Date(0) })] }, "rules[0].match", "got a Date"],
    ["a rule that is a list", { rules: [[]] }, "rules[0]", "got []", A_RULE],
    ["a rule that is undefined", { rules: [undefined] }, "rules[0]", "missing", A_RULE],
  ]);
});

describe("refuses a top-level field", () => {
  const top = (field: string, value: unknown, ...says: string[]): Refused => [
    `${field}: ${JSON.stringify(value)}`,
    { rules: [], [field]: value },
    field,
    ...says,
  ];
  refuses([
    top("stor", "memory", 'unknown field; did you mean "store"?', "rules, origin, origins, store"),
    top("timeoutMS", 5, 'did you mean "timeoutMs"?'),
    top("bogus", 1, "unknown field", "allowed: rules"),
    top("store", "kv", 'got "kv"', 'allowed: "upstash", "durable-object", "memory"'),
    top("store", null, "got null"),
    top("clock", "local", 'allowed: "redis", "edge"'),
    ...["a:b", "", "a b", LONG, 5].map((value) =>
      top("prefix", value, "allowed: 1 to 64 characters of A-Z, a-z, 0-9, -, _ and ."),
    ),
    ...[0, -1, 1.5, 30_001, "1s", null].map((value) =>
      top("timeoutMs", value, "allowed: a whole number from 1 to 30000"),
    ),
    top("headers", "draft-10", 'allowed: "draft-11", "legacy", "both", "none"'),
    ...[0, 129, 64.5, "64"].map((value) =>
      top("ipv6Prefix", value, "allowed: a whole number from 1 to 128"),
    ),
    ...[1, "yes"].map((value) => top("caseSensitivePaths", value, "allowed: true or false")),
    ...[-1, 1001, 0.5, true].map((value) =>
      top("denialLog", value, "allowed: a whole number from 0 to 1000"),
    ),
    ...["NATIVE", null, []].map((value) =>
      top("nativeLimiter", value, 'allowed: { binding: "NAME" }'),
    ),
    ...["", "my limiter", "2nd", 5].map(
      (binding): Refused => [
        `nativeLimiter.binding: ${JSON.stringify(binding)}`,
        { rules: [], nativeLimiter: { binding } },
        "nativeLimiter.binding",
        "allowed: the name of a ratelimits binding in wrangler.toml",
      ],
    ),
    ["nativeLimiter: {}", { rules: [], nativeLimiter: {} }, "nativeLimiter.binding", "missing"],
    [
      "a field of nativeLimiter",
      { rules: [], nativeLimiter: { binding: "A", limit: 5 } },
      "nativeLimiter.limit",
      "unknown field",
    ],
  ]);
});

describe("refuses an origin", () => {
  const origin = (value: unknown, path: string, ...says: string[]): Refused => [
    JSON.stringify(value),
    { rules: [], origin: value },
    path,
    ...says,
  ];
  const url = "https://origin.example.com";
  refuses([
    ...[{}, { url, binding: "ORIGIN" }, url, null, []].map((value) =>
      origin(
        value,
        "origin",
        `got ${JSON.stringify(value)}`,
        'either { url: "https://origin.example.com" } or { binding: "NAME" }',
      ),
    ),
    origin({ uri: url }, "origin.uri", 'did you mean "url"?'),
    ...[
      "",
      5,
      "origin.example.com",
      "/base",
      " https://origin.example.com",
      "https:origin.example.com",
      "https:\\\\origin.example.com",
      "ftp://origin.example.com",
      "https://user:secret@origin.example.com",
      "https://token@origin.example.com",
      "https://origin.example.com/?a=1",
      "https://origin.example.com/#a",
    ].map((value) =>
      origin({ url: value }, "origin.url", "allowed: an absolute http or https URL"),
    ),
    ...["", "1A", "a-b", 5].map((value) =>
      origin({ binding: value }, "origin.binding", "allowed: the name of a service binding"),
    ),
  ]);
});
