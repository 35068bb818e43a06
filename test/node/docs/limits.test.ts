import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readPage } from "./pages.ts";

/** Returns the numbers that the groups of a pattern capture in a file of the source. */
function numbersIn(path: string, pattern: RegExp): number[] {
  const [, ...texts] = pattern.exec(readFileSync(path, "utf8")) ?? [];
  if (texts.length === 0) throw new Error(`${path} has no ${pattern}.`);
  return texts.map((text) =>
    text.split("*").reduce((product, factor) => product * Number(factor.replaceAll("_", "")), 1),
  );
}

/** Returns the value of a constant whose initializer is a number or a product of numbers. */
function constant(path: string, name: string): number {
  return numbersIn(path, new RegExp(`\\bconst ${name} = ([\\d_ *]+);`))[0] as number;
}

const count = (path: string, name: string) => constant(path, name).toLocaleString("en");
const matched = (path: string, pattern: RegExp) =>
  (numbersIn(path, pattern).at(-1) as number).toLocaleString("en");
const kib = (path: string, name: string) => `${constant(path, name) / 1024} KiB`;
const mib = (path: string, name: string) => `${constant(path, name) / 1024 ** 2} MiB`;
const seconds = (path: string, name: string) => `${constant(path, name) / 1000} s`;

const KEY_LENGTH = constant("src/config/key.ts", "MAX_KEY_LENGTH");

const ROOM_OF_ONE_CLIENT = `${constant("src/request/body-room.ts", "MAX_BODY_BYTES") / constant("src/request/body-room.ts", "CLIENT_PARTS") / 1024 ** 2} MiB`;

/** The bounds of the tables, in their order. */
const BOUNDS: readonly (readonly [what: string, bound: string])[] = [
  ["rules", count("src/config/rules.ts", "MAX_RULES")],
  ["windows of a rule or tier", count("src/config/window.ts", "MAX_WINDOWS")],
  [
    "length of a window, a ban, a delay or `maxDuration`",
    `${matched("src/config/duration.ts", /MAX_WINDOW_SECONDS = (\d+) \* SECONDS\.w/)} weeks`,
  ],
  ["limit, capacity, reservation, cost", count("src/config/window.ts", "MAX_LIMIT")],
  ["shards of a rule", `${count("src/config/rule.ts", "MAX_SHARDS")}, and the smallest limit`],
  [
    "sub-windows of `sliding`",
    `${count("src/config/window.ts", "MAX_SUB_WINDOWS")}, and at least ${matched("src/config/window.ts", /whole number of sub-windows from (\d+) to/)}`,
  ],
  ["`concurrent`", count("src/config/window.ts", "MAX_CONCURRENT")],
  ["`cacheFor`", `${constant("src/config/limit-source.ts", "MAX_CACHE_SECONDS") / 3600} h`],
  ["`wait`", `${count("src/config/rule.ts", "MAX_WAIT_SECONDS")} s`],
  ["lengths of a ban", count("src/config/ban.ts", "MAX_LENGTHS")],
  ["items of a list, such as `match.paths`", count("src/config/fields.ts", "MAX_ITEMS")],
  ["networks of a list, such as `match.ips`", count("src/config/address.ts", "MAX_NETWORKS")],
  ["characters of a path or route in `match`", count("src/config/match.ts", "MAX_ROUTE")],
  ["characters of a prefix", matched("src/config/schema.ts", /1 to (\d+) chara/)],
  ["characters of a rule's name", matched("src/config/rule.ts", /1 to (\d+) chara/)],
  [
    "characters of a pointer to a claim, such as `/app/plan`",
    count("src/config/key.ts", "MAX_LENGTH"),
  ],
  ["names in such a pointer", count("src/config/key.ts", "MAX_NAMES")],
  [
    "`timeoutMs`",
    matched("src/config/schema.ts", /timeoutMs: v\.optional\(integer\(1, ([\d_]+)\)/),
  ],
  [
    "`denialLog`",
    matched("src/config/schema.ts", /denialLog: v\.optional\(integer\(0, ([\d_]+)\)/),
  ],
  ["characters of `quotaPath`", matched("src/config/schema.ts", /and -, at most (\d+) characters/)],
  ["listed faults", count("src/config/faults.ts", "MAX_FAULTS")],

  ["characters of a key's value", KEY_LENGTH.toLocaleString("en")],
  [
    "characters of a value with escapes",
    (
      KEY_LENGTH *
      (numbersIn(
        "src/request/values.ts",
        /MAX_ENCODED_LENGTH = (\d+) \* MAX_KEY_LENGTH/,
      )[0] as number)
    ).toLocaleString("en"),
  ],
  ["characters of a field with a token", count("src/request/token.ts", "MAX_FIELD_LENGTH")],
  ["characters of a path with special characters", count("src/request/path.ts", "MAX_CHARACTERS")],
  ["slashes of a path with special characters", count("src/request/path.ts", "MAX_SEGMENTS")],
  ["size of an issuer's key set", kib("src/request/token.ts", "MAX_BYTES")],
  [
    "answers of `quotaPath` for an address in a minute, in each isolate",
    count("src/gateway/quota-page.ts", "MAX_READS"),
  ],
  [
    "addresses whose reads of `quotaPath` an isolate counts",
    count("src/gateway/quota-page.ts", "MAX_ADDRESSES"),
  ],

  ["body that a settle function has not read yet", mib("src/http/body-tee.ts", "MAX_LAG_BYTES")],
  ["body of a response from a function", mib("src/http/custom-denial.ts", "MAX_BODY")],
  ["chunks of such a body", count("src/http/custom-denial.ts", "MAX_CHUNKS")],
  [
    "bodies that functions read clones of, in an isolate at the same time",
    mib("src/request/body-room.ts", "MAX_BODY_BYTES"),
  ],
  [
    "those of one address or /64, of the room that others leave",
    `1/${count("src/request/body-room.ts", "CLIENT_PARTS")}, so ${ROOM_OF_ONE_CLIENT}`,
  ],
  ["body that `llmReserve` reads", mib("src/llm/llm-reserve.ts", "MAX_REQUEST_LENGTH")],
  ["levels of its JSON", count("src/llm/body-text.ts", "MAX_DEPTH")],
  [
    "its JSON outside of texts and lists of tokens",
    kib("src/llm/body-text.ts", "MAX_OUTSIDE_TEXTS"),
  ],
  ["different names in its JSON", count("src/llm/body-text.ts", "MAX_NAMES")],
  ["JSON body that `llmUsage` reads", mib("src/llm/llm-usage.ts", "MAX_JSON_LENGTH")],
  [
    "characters of an event that `llmUsage` reads",
    count("src/llm/body-text.ts", "MAX_EVENT_LENGTH"),
  ],
  ["tokens of a count", count("src/llm/token-counts.ts", "MAX_TOKENS")],
  ["a weight of `llmUsage` or `llmReserve`", count("src/llm/token-counts.ts", "MAX_WEIGHT")],

  ["leases", count("src/stores/isolate/leases.ts", "MAX_LEASES")],
  ["remembered denials", count("src/stores/isolate/denial-cache.ts", "MAX_COUNTERS")],
  ["marks of requests that passed ahead (`async`)", count("src/limiter/ahead.ts", "MAX_MARKS")],
  ["age of a remembered denial", seconds("src/stores/isolate/denial-cache.ts", "MAX_AGE_MS")],
  ["age of an unused lease", seconds("src/stores/isolate/lease-book.ts", "IDLE_MS")],
  [
    "clients whose own limits an isolate knows, each by one function",
    count("src/request/client-limits.ts", "MAX_KNOWN"),
  ],
  ["calls to Upstash, or to one object, on their way", count("src/stores/batch.ts", "MAX_CALLS")],
  ["parts of a call", count("src/stores/batch.ts", "MAX_ENTRIES")],
  ["counters of a call", count("src/stores/batch.ts", "MAX_COUNTERS")],
  ["failures in a row", count("src/stores/breaker.ts", "FAILURES_TO_OPEN")],
  [
    "Durable Objects whose failures an isolate remembers",
    count("src/stores/breaker.ts", "MAX_OBJECTS"),
  ],
  [
    'counters of `onError: "local"` and `store: "memory"`',
    count("src/stores/memory-store.ts", "MAX_COUNTERS"),
  ],
  [
    `calls in ${seconds("src/limiter/limiter.ts", "SHADOW_PERIOD_MS")} of shadow rules for requests denied from memory`,
    count("src/limiter/limiter.ts", "SHADOW_CALLS"),
  ],
  [
    "slots that an isolate has failed to give back",
    count("src/limiter/limiter.ts", "MAX_LOST_SLOTS"),
  ],
  [
    "wait for a client that has not begun to read its response",
    seconds("src/gateway/charged-forward.ts", "UNREAD_MS"),
  ],
  ["requests that wait for their turn", count("src/limiter/waiting-room.ts", "MAX_WAITING")],
  [
    "requests of these that wait for one counter",
    count("src/limiter/waiting-room.ts", "MAX_WAITING_FOR_ONE"),
  ],
  [
    "age of a hold in a Durable Object",
    seconds("src/stores/durable-object/holds.ts", "MAX_HOLD_MS"),
  ],
  ["holds of a Durable Object", count("src/stores/durable-object/holds.ts", "MAX_HOLDS")],
  ["entries about denials between two uploads", count("src/statistics/recorder.ts", "MAX_DENIALS")],

  ["overrides", count("src/overrides/override.ts", "MAX_OVERRIDES")],
  ["factor of an override", count("src/overrides/override.ts", "MAX_FACTOR")],
  [
    "time until an override ends",
    `${constant("src/overrides/override-input.ts", "MAX_EXPIRY_SECONDS") / 86_400} days, and at least ${matched("src/overrides/override-input.ts", /at least (\d+) second and at most/)} s`,
  ],
  ["characters of a reason", count("src/overrides/override.ts", "MAX_REASON")],
  ["entries of the audit list", count("src/control/control-object.ts", "MAX_AUDIT_ENTRIES")],
  ["entries in one answer", count("src/admin/api.ts", "MAX_ENTRIES")],
  [
    "statistics by minute",
    `${matched("src/control/statistics.ts", /minute: (\d+) \* HOUR_MS/)} hours`,
  ],
  ["statistics by hour", `${matched("src/control/statistics.ts", /hour: (\d+) \* DAY_MS/)} days`],
  ["statistics by day", `${matched("src/control/statistics.ts", /day: (\d+) \* DAY_MS/)} days`],
  [
    "a query by minute",
    `${readFileSync("src/admin/api.ts", "utf8").includes("minute: { maxMs: DAY_MS,") ? 1 : "?"} day`,
  ],
  ["a query by hour", `${matched("src/admin/api.ts", /hour: \{ maxMs: (\d+) \* DAY_MS/)} days`],
  ["a query by day", `${matched("src/admin/api.ts", /day: \{ maxMs: (\d+) \* DAY_MS/)} days`],
  ["isolates that the control object tells apart", count("src/control/uploads.ts", "MAX_SOURCES")],
  [
    "names of rules with statistics, also removed ones",
    count("src/control/statistics.ts", "MAX_RULES"),
  ],
  ["limited clients of an hour or a day", count("src/statistics/client-sketch.ts", "SKETCH_SIZE")],
  ["limited clients in a report", count("src/control/statistics.ts", "MAX_CLIENTS")],
  [
    "kept denials: entries by minute, client and policy",
    count("src/control/uploads.ts", "MAX_KEPT_DENIALS"),
  ],
  [
    "age of a kept denial",
    `${matched("src/control/denial-table.ts", /RETENTION_MS = (\d+) \* 24 \* 60/)} days`,
  ],
  ["denials in one answer", count("src/admin/api.ts", "MAX_DENIALS")],
  ["body of a request to the API", kib("src/admin/admin-app.ts", "MAX_BODY")],
  ["form of the log-in page", kib("src/admin/admin-app.ts", "MAX_FORM")],
  ["values of a client in `known`", count("src/admin/live-operations.ts", "MAX_KNOWN")],
  [
    "URL of a request to explain, in characters",
    count("src/explain/described-request.ts", "MAX_URL"),
  ],
  ["header fields of a request to explain", count("src/admin/api.ts", "MAX_FIELDS")],
  ["failed log-ins of an address in a minute", count("src/admin/gate.ts", "MAX_FAILED")],
];

it("docs/limits.md has the bounds of the code", () => {
  const rows = readPage("docs/limits.md").lines.filter((line) => /^\| (?!what )/.test(line));
  const bounds = rows.map((row) =>
    row
      .split("|")
      .slice(1, 3)
      .map((cell) => cell.trim()),
  );
  expect(bounds).toEqual(BOUNDS);
});
