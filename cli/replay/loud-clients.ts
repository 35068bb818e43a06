import { type LogRequest, ownText } from "../logs/log-request.ts";
import type { Frequent } from "./report.ts";

/** The maximum length of a text, in characters. */
const MAX_LENGTH = 200;
const MAX_TEXTS = 8;

interface Entry {
  text: string;
  count: number;
  /** By how much `count` may be too high. */
  error: number;
}

/**
 * Finds the most frequent texts with a bounded number of entries, by the algorithm Space-Saving (Metwally, Agrawal
 * and El Abbadi, 2005). A new text replaces the rarest one, and takes over its count as an error.
 *
 * An entry with a count of n is replaced only by every n-th text without an entry. This keeps texts that are really
 * frequent, and saves the time of copying a text for each request of a client that never repeats one (Random Admission
 * Policy: Ben-Basat, Einziger, Friedman and Kassner, 2017).
 */
export class FrequentTexts {
  readonly #entries: Entry[] = [];
  /** Texts without an entry since the last replacement. */
  #unknown = 0;

  /** Counts a text. Its end is cut off if it has more than 200 characters. */
  add(text: string): void {
    const entries = this.#entries;
    const bounded = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text;
    let rarest: Entry | undefined;
    for (const entry of entries) {
      if (entry.text === bounded) {
        entry.count++;
        return;
      }
      if (rarest === undefined || entry.count < rarest.count) rarest = entry;
    }
    if (rarest === undefined || entries.length < MAX_TEXTS) {
      entries.push({ text: ownText(bounded), count: 1, error: 0 });
      return;
    }
    this.#unknown++;
    if (this.#unknown < rarest.count) return;
    this.#unknown = 0;
    rarest.text = ownText(bounded);
    rarest.error = rarest.count++;
  }

  /** Returns the most frequent texts, each with the minimum number of its occurrences. */
  top(count: number): Frequent[] {
    return this.#entries
      .map((entry) => ({ text: entry.text, count: entry.count - entry.error }))
      .sort((one, other) => other.count - one.count || compare(one.text, other.text))
      .slice(0, count);
  }
}

/** Orders texts in the same way in every locale. */
function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The maximum length of a method, in characters. */
const MAX_METHOD = 20;
const [QUESTION_MARK, NUMBER_SIGN, SEMICOLON] = [0x3f, 0x23, 0x3b];

/** Returns the method and the path, without a query, which may contain credentials. */
function methodAndPath({ method, target }: LogRequest): string {
  return `${method.slice(0, MAX_METHOD)} ${pathOf(target)}`;
}

/** Returns the path of a target, up to its query, its parameters or its fragment. */
function pathOf(target: string): string {
  for (let end = 0; end < target.length; end++) {
    const unit = target.charCodeAt(end);
    if (unit === QUESTION_MARK || unit === NUMBER_SIGN || unit === SEMICOLON) {
      return target.slice(0, end);
    }
  }
  return target;
}

/** How many clients stay observed when twice as many are observed. */
const OBSERVED = 256;
/** The maximum length of a client's text in a report. */
const MAX_CLIENT = 200;

/** A client whose count was once among the highest ones. */
export interface LoudClient<Id> {
  readonly id: Id;
  /** The client as reports show it. */
  readonly client: string;
  /** Its highest count, and the time at which it was reached. */
  count: number;
  at: number;
  readonly userAgents: FrequentTexts;
  readonly paths: FrequentTexts;
}

/**
 * Observes the clients with the highest counts. A client's user agents and paths come only from requests after its
 * count was among the 256 highest.
 */
export class LoudClients<Id> {
  readonly #clients = new Map<Id, LoudClient<Id>>();
  /** Only clients with a count above this number are observed. */
  #threshold = 0;

  /**
   * @param count the client's count, with this request
   * @param shown returns the client as reports show it, if they do not show `id`
   */
  add(id: Id, count: number, request: LogRequest, shown: () => string = () => `${id}`): void {
    const client = this.#clients.get(id) ?? this.#insert(id, count, shown);
    if (!client) return;
    if (count > client.count) {
      client.count = count;
      client.at = request.at;
    }
    const agent = request.headers?.get("user-agent");
    if (agent) client.userAgents.add(agent);
    client.paths.add(methodAndPath(request));
  }

  /** Returns the clients with the highest counts, the highest first. */
  top(count: number): LoudClient<Id>[] {
    return this.#sorted().slice(0, count);
  }

  /** @returns undefined if the count is too low */
  #insert(id: Id, count: number, shown: () => string): LoudClient<Id> | undefined {
    if (count <= this.#threshold) return undefined;
    if (this.#clients.size >= 2 * OBSERVED) this.#shrink();
    const client: LoudClient<Id> = {
      id,
      client: ownText(shown().slice(0, MAX_CLIENT)),
      count: 0,
      at: 0,
      userAgents: new FrequentTexts(),
      paths: new FrequentTexts(),
    };
    this.#clients.set(id, client);
    return client;
  }

  #shrink(): void {
    const quieter = this.#sorted().slice(OBSERVED);
    this.#threshold = quieter[0]?.count ?? 0;
    for (const { id } of quieter) this.#clients.delete(id);
  }

  #sorted(): LoudClient<Id>[] {
    return [...this.#clients.values()].sort(
      (one, other) => other.count - one.count || compare(one.client, other.client),
    );
  }
}
