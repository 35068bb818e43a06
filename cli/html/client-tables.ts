import { countText } from "../../src/admin/dashboard/format.ts";
import type { Tone } from "../../src/admin/dashboard/tone.ts";
import type { ComparedClient, DeniedClient, Frequent } from "../replay/report.ts";
import { bar } from "./bar.ts";
import { type Html, html } from "./markup.ts";
import { table } from "./table.ts";
import { rangeText, shown } from "./texts.ts";

/** The clients with the most denied requests. */
export function deniedClients(
  caption: string,
  clients: readonly DeniedClient[],
  tone: Tone = "limited",
): Html {
  const columns = [
    { label: "Client" },
    { label: "Requests", number: true },
    { label: "Denied", number: true },
    { label: "Had succeeded", number: true },
    { label: "Denied from – to (UTC)" },
    { label: "User agents" },
    { label: "Paths" },
  ];
  const rows = clients.map((each) => {
    const { client, requests, denied, deniedSucceeded, error, firstDenied, lastDenied } = each;
    return html`<tr>${nameCell(client)}<td class="number">${countText(requests)}</td><td class="number">${countText(denied)}${errorText(error)}${bar(denied / Math.max(1, requests), tone)}</td><td class="number">${countText(deniedSucceeded)}</td><td class="time">${rangeText(firstDenied, lastDenied)}</td><td>${frequent(each.userAgents)}</td><td>${frequent(each.paths)}</td></tr>`;
  });
  return table({ caption, columns }, rows);
}

/** The clients whose denied requests differ most between two configurations. */
export function comparedClients(caption: string, clients: readonly ComparedClient[]): Html {
  const columns = [
    { label: "Client" },
    { label: "Requests", number: true },
    { label: "Denied before", number: true },
    { label: "Denied now", number: true },
    { label: "Newly denied, had succeeded", number: true },
    { label: "User agents" },
    { label: "Paths" },
  ];
  const rows = clients.map((each) => {
    const { client, requests, deniedBefore, denied, newlyDeniedSucceeded, error } = each;
    const whole = Math.max(1, requests);
    return html`<tr>${nameCell(client)}<td class="number">${countText(requests)}</td><td class="number">${countText(deniedBefore)}${bar(deniedBefore / whole, "unmatched")}</td><td class="number">${countText(denied)}${errorText(error)}${bar(denied / whole, "limited")}</td><td class="number">${countText(newlyDeniedSucceeded)}</td><td>${frequent(each.userAgents)}</td><td>${frequent(each.paths)}</td></tr>`;
  });
  return table({ caption, columns }, rows);
}

export function nameCell(client: string): Html {
  return html`<th scope="row"><span class="client">${shown(client)}</span></th>`;
}

/** The most frequent texts of a client, each with its count. */
export function frequent(all: readonly Frequent[]): Html {
  return html`<ul class="frequent">${all.map(({ text, count }) => html`<li><code>${shown(text)}</code> <small>× ${countText(count)}</small></li>`)}</ul>`;
}

function errorText(error: number): Html | false {
  return error > 0 && html` <small>or up to ${countText(error)} more</small>`;
}
