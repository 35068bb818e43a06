import { DENIAL_MODES, formatDuration, formatTime } from "../../src/admin/format.ts";
import type { ClientSelector } from "../../src/admin/operations.ts";
import type { StoredDenials } from "../../src/control/protocol.ts";
import { type Cell, table } from "../print/text.ts";
import type { Connection } from "./connection.ts";

/** The answer of the API's calls about denials. */
export interface DenialsAnswer {
  readonly denials: readonly StoredDenials[];
}

/** Asks for denials. The values of a client are sent in a body, because logs have the URLs of requests. */
export function fetchDenials(
  api: Connection,
  query: URLSearchParams,
  selector: ClientSelector | undefined,
): Promise<DenialsAnswer> {
  return api.call(selector ? "POST" : "GET", `denials?${query}`, "denials", selector);
}

const HEADINGS = ["LAST", "TIMES", "RULE", "POLICY", "CLIENT", "WHAT", "PLACE", "RETRY AFTER"];

/** Returns a table of denials, the newest first. */
export function denialTable(denials: readonly StoredDenials[]): string {
  return table(
    HEADINGS,
    denials.map(
      ({ lastAt, count, rule, policy, client, mode, colo = "", retryAfterMs }): Cell[] => [
        formatTime(lastAt),
        { text: count, style: mode === "enforce" || mode === "local" ? "red" : "yellow" },
        rule,
        policy,
        client,
        DENIAL_MODES[mode] ?? mode,
        colo,
        retryAfterMs === undefined ? "never" : formatDuration(retryAfterMs),
      ],
    ),
  );
}
