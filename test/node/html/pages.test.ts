import { describe, expect, it } from "vitest";
import { replayPage } from "../../../cli/html/replay-page.ts";
import { suggestPage } from "../../../cli/html/suggest-page.ts";
import { COMPARISON, EMPTY_REPLAY, replayOf } from "./fixtures.ts";
import { EMPTY_SUGGESTION, SUGGESTION } from "./suggestions.ts";

const PAGES: readonly (readonly [string, () => string])[] = [
  ["a replay", () => replayPage(replayOf(20))],
  ["a comparison", () => replayPage(replayOf(3, { comparison: COMPARISON }))],
  ["a replay without requests", () => replayPage(EMPTY_REPLAY)],
  ["a suggestion", () => suggestPage(SUGGESTION)],
  ["a suggestion without requests", () => suggestPage(EMPTY_SUGGESTION)],
];

describe.each(PAGES)("the page of %s", (_, page) => {
  it("is the same for the same report", () => {
    expect(page()).toBe(page());
  });

  it("names no address that a browser could load", () => {
    const addresses = [...page().matchAll(/(?:src|href|action)="([^"]*)"/g)].map(([, url]) => url);
    expect(addresses.filter((url) => !/^(#|data:image\/svg\+xml,)/.test(url ?? ""))).toEqual([]);
  });
});
