import { describe, expect, it, vi } from "vitest";
import { inSpan, isTraced, runtimeSpans, type Spans } from "../../../src/stores/calls.ts";

/** Returns spans that note what is recorded. */
function recorder(traced = true) {
  const notes: unknown[] = [];
  const spans: Spans = {
    enterSpan(name, callback) {
      notes.push(name);
      const setAttribute = (attribute: string, value: unknown) => notes.push([attribute, value]);
      return callback({ isTraced: traced, setAttribute });
    },
    getActiveSpan: () => ({ isTraced: traced }),
  };
  return { notes, spans };
}

const ATTRIBUTES = () => ({ "weir.outcome": "allowed" });

describe("a span", () => {
  it("surrounds a task, and has the attributes of its result", async () => {
    const { notes, spans } = recorder();
    expect(await inSpan("weir.decision", async () => 5, ATTRIBUTES, spans)).toBe(5);
    expect(notes).toEqual(["weir.decision", ["weir.outcome", "allowed"]]);
  });

  it("computes no attributes if it is not recorded", async () => {
    const { notes, spans } = recorder(false);
    const attributesOf = vi.fn(ATTRIBUTES);
    await inSpan("weir.decision", async () => 5, attributesOf, spans);
    expect(notes).toEqual(["weir.decision"]);
    expect(attributesOf).not.toHaveBeenCalled();
    expect([isTraced(spans), isTraced(recorder().spans)]).toEqual([false, true]);
  });

  it("passes on an error", async () => {
    const task = () => Promise.reject(new Error("broken"));
    await expect(inSpan("a", task, ATTRIBUTES, recorder().spans)).rejects.toThrow("broken");
  });

  it("works with the spans of this runtime", async () => {
    expect(runtimeSpans).toBeDefined();
    expect(await inSpan("weir.decision", async () => 5, ATTRIBUTES)).toBe(5);
    expect(isTraced()).toBe(false);
  });
});
