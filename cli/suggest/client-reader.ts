import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { encodeValues } from "../../src/request/identity.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import { type KeyValue, keyValuesOf, UNKNOWN_ADDRESS } from "../replay/client-key.ts";
import { clientText } from "../replay/client-text.ts";
import { showsPreflights } from "../replay/known-facts.ts";
import { LoggedRequest } from "../replay/logged-request.ts";
import { RouteCache } from "../replay/route-cache.ts";
import type { RequestClient } from "./loud-clients.ts";

/** Finds the requests that a rule matches, and their clients, with the code of the Worker. */
export class ClientReader {
  /** Requests that are left out because their address is needed and unknown. */
  withoutAddress = 0;
  /** Requests that the Worker answers with 400 or 414 before it reads the rules. */
  refused = 0;
  readonly #rule: Rule;
  readonly #countsUnknownAddress: boolean;
  readonly #ipv6Prefix: number;
  readonly #request: LoggedRequest;
  readonly #routes: RouteCache;

  /** @param countsUnknownAddress whether clients without an address are one client, as in the Worker */
  constructor(
    rule: Rule,
    { caseSensitivePaths, ipv6Prefix }: Pick<Config, "caseSensitivePaths" | "ipv6Prefix">,
    facts: LogFacts,
    countsUnknownAddress: boolean,
  ) {
    this.#countsUnknownAddress = countsUnknownAddress;
    this.#rule = rule;
    this.#ipv6Prefix = ipv6Prefix;
    this.#request = new LoggedRequest(showsPreflights(facts));
    this.#routes = new RouteCache(
      [rule],
      caseSensitivePaths,
      showsPreflights(facts),
      this.#request,
    );
  }

  /** OPTIONS requests that are left out because the log does not show whether they are preflights. */
  get assumedPreflights(): number {
    return this.#routes.assumedPreflights;
  }

  /** Returns the client of a request; undefined if the rule does not count the request. */
  clientOf(request: LogRequest): RequestClient | undefined {
    const matches = this.#routes.matchesOf(request);
    if (!matches) this.refused++;
    const match = matches?.[0];
    if (!match) return undefined;
    const { path, params } = match;
    const values = keyValuesOf(this.#rule.key, {
      ...{ request: this.#request, path, params, ipv6Prefix: this.#ipv6Prefix },
    });
    if (!this.#countsUnknownAddress && values.some(isUnknownAddress)) {
      this.withoutAddress++;
      return undefined;
    }
    return { identity: encodeValues(values), shown: () => shownClient(values) };
  }
}

function isUnknownAddress({ part, value }: KeyValue): boolean {
  return part.kind === "ip" && value === UNKNOWN_ADDRESS;
}

/** The values of a key as reports show them. */
function shownClient(values: readonly KeyValue[]): string {
  return values.map(({ part, value }) => clientText(part, value)).join(", ");
}
