import { describe, expect, it } from "vitest";
import { Inspector } from "../../../soak/inspector.ts";
import type { OutgoingRequest } from "../../../soak/traffic.ts";

const DECIDED = '"exact";r=3;t=5';

/** Returns the promises that one answer breaks. */
function violationsOf(
  answer: { status?: number; rateLimit?: string | undefined; durationMs?: number },
  { isDisturbed = false, onError = "closed" as OutgoingRequest["onError"] } = {},
): string[] {
  const inspector = new Inspector(1000);
  const request = { kind: "exact", method: "GET", path: "/exact", client: "a", onError } as const;
  const complete = {
    status: 200,
    rateLimit: DECIDED,
    sentAt: 0,
    answeredAt: 0,
    durationMs: 1,
    ...answer,
  };
  inspector.inspect({ name: "phase", isDisturbed }, request, complete);
  return [...inspector.violations.keys()];
}

const open = { onError: "open" } as const;
const failing = { isDisturbed: true };

describe("the soak's inspector", () => {
  it.each([
    ["an admitted request", {}, {}],
    ["a denied request", { status: 429 }, {}],
    [
      "503 from a closed rule while the store fails",
      { status: 503, rateLimit: undefined },
      failing,
    ],
    [
      "an undecided request to an open rule while the store fails",
      { rateLimit: undefined },
      { ...open, ...failing },
    ],
    ["a request to which no rule applies", { rateLimit: undefined }, { onError: "none" as const }],
  ])("accepts %s", (_, answer, circumstances) => {
    expect(violationsOf(answer, circumstances)).toEqual([]);
  });

  it.each([
    ["a 500", { status: 500 }, failing, "every status is 200, 429 or 503"],
    ["a broken connection", { status: 0 }, failing, "every status is 200, 429 or 503"],
    [
      "a 503 while the store works",
      { status: 503 },
      {},
      "a request gets 503 only if its rule is closed and the store fails",
    ],
    [
      "a 503 from an open rule",
      { status: 503 },
      { ...open, ...failing },
      "a request gets 503 only if its rule is closed and the store fails",
    ],
    [
      "an answer after the deadline",
      { durationMs: 1001 },
      failing,
      "every answer arrives before the deadline",
    ],
    [
      "an undecided request while the store works",
      { rateLimit: undefined },
      open,
      "requests stay undecided only while the store fails",
    ],
    [
      "an undecided request that a closed rule admitted",
      { rateLimit: undefined },
      failing,
      "a closed rule admits no undecided request",
    ],
  ])("reports %s", (_, answer, circumstances, violation) => {
    expect(violationsOf(answer, circumstances)).toEqual([violation]);
  });

  it("compares undecided requests of a local rule with the sum of all isolates' shares", () => {
    const inspector = new Inspector(1000);
    const request = { kind: "local", method: "GET", path: "/local", client: "a" } as const;
    const answer = { status: 200, rateLimit: undefined, sentAt: 0, answeredAt: 0, durationMs: 1 };
    for (let sent = 0; sent < 21; sent++) {
      inspector.inspect({ name: "phase", ...failing }, { ...request, onError: "local" }, answer);
    }
    inspector.ledger.checkUntil(Number.POSITIVE_INFINITY);
    expect(inspector.ledger.excesses).toMatchObject([{ admitted: 21, bound: 20 }]);
  });
});
