import { type Cell, count, styled, table } from "../../admin/text.ts";
import { fitted, WIDTH, widthOf } from "../../print/fit-text.ts";
import type { ComparedClient, DeniedClient, Frequent } from "../report.ts";

/** How many clients a table lists. `--json` has all. */
const LISTED = 10;
const MAX_CLIENT = 45;

/** Returns a table of clients with their user agents and paths. */
export function deniedClients(title: string, clients: readonly DeniedClient[]): string {
  const headings = ["REQUESTS", "DENIED", "HAD SUCCEEDED"];
  return clientTable(title, headings, clients, (client) => [
    client.requests,
    deniedText(client),
    client.deniedSucceeded ?? "unknown",
  ]);
}

/** The number of denied requests, with its error if it has one. */
export function deniedText({ denied, error }: Pick<DeniedClient, "denied" | "error">): Cell {
  return error === 0 ? denied : `${count(denied)} to ${count(denied + error)}`;
}

/** Returns a table of clients whose requests two configurations decide differently. */
export function comparedClients(title: string, clients: readonly ComparedClient[]): string {
  const headings = ["REQUESTS", "DENIED BEFORE", "DENIED", "HAD SUCCEEDED"];
  return clientTable(title, headings, clients, (client) => [
    client.requests,
    client.deniedBefore,
    client.denied,
    client.newlyDeniedSucceeded ?? "unknown",
  ]);
}

interface Described {
  readonly client: string;
  readonly userAgents: readonly Frequent[];
  readonly paths: readonly Frequent[];
}

function clientTable<Client extends Described>(
  title: string,
  headings: readonly string[],
  clients: readonly Client[],
  numbersOf: (client: Client) => Cell[],
): string {
  const listed = clients.slice(0, LISTED);
  const names = ["CLIENT", ...headings];
  const rows = listed.map((client) => [fitted(client.client, MAX_CLIENT), ...numbersOf(client)]);
  // The two last columns share the columns that the others leave.
  const taken = Math.max(...table(names, rows).split("\n").map(plainWidth));
  const width = Math.max(10, Math.floor((WIDTH - taken - 4) / 2));
  const described = rows.map((row, at) => [
    ...row,
    fitted(listed[at]?.userAgents[0]?.text ?? "", width),
    fitted(listed[at]?.paths[0]?.text ?? "", width),
  ]);
  return [
    styled("bold", title),
    table([...names, "USER AGENT", "PATH"], described),
    ...(clients.length > LISTED
      ? [styled("dim", `and ${clients.length - LISTED} more with --json`)]
      : []),
  ].join("\n");
}

/** The width of a line without the codes of its colours. */
function plainWidth(line: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of colours begin with one
  return widthOf(line.replace(/\u001b\[\d{1,3}m/g, ""));
}
