import { countText } from "../../src/admin/dashboard/format.ts";
import type { LoudClient } from "../suggest/suggestion.ts";
import { clientTable } from "./client-tables.ts";
import type { Html } from "./markup.ts";
import { timeText } from "./texts.ts";

/** The clients with the most requests in one window. */
export function loudestClients(clients: readonly LoudClient[]): Html {
  const columns = [
    { label: "Most in one window", number: true },
    { label: "That window began (UTC)" },
    { label: "Requests", number: true },
    { label: "Succeeded", number: true },
  ];
  const max = clients.reduce((most, { busiest }) => Math.max(most, busiest), 1);
  const rows = clients.map((each) => ({
    ...each,
    cells: [
      { text: countText(each.busiest), share: each.busiest / max, tone: "allowed" as const },
      { text: timeText(each.busiestStart) },
      { text: countText(each.requests) },
      { text: countText(each.succeeded) },
    ],
  }));
  const caption = "The clients with the most requests in one of the shortest windows";
  return clientTable(caption, columns, rows);
}
