import type { Code } from "./code.ts";
import { DATABASE_CODES } from "./database-codes.ts";
import { WORKER_CODES } from "./worker-codes.ts";

/** The findings about the connection and the token. */
const ACCESS = {
  "url-ok": { severity: "ok" },
  "url-not-https": {
    severity: "fault",
    advice:
      "Use the https URL of the database, because http sends the token and all keys without encryption",
  },
  "url-invalid": {
    severity: "fault",
    advice:
      "Set UPSTASH_REDIS_REST_URL to the REST URL from the Upstash console, such as https://eu1-name-12345.upstash.io; a URL that begins with redis:// or rediss:// does not work",
  },
  unreachable: {
    severity: "fault",
    advice:
      "Compare the host name with the REST URL in the Upstash console, and check that the database exists and that this machine has a network",
  },
  "no-answer": {
    severity: "fault",
    advice:
      "Check the status page of the database's provider. Until the database answers, the onError of each rule decides every request",
  },
  "not-a-rest-api": {
    severity: "fault",
    advice:
      "Set UPSTASH_REDIS_REST_URL to the REST URL of the database. The answer came from another kind of server or from a proxy in front of the database",
  },
  "token-ok": { severity: "ok" },
  "token-wrong": {
    severity: "fault",
    advice:
      "Copy UPSTASH_REDIS_REST_TOKEN from the same database as the URL, without quotation marks and white space",
  },
  "token-malformed": {
    severity: "fault",
    advice:
      "Copy the token again, without line breaks, blanks and quotation marks. A token consists of printable ASCII characters",
  },
  "token-read-only": {
    severity: "fault",
    advice:
      "Use the standard token, UPSTASH_REDIS_REST_TOKEN of the Upstash console. With the read-only token, no request can be counted",
  },
  "keys-not-permitted": {
    severity: "fault",
    advice:
      "Allow the user of the token to use all keys that begin with the prefix of Weir, such as ~weir:* in the ACL, or set WEIR_PREFIX to the prefix that the user may write",
  },
  "write-refused": {
    severity: "fault",
    advice: "Follow the error message of the database. While it refuses writes, nothing is counted",
  },
  "database-full": {
    severity: "fault",
    advice:
      "Delete data that is not needed, or move to a larger plan. Do not turn eviction on, because it deletes counters",
  },
  "quota-used-up": {
    severity: "fault",
    advice:
      "Move to a plan with more commands, or lower the number of commands: docs/cost.md lists the commands of each decision, and leases save most of them",
  },
  "quota-unknown": {
    severity: "unknown",
    advice:
      "Look at the usage in the Upstash console. The token of a database cannot read the quota of the plan",
  },
} as const satisfies Record<string, Code>;

/** The findings about time: the round trip and the clocks. */
const TIMING = {
  "round-trip-ok": { severity: "ok" },
  "round-trip-slow": {
    severity: "warning",
    advice:
      "Raise timeoutMs, or choose a region of the database near the clients. The round trip of the Worker may be shorter than that of this machine; --at measures it",
  },
  "round-trip-too-slow": {
    severity: "fault",
    advice:
      "Raise timeoutMs above the worst round trip, or choose a region of the database near the clients. The round trip of the Worker may be shorter than that of this machine; --at measures it",
  },
  "clock-ok": { severity: "ok" },
  "clock-skewed": {
    severity: "warning",
    advice:
      'Compare both clocks with a third one, for example with date -u on another machine, and synchronize the wrong one by NTP. With clock: "redis", a wrong clock of the store moves the start of every window by this time',
  },
  "clock-wrong": {
    severity: "fault",
    advice:
      "Compare both clocks with a third one, for example with date -u on another machine, and synchronize the wrong one by NTP. With such a clock, windows do not begin when the clients' minutes, hours and days begin",
  },
  "clock-unknown": {
    severity: "unknown",
    advice:
      "Run the command again on a faster connection, or compare the time of the database (TIME) by hand",
  },
} as const satisfies Record<string, Code>;

/** Every finding by its stable code. docs/doctor.md explains each of them. */
export const CODES = { ...ACCESS, ...TIMING, ...DATABASE_CODES, ...WORKER_CODES };

export type FindingCode = keyof typeof CODES;
