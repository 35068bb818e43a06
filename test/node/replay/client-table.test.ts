import { describe, expect, it } from "vitest";
import { ClientTable } from "../../../cli/replay/client-table.ts";

/** Counts one request of each client, and denies the requests of some clients. */
function add(table: ClientTable, clients: number, isDenied: (index: number) => boolean): void {
  for (let index = 0; index < clients; index++) {
    const client = `client ${index}`;
    table.addRequest(table.placeOf(client), 1);
    if (isDenied(index)) table.recordOf(client, 1).denied++;
  }
}

describe("ClientTable", () => {
  it("finds a client that remembers its place, also after others were dropped", () => {
    const table = new ClientTable(2, 100);
    const counted = {};
    table.placeOf("first");
    for (let request = 0; request < 3; request++) {
      table.addRequest(table.placeOf("busy", counted), 1);
    }
    add(table, 1000, () => false);
    table.addRequest(table.placeOf("busy", counted), 1);
    expect(table.requestsOf("busy", 1)).toBe(4);
    expect(table.requestsOf("unknown", 1)).toBe(0);
  });

  it.each([0, 1, 999, 1000])("counts %d clients exactly up to its bound", (clients) => {
    const table = new ClientTable(2, 1000);
    add(table, clients, () => true);
    expect(table.sums(1)).toMatchObject({ clients, denied: clients, newlyDenied: clients });
    expect([table.isEstimate, table.isDeniedEstimate]).toEqual([false, false]);
  });

  it("keeps clients with denied requests among very many others", () => {
    const table = new ClientTable(2, 1000);
    add(table, 100_000, (index) => index % 500 === 0);
    add(table, 100_000, (index) => index % 500 === 0);
    expect(table.sums(1).denied).toBe(200);
    expect(table.isDeniedEstimate).toBe(false);
    expect(table.requestsOf("client 500", 1)).toBe(2);
    expect(table.recordOf("client 500", 1)).toMatchObject({ denied: 2, error: 0 });
    expect(table.isEstimate).toBe(true);
    expect(table.sums(1).clients).toBeGreaterThanOrEqual(100_000);
  });

  it("says how many denied requests of a new client may be missing", () => {
    const table = new ClientTable(2, 100);
    add(table, 101, () => true);
    expect(table.isDeniedEstimate).toBe(true);
    expect(table.recordOf("client 100", 1)).toMatchObject({ denied: 1, error: 1 });
    expect(table.recordOf("client 99", 1)).toMatchObject({ denied: 1, error: 0 });
    expect(table.sums(1)).toMatchObject({ clients: 101, denied: 101 });
  });
});
