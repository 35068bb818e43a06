import { describe, expect, it } from "vitest";
import { Inspector } from "../../../soak/inspector.ts";
import type { Outgoing } from "../../../soak/traffic.ts";

const DECIDED = '"exact";r=3;t=5';

/** What is found wrong with one answer. */
function faultsOf(
  answer: { status?: number; rateLimit?: string | undefined; ms?: number },
  { isTroubled = false, onError = "closed" as Outgoing["onError"] } = {},
): string[] {
  const inspector = new Inspector(1000);
  const outgoing = { kind: "exact", method: "GET", path: "/exact", client: "a", onError } as const;
  const given = { status: 200, rateLimit: DECIDED, sentAt: 0, answeredAt: 0, ms: 1, ...answer };
  inspector.see({ name: "phase", isTroubled }, outgoing, given);
  return [...inspector.violations.keys()];
}

const open = { onError: "open" } as const;
const trouble = { isTroubled: true };

describe("the soak's inspector", () => {
  it.each([
    ["a decided request", {}, {}],
    ["a denied one", { status: 429 }, {}],
    ["503 of a closed rule in trouble", { status: 503, rateLimit: undefined }, trouble],
    [
      "an undecided one of an open rule in trouble",
      { rateLimit: undefined },
      { ...open, ...trouble },
    ],
    ["one that no rule is about", { rateLimit: undefined }, { onError: "none" as const }],
  ])("finds nothing wrong with %s", (_, answer, circumstances) => {
    expect(faultsOf(answer, circumstances)).toEqual([]);
  });

  it.each([
    ["a 500", { status: 500 }, trouble, "nothing but 200, 429 and 503"],
    ["a broken connection", { status: 0 }, trouble, "nothing but 200, 429 and 503"],
    ["a 503 in calm", { status: 503 }, {}, "503 only where a rule is closed, in trouble"],
    [
      "a 503 of an open rule",
      { status: 503 },
      { ...open, ...trouble },
      "503 only where a rule is closed, in trouble",
    ],
    ["a late answer", { ms: 1001 }, trouble, "no request later than its deadline"],
    ["an undecided one in calm", { rateLimit: undefined }, open, "undecided in trouble only"],
    [
      "an undecided one that a closed rule let pass",
      { rateLimit: undefined },
      trouble,
      "closed lets nothing undecided pass",
    ],
  ])("finds fault with %s", (_, answer, circumstances, fault) => {
    expect(faultsOf(answer, circumstances)).toEqual([fault]);
  });

  it("holds what isolates admit by themselves against what all of them may", () => {
    const inspector = new Inspector(1000);
    const outgoing = { kind: "local", method: "GET", path: "/local", client: "a" } as const;
    const answer = { status: 200, rateLimit: undefined, sentAt: 0, answeredAt: 0, ms: 1 };
    for (let sent = 0; sent < 21; sent++) {
      inspector.see({ name: "phase", ...trouble }, { ...outgoing, onError: "local" }, answer);
    }
    inspector.ledger.close(Number.POSITIVE_INFINITY);
    expect(inspector.ledger.excesses).toMatchObject([{ admitted: 21, bound: 20 }]);
  });
});
