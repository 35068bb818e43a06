import type { KeyPart } from "../../src/config/key-expression.ts";
import type { LogFacts } from "../logs/log-request.ts";

/** Something that a rule needs and that the log does not state. */
export interface UnknownFact {
  /** As part of a sentence, such as `the header field x-api-key`. */
  readonly name: string;
  /** The option that makes the log state it, such as `--host NAME`; undefined if there is none. */
  readonly cure: string | undefined;
}

/** Whether the log states a header field of requests. */
export function statesHeader(facts: LogFacts, name: string): boolean {
  if (facts.headers === "all" || facts.headers.has(name)) return true;
  if (name === "content-length") return facts.bodyBytes;
  return name === "host" ? facts.host : false;
}

/** Whether the log states a header field of responses. */
export function statesResponseHeader({ responseHeaders }: LogFacts, name: string): boolean {
  return responseHeaders === "all" || responseHeaders.has(name);
}

/** The header fields by which a preflight is recognised. */
const OF_PREFLIGHTS = ["origin", "access-control-request-method"];

/** Whether the log shows which OPTIONS requests are preflights of browsers. */
export function showsPreflights(facts: LogFacts): boolean {
  return OF_PREFLIGHTS.every((name) => statesHeader(facts, name));
}

/** Returns the fact that the log lacks to state the value of a part of a key; undefined if it states it. */
export function unknownKeyPart(part: KeyPart, facts: LogFacts): UnknownFact | undefined {
  switch (part.kind) {
    case "ip":
      return facts.ip ? undefined : UNKNOWN.ip;
    case "header":
      return statesHeader(facts, part.name) ? undefined : unknownHeader(part.name);
    case "cookie":
      return statesHeader(facts, "cookie") ? undefined : unknownHeader("cookie");
    case "host":
      return facts.host ? undefined : UNKNOWN.host;
    case "country":
      return facts.country ? undefined : UNKNOWN.country;
    case "asn":
      return facts.asn ? undefined : UNKNOWN.asn;
    case "ja4":
      return facts.ja4 ? undefined : UNKNOWN.ja4;
    default:
      return undefined;
  }
}

export function unknownHeader(name: string): UnknownFact {
  return { name: `the header field ${name}`, cure: `--map header:${name}=FIELD` };
}

export function unknownResponseHeader(name: string): UnknownFact {
  return {
    name: `the header field ${name} of responses`,
    cure: `--map response-header:${name}=FIELD`,
  };
}

export const UNKNOWN = {
  ip: { name: "the client's address", cure: "--map ip=FIELD" },
  host: { name: "the host", cure: "--host NAME" },
  country: { name: "the client's country", cure: "--map country=FIELD" },
  asn: { name: "the client's AS number", cure: "--map asn=FIELD" },
  bots: { name: "whether the client is a verified bot", cure: "--map bot=FIELD" },
  ja4: { name: "the client's JA4 fingerprint", cure: "--map ja4=FIELD" },
  status: { name: "the response's status", cure: "--map status=FIELD" },
  bodyBytes: { name: "the length of the request's body", cure: "--map body-bytes=FIELD" },
} as const satisfies Record<string, UnknownFact>;
