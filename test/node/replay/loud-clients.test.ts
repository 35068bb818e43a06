import { describe, expect, it } from "vitest";
import { hasSucceeded } from "../../../cli/logs/log-request.ts";
import { FrequentTexts, LoudClients } from "../../../cli/replay/loud-clients.ts";
import { logged, START } from "./requests.ts";

describe("LoudClients", () => {
  it("finds the loudest of many clients, and keeps no more than needed of their texts", () => {
    const loud = new LoudClients<number>();
    const long = "x".repeat(100_000);
    for (let client = 0; client < 5000; client++) {
      // The loudest client comes in the middle.
      const requests = client === 2500 ? 50 : 1 + (client % 7);
      for (let count = 1; count <= requests; count++) {
        const request = logged(client, {
          headers: new Map([["user-agent", long]]),
          target: `/${long}?secret`,
        });
        loud.add(client, count, request, () => `${client} ${long}`);
      }
    }
    const [first, second] = loud.top(2);
    expect(first?.client.slice(0, 5)).toBe("2500 ");
    // The first 6 requests had not been enough to be among the loudest.
    expect(first).toMatchObject({ id: 2500, count: 50, at: START + 2_500_000 });
    expect(second?.count).toBe(7);
    expect(first?.client).toHaveLength(200);
    expect(first?.userAgents.top(9)).toEqual([{ text: "x".repeat(200), count: 44 }]);
    expect(JSON.stringify(first?.paths.top(9))).not.toContain("secret");
  });

  it("orders clients with equal counts by their names, and shortens long methods", () => {
    const loud = new LoudClients<string>();
    const request = logged(0, { method: "M".repeat(5000), target: `/${"p".repeat(5000)}` });
    for (const client of ["b", "c", "a"]) loud.add(client, 1, request);
    const [first, second] = loud.top(2);
    expect([first?.client, second?.client]).toEqual(["a", "b"]);
    expect(first?.paths.top(1)[0]?.text).toHaveLength(200);
    expect(first?.paths.top(1)[0]?.text.slice(0, 22)).toBe(`${"M".repeat(20)} /`);
  });
});

describe("FrequentTexts", () => {
  it("counts up to eight texts exactly", () => {
    const texts = new FrequentTexts();
    for (let index = 0; index < 36; index++) texts.add(`text ${index % 8}`);
    expect(texts.top(5).map(({ count }) => count)).toEqual([5, 5, 5, 5, 4]);
  });

  it("never counts a text more often than it was seen", () => {
    const texts = new FrequentTexts();
    const seen = new Map<string, number>();
    for (let index = 0; index < 3000; index++) {
      const text = index % 3 === 0 ? "frequent" : `rare ${index}`;
      texts.add(text);
      seen.set(text, (seen.get(text) ?? 0) + 1);
    }
    const top = texts.top(8);
    expect(top[0]).toEqual({ text: "frequent", count: 1000 });
    expect(top.filter(({ text, count }) => count > (seen.get(text) ?? 0))).toEqual([]);
  });
});

describe("hasSucceeded", () => {
  it.each([
    [200, true],
    [304, true],
    [399, true],
    [400, false],
    [429, false],
    [0, false],
    [undefined, false],
  ])("of status %s is %s", (status, expected) => {
    expect(hasSucceeded(logged(0, { status }))).toBe(expected);
  });
});
