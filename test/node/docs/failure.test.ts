import { expect, it } from "vitest";
import { OBJECT_FAULTS } from "../../chaos/object-faults.ts";
import { REDIS_FAULTS } from "../../chaos/redis-faults.ts";
import { REST_FAULTS } from "../../chaos/rest-faults.ts";
import type { Fault } from "../../chaos/support/fault.ts";
import { readPage } from "./pages.ts";

const STORES: readonly (readonly [name: string, faults: readonly Fault<never>[]])[] = [
  ["Upstash's REST API", REST_FAULTS],
  ["Redis", REDIS_FAULTS],
  ["Durable Objects", OBJECT_FAULTS],
];

/** The page as one line, because a list entry may have several lines. */
const text = readPage("docs/failure.md").prose.join(" ").replace(/\s+/g, " ");

// test/chaos causes each fault, and checks its cause and the answers to requests.
it("docs/failure.md lists every fault that the tests cause, by store and cause", () => {
  const listed = text.matchAll(/- \*\*([^*`]+), `([\w-]+)`\*\*: ([^.]+)\./g);
  const faults = STORES.flatMap(([store, all]) =>
    [...new Set(all.flatMap(({ cause }) => cause ?? []))].map((cause) => {
      const ofCause = all.filter((fault) => fault.cause === cause);
      return [store, cause, ofCause.map(({ does }) => does).join(", ")];
    }),
  );
  expect([...listed].map(([, ...parts]) => parts)).toEqual(faults);
});

it("docs/failure.md names the faults that leave all requests decided", () => {
  const decided = STORES.flatMap(([, all]) => all.filter(({ cause }) => cause === undefined));
  expect(decided.length).toBeGreaterThan(0);
  for (const { does } of decided) expect(text).toContain(`**${does}**`);
});
