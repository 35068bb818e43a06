import { describe, expect, it } from "vitest";
import { createAdmissions } from "../../../../bench/load/admissions.ts";

function admissionsOf(statuses: Record<string, number[]>) {
  const admissions = createAdmissions();
  for (const [client, list] of Object.entries(statuses)) {
    for (const status of list) admissions.record(client, status);
  }
  return admissions;
}

describe("admissions", () => {
  it("are neither over nor under when each client gets its limit", () => {
    const admissions = admissionsOf({ busy: [200, 200, 429, 429], idle: [200] });
    expect(admissions.summary(2)).toEqual({
      offered: 5,
      admitted: 3,
      over: 0,
      under: 0,
      failed: 0,
    });
  });

  it("do not set one client's excess off against another's lack", () => {
    const admissions = admissionsOf({ favoured: [200, 200, 200], wronged: [200, 429, 429] });
    expect(admissions.summary(2)).toMatchObject({ over: 1, under: 1 });
  });

  it("lack nothing when a client asks for less than its limit", () => {
    expect(admissionsOf({ idle: [200, 200] }).summary(50)).toMatchObject({ over: 0, under: 0 });
  });

  it("count what was neither forwarded nor denied as failed, and as not admitted", () => {
    const admissions = admissionsOf({ unlucky: [200, 503, 500] });
    expect(admissions.summary(3)).toMatchObject({ admitted: 1, failed: 2, under: 2 });
  });
});
