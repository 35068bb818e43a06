import { countText } from "../../src/admin/dashboard/format.ts";
import type { LoudClient } from "../suggest/suggestion.ts";
import { bar } from "./bar.ts";
import { frequent, nameCell } from "./client-tables.ts";
import { type Html, html } from "./markup.ts";
import { table } from "./table.ts";
import { timeText } from "./texts.ts";

/** The clients with the most requests in one window. */
export function loudestClients(clients: readonly LoudClient[]): Html {
  const columns = [
    { label: "Client" },
    { label: "Most in one window", number: true },
    { label: "That window began (UTC)" },
    { label: "Requests", number: true },
    { label: "Succeeded", number: true },
    { label: "User agents" },
    { label: "Paths" },
  ];
  const max = Math.max(1, ...clients.map(({ busiest }) => busiest));
  const rows = clients.map((each) => {
    const { client, busiest, busiestStart, requests, succeeded, userAgents, paths } = each;
    return html`<tr>${nameCell(client)}<td class="number">${countText(busiest)}${bar(busiest / max, "allowed")}</td><td class="time">${timeText(busiestStart)}</td><td class="number">${countText(requests)}</td><td class="number">${countText(succeeded)}</td><td>${frequent(userAgents)}</td><td>${frequent(paths)}</td></tr>`;
  });
  const caption = "The clients with the most requests in one of the shortest windows";
  return table({ caption, columns }, rows);
}
