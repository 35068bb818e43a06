import { describe, expect, it } from "vitest";
import { leaksIn } from "./leaks.ts";

const MARKERS = { "the API key": "kéy/with+odd=letters-7f3a", "the address": "203.0.113.77" };
const KEY = MARKERS["the API key"];
const bytes = Buffer.from(KEY);

describe("the search for leaks", () => {
  it.each([
    ["plain", `before ${KEY} behind`],
    ["plain", Buffer.concat([Buffer.from([0, 255]), bytes, Buffer.from([0])])],
    ["plain", KEY.replace("letters", "LETTERS")],
    ["URL-encoded", `/?key=${encodeURIComponent(KEY)}&x`],
    ["URL-encoded in full", bytes.toString("hex").replace(/../g, "%$&")],
    ["JSON in ASCII", '{"key":"k\\u00e9y/with+odd=letters-7f3a"}'],
    ["hex", `0x${bytes.toString("hex").toUpperCase()}`],
    ["base64 at 0", Buffer.from(`${KEY}:`).toString("base64")],
    ["base64 at 1", Buffer.from(`a${KEY}:b`).toString("base64")],
    ["base64 at 2", Buffer.from(`ab${KEY}`).toString("base64")],
    ["base64url at 1", Buffer.from(`user${KEY}`).toString("base64url")],
  ])("finds a marker: %s", (form, planted) => {
    const leaks = leaksIn({ "the log": planted, "the store": "nothing" }, MARKERS);
    expect(leaks).toContainEqual({ what: "the API key", form, where: "the log" });
    expect(leaks.every(({ where }) => where === "the log")).toBe(true);
  });

  it("finds nothing in hashes, in parts of a marker, and in similar texts", () => {
    const where = {
      "the store": "weir:api:1m:MMXuBUwSU35Th2hdK_MvhQ:28333335",
      "the log": "203.0.113.7",
    };
    expect(leaksIn(where, MARKERS)).toEqual([]);
  });
});
