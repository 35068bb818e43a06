import { closingQuote, indexBefore, unescaped } from "./access-quotes.ts";
import { TextCache } from "./text-cache.ts";

const QUOTE = 34;

/** The fields that Combined Log Format adds to Common Log Format. They are those of the last line. */
export class RefererAndAgent {
  readonly #agents = new TextCache((text) => text);
  readonly #referers = new TextCache((text) => new Map([["referer", text]]));
  userAgent: string | undefined;
  /** The referer as a header field. Requests with the same referer share the map. */
  headers: ReadonlyMap<string, string> | undefined;

  /**
   * Reads the fields after the length of the response.
   *
   * @param from the index of a character of the length
   * @param to the end of the line
   * @returns whether the line is in Combined Log Format
   */
  read(text: string, from: number, to: number): boolean {
    this.headers = undefined;
    this.userAgent = undefined;
    const refererAt = indexBefore(text, " ", from, to) + 2;
    if (refererAt === 1 || text.charCodeAt(refererAt - 1) !== QUOTE) return false;
    const refererEnd = quotedEnd(text, refererAt, to);
    const agentAt = refererEnd + 3;
    if (agentAt > to || text.charCodeAt(agentAt - 1) !== QUOTE) {
      // A line that is cut off inside the referer is in Combined Log Format too.
      return refererEnd === to;
    }
    const referer = quotedValue(text.slice(refererAt, refererEnd));
    const agent = quotedValue(text.slice(agentAt, quotedEnd(text, agentAt, to)));
    if (referer !== undefined) this.headers = this.#referers.get(referer);
    if (agent !== undefined) this.userAgent = this.#agents.get(agent);
    return true;
  }
}

/**
 * Returns the end of a quoted field. Some servers cut off long lines, so the field may end with the line: all
 * that rules need comes before it.
 */
function quotedEnd(text: string, from: number, to: number): number {
  const end = closingQuote(text, from, to);
  return end === -1 ? to : end;
}

/** Returns the value of a quoted field; undefined if the request did not have it. */
function quotedValue(field: string): string | undefined {
  if (field === "-") return undefined;
  return field.includes("\\") ? unescaped(field) : field;
}
