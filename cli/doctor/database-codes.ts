import type { Code } from "./code.ts";

/** The findings about scripts, memory and keys. */
export const DATABASE_CODES = {
  "commands-ok": { severity: "ok" },
  "command-missing": {
    severity: "fault",
    advice:
      "Use a database that has these commands in Lua scripts: Upstash Redis, or Redis 6.2 or later that does not rename them with rename-command",
  },
  "scripts-refused": {
    severity: "fault",
    advice:
      "Use a token whose user may run EVAL and EVALSHA. Weir makes every decision with a script",
  },
  "script-flag-refused": {
    severity: "fault",
    advice:
      'Set clock: "redis". With clock: "edge", the first line of the script is a flag of Upstash, which this server refuses',
  },
  "script-cache-off": {
    severity: "warning",
    advice:
      "Use a database that keeps scripts. Without its cache, each decision takes two calls and sends the whole script",
  },
  "eviction-off": { severity: "ok" },
  "eviction-on": {
    severity: "fault",
    advice:
      "Turn eviction off in the Upstash console, or set maxmemory-policy noeviction in Redis. An evicted counter starts again from zero, so clients get their limit a second time",
  },
  "eviction-unknown": {
    severity: "unknown",
    advice: "Look at the eviction setting in the console of the database. It must be off",
  },
  "memory-ok": { severity: "ok" },
  "memory-low": {
    severity: "warning",
    advice:
      "Delete data that is not needed, or move to a larger plan. A full database refuses to count new clients",
  },
  "memory-unknown": {
    severity: "unknown",
    advice: "Look at the data size and its maximum in the console of the database",
  },
  "keys-ok": { severity: "ok" },
  "keys-partial": {
    severity: "unknown",
    advice:
      "Nothing needs to be done if other programs use this database too. The scan stops early, so that it stays cheap; a database of its own for Weir can be scanned completely",
  },
  "keys-unknown": {
    severity: "unknown",
    advice: "Use a token whose user may run SCAN, TYPE and PTTL, or ignore this finding",
  },
  "key-foreign": {
    severity: "fault",
    advice:
      "Find out which program writes these keys, and give that program or Weir another prefix. If no program needs them, delete them",
  },
  "key-wrong-type": {
    severity: "fault",
    advice:
      "Delete these keys, or set another prefix. Each decision about such a key fails with WRONGTYPE, so the onError of the rule decides",
  },
  "key-without-expiry": {
    severity: "warning",
    advice:
      "Delete these keys, because Weir lets every key expire and these stay forever. Another program has written or changed them",
  },
  "vectors-ok": { severity: "ok" },
  "vector-differs": {
    severity: "fault",
    advice:
      "Do not use this database. Its commands return other results than Redis, so limits would not hold. Report the output of this command at https://github.com/edge-weir/edge-weir/issues",
  },
  "vectors-failed": {
    severity: "fault",
    advice:
      "Follow the error message of the database, and then run the command again. While decisions fail, the onError of each rule decides",
  },
  "cleaned-up": { severity: "ok" },
  "keys-left": {
    severity: "warning",
    advice: "Wait: these keys expire without help, and no rule reads them",
  },
  "not-finished": {
    severity: "fault",
    advice: "Run the command again. The checks that are missing from this list were not made",
  },
} as const satisfies Record<string, Code>;
