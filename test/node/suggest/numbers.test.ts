import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { propertyRuns } from "../../suite/runs.ts";
import { requestAt, START, suggestionFor } from "./counted.ts";
import { naiveWindow } from "./naive.ts";

const WINDOWS = ["10s", "1m", "1h"];

/** Logs of three hours, in which few clients send most requests. */
const logs = fc
  .array(
    fc.record({
      ms: fc.oneof(fc.nat(30_000), fc.nat(3 * 3_600_000), fc.constantFrom(0, 59_999, 60_000)),
      client: fc.oneof(fc.constantFrom(0, 1), fc.nat(20), fc.nat(400)),
      repeats: fc.oneof(fc.constant(1), fc.nat(40)),
    }),
    { maxLength: 300 },
  )
  .map((groups) =>
    groups
      .flatMap(({ ms, client, repeats }) =>
        Array.from({ length: repeats }, () => requestAt(ms, `192.0.2.${client}`)),
      )
      .sort((a, b) => a.at - b.at),
  );

describe("the numbers of a suggestion", () => {
  it("equal those of a simple computation", () => {
    fc.assert(
      fc.property(logs, (requests) => {
        const { windows, clients, requestsLeftOut, ...rest } = suggestionFor(requests, {
          windows: WINDOWS,
        });
        expect(requestsLeftOut).toBe(0);
        expect(rest.requests).toBe(requests.length);
        for (const [index, window] of WINDOWS.entries()) {
          const { proposed: _, ...found } = windows[index] ?? {};
          const { clients: expectedClients, ...expected } = naiveWindow(requests, window);
          expect(found).toEqual({ window, ...expected });
          expect(clients).toBe(expectedClients);
        }
      }),
      propertyRuns(150),
    );
  });

  it("list the loudest clients by their busiest window, with exact totals", () => {
    fc.assert(
      fc.property(logs, (requests) => {
        const { loudest } = suggestionFor(requests, { windows: ["1m", "1h"] });
        const counts = new Map<string, number>();
        for (const { ip, at } of requests) {
          const pair = `${ip} ${Math.floor(at / 60_000)}`;
          counts.set(pair, (counts.get(pair) ?? 0) + 1);
        }
        const busiest = Map.groupBy([...counts], ([pair]) => pair.split(" ")[0] ?? "");
        const most = [...busiest.values()].map((all) => Math.max(...all.map(([, count]) => count)));
        expect(loudest.map((each) => each.busiest)).toEqual(
          most.sort((a, b) => b - a).slice(0, 10),
        );
        for (const { client, busiest: count, busiestStart, requests: total } of loudest) {
          expect(total).toBe(requests.filter(({ ip }) => ip === client).length);
          const minute = Date.parse(busiestStart) / 60_000;
          expect(counts.get(`${client} ${minute}`)).toBe(count);
        }
      }),
      propertyRuns(100),
    );
  });

  it("are zero without a request", () => {
    const suggestion = suggestionFor([]);
    expect(suggestion).toMatchObject({ requests: 0, clients: 0, loudest: [], rule: undefined });
    expect(suggestion.windows).toEqual([{ window: "1m", limits: [], proposed: undefined }]);
  });

  it("are those of the only client", () => {
    const requests = [0, 1, 2, 60_000].map((ms) => requestAt(ms, "192.0.2.1"));
    const [window] = suggestionFor(requests).windows;
    const none = { limit: 3, clientsDenied: 0, requestsDenied: 0 };
    expect(window?.limits.map(({ share: _, ...limit }) => limit)).toEqual([none, none, none]);
  });

  it.each([
    ["month", ["2026-11-30T23:59:59Z", "2026-12-01T00:00:00Z"]],
    ["week", ["2026-11-22T23:59:59Z", "2026-11-23T00:00:00Z"]],
    ["1d", ["2026-11-22T23:59:59Z", "2026-11-23T00:00:00Z"]],
    ["90s", ["2026-11-22T00:01:29Z", "2026-11-22T00:01:30Z"]],
  ])("follow windows of %s as Weir aligns them", (window, times) => {
    const requests = times.map((time) => requestAt(Date.parse(time) - START, "192.0.2.1"));
    const limitOf = (all: typeof requests) =>
      suggestionFor(all, { windows: [window] }).windows[0]?.limits[0]?.limit;
    expect(limitOf(requests)).toBe(1);
    expect(limitOf([...requests.slice(0, 1), ...requests.slice(0, 1)])).toBe(2);
  });
});
