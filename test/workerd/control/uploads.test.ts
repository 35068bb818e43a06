import { describe, expect, it } from "vitest";
import { CallSlots, Sources } from "../../../src/control/uploads.ts";
import { minuteAt, uploadOf } from "./uploads.ts";

const NOW = 1_800_000_000_000;

describe("the times at which isolates call", () => {
  it("are five seconds apart for few isolates, and spread for many, up to 25 seconds", () => {
    const slots = new CallSlots();
    expect(slots.take(NOW)).toBe(5000);
    const later = Array.from({ length: 5000 }, () => slots.take(NOW));
    expect(later[89]).toBeCloseTo(6000, 0);
    expect(later[4999]).toBe(25_000);
  });

  it("are near again after the clock has gone back", () => {
    const slots = new CallSlots();
    slots.take(NOW);
    expect(slots.take(NOW - 3_600_000)).toBe(5000);
  });
});

it("keeps the last upload of a source although a thousand others only load overrides", () => {
  const sources = new Sources();
  const upload = uploadOf(7, { source: "one", minutes: [minuteAt(NOW, 1)] });
  expect(sources.see(upload, NOW)).toBe(true);
  for (let i = 0; i < 1000; i++) sources.see(uploadOf(0, { source: `${i}` }), NOW);
  const restored = new Sources(sources.toStored());
  expect(restored.see(upload, NOW)).toBe(false);
});
