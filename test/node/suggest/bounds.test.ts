import { expect, it } from "vitest";
import { requestAt, suggestionFor } from "./counted.ts";

it("counts no clients after as many as fit into memory, and says how many requests are left out", () => {
  const clients = Array.from({ length: 1000 }, (_, client) => `client-${client}`);
  const requests = [...clients, ...clients].map((client, index) => requestAt(index, client));
  const found = suggestionFor(requests, { maxClients: 600 });
  expect(found).toMatchObject({ requests: 1200, clients: 600, requestsLeftOut: 800 });
  expect(found.windows[0]).toMatchObject({ limits: [{ limit: 2 }, { limit: 2 }, { limit: 2 }] });
});
