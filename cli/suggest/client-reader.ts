import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { encodeValues } from "../../src/request/identity.ts";
import type { PathMatch } from "../../src/request/route-table.ts";
import { sentNamesOf } from "../../src/request/sent-values.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import { showsPreflights } from "../logs/needs.ts";
import {
  ADDRESS,
  CanonicalAddresses,
  clientText,
  identityHash,
  type KeyValue,
  keyValuesOf,
  UNKNOWN_ADDRESS,
} from "../replay/clients.ts";
import { LoggedRequest } from "../replay/logged-request.ts";
import { RouteCache } from "../replay/route.ts";

/** Longer identities are hashed, because two million of them are in memory. */
const MAX_IDENTITY = 128;

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
  /** Whether the address alone identifies clients, which is the most frequent key. */
  readonly #isByAddress: boolean;
  readonly #addresses: CanonicalAddresses;
  /** The values of the key of the last request. */
  #values: readonly KeyValue[] = [];

  /** @param countsUnknownAddress whether clients without an address are one client, as in the Worker */
  constructor(
    rule: Rule,
    { caseSensitivePaths, ipv6Prefix }: Pick<Config, "caseSensitivePaths" | "ipv6Prefix">,
    facts: LogFacts,
    countsUnknownAddress: boolean,
  ) {
    const hasPreflights = showsPreflights(facts);
    this.#rule = rule;
    this.#countsUnknownAddress = countsUnknownAddress;
    this.#ipv6Prefix = ipv6Prefix;
    this.#addresses = new CanonicalAddresses(ipv6Prefix);
    this.#request = new LoggedRequest(hasPreflights, sentNamesOf([rule]));
    this.#routes = new RouteCache([rule], caseSensitivePaths, hasPreflights, this.#request);
    this.#isByAddress = rule.key.length === 1 && rule.key[0]?.[0]?.kind === "ip";
  }

  /** OPTIONS requests that are left out because the log does not show whether they are preflights. */
  get assumedPreflights(): number {
    return this.#routes.assumedPreflights;
  }

  /** Returns a text that is different for each client; undefined if the rule does not count the request. */
  clientOf(request: LogRequest): string | undefined {
    const matches = this.#routes.matchesOf(request);
    if (!matches) this.refused++;
    const match = matches?.[0];
    if (!match) return undefined;
    const identity = this.#isByAddress ? this.#addressOf() : this.#identityOf(match);
    if (identity === undefined) this.withoutAddress++;
    return identity;
  }

  /** Returns the client of the last request as reports show it. */
  shown(): string {
    return this.#values.map(({ part, value }) => clientText(part, value)).join(", ");
  }

  /** @returns undefined if the address is unknown, and such clients do not count */
  #addressOf(): string | undefined {
    const value = this.#addresses.of(this.#request);
    this.#values = [{ part: ADDRESS, name: "ip", value }];
    return value === UNKNOWN_ADDRESS && !this.#countsUnknownAddress ? undefined : value;
  }

  /** @returns undefined if the client's address is needed and unknown */
  #identityOf({ path, params }: PathMatch): string | undefined {
    const context = { request: this.#request, path, params, ipv6Prefix: this.#ipv6Prefix };
    const values = keyValuesOf(this.#rule.key, context);
    if (!this.#countsUnknownAddress && values.some(isUnknownAddress)) return undefined;
    this.#values = values;
    const identity = encodeValues(values);
    return identity.length > MAX_IDENTITY ? identityHash(identity) : identity;
  }
}

function isUnknownAddress({ part, value }: KeyValue): boolean {
  return part.kind === "ip" && value === UNKNOWN_ADDRESS;
}
