import { describe, expect, it } from "vitest";
import { ClientTable } from "../../../cli/replay/client-table.ts";

/** Counts one request of each of so many clients, and denies it to some of them. */
function add(table: ClientTable, clients: number, isDenied: (index: number) => boolean): void {
  for (let index = 0; index < clients; index++) {
    const record = table.of(`client ${index}`);
    record.requests++;
    if (isDenied(index)) record.denied++;
  }
}

describe("ClientTable", () => {
  it.each([0, 1, 999, 1000])("counts %d clients exactly up to its bound", (clients) => {
    const table = new ClientTable(1000);
    add(table, clients, () => true);
    expect(table.sums()).toMatchObject({ clients, denied: clients, newlyDenied: clients });
    expect([table.isEstimate, table.isDeniedEstimate]).toEqual([false, false]);
  });

  it("keeps clients with denied requests among very many others", () => {
    const table = new ClientTable(1000);
    add(table, 100_000, (index) => index % 500 === 0);
    add(table, 100_000, (index) => index % 500 === 0);
    expect(table.sums().denied).toBe(200);
    expect(table.isDeniedEstimate).toBe(false);
    expect(table.of("client 500")).toMatchObject({ requests: 2, denied: 2, error: 0 });
    expect(table.isEstimate).toBe(true);
    expect(table.sums().clients).toBeGreaterThanOrEqual(100_000);
  });

  it("says how many denied requests of a new client may be missing", () => {
    const table = new ClientTable(100);
    add(table, 101, () => true);
    expect(table.isDeniedEstimate).toBe(true);
    expect(table.of("client 100")).toMatchObject({ denied: 1, error: 1 });
    expect(table.of("client 99")).toMatchObject({ denied: 1, error: 0 });
    expect(table.sums()).toMatchObject({ clients: 101, denied: 101 });
  });
});
