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
  it("have an over and an under of 0 if each client gets its limit", () => {
    const admissions = admissionsOf({ busy: [200, 200, 429, 429], idle: [200] });
    expect(admissions.summary(2)).toEqual({
      offered: 5,
      admitted: 3,
      over: 0,
      mostOver: 0,
      under: 0,
      failed: 0,
    });
  });

  it("do not offset one client's excess against another client's denials", () => {
    const admissions = admissionsOf({ excessive: [200, 200, 200], denied: [200, 429, 429] });
    expect(admissions.summary(2)).toMatchObject({ over: 1, mostOver: 1, under: 1 });
  });

  it("have an under of 0 if a client sends fewer requests than its limit", () => {
    expect(admissionsOf({ idle: [200, 200] }).summary(50)).toMatchObject({ over: 0, under: 0 });
  });

  it("count other statuses than 200 and 429 as failed and as not admitted", () => {
    const admissions = admissionsOf({ client: [200, 503, 500] });
    expect(admissions.summary(3)).toMatchObject({ admitted: 1, failed: 2, under: 2 });
  });
});
