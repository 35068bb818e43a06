import type { LogFacts } from "./log-request.ts";

type Names = LogFacts["headers"];

const NOTHING: LogFacts = {
  ip: false,
  host: false,
  status: false,
  country: false,
  asn: false,
  bots: false,
  ja4: false,
  bodyBytes: false,
  headers: new Set(),
  responseHeaders: new Set(),
};

/** Returns what each of several logs states. */
export function commonFacts(all: readonly LogFacts[]): LogFacts {
  return all.length === 0
    ? NOTHING
    : all.reduce((a, b) => ({
        ...((a.isMappable === false || b.isMappable === false) && { isMappable: false }),
        ip: a.ip && b.ip,
        host: a.host && b.host,
        status: a.status && b.status,
        country: a.country && b.country,
        asn: a.asn && b.asn,
        bots: a.bots && b.bots,
        ja4: a.ja4 && b.ja4,
        bodyBytes: a.bodyBytes && b.bodyBytes,
        headers: commonNames(a.headers, b.headers),
        responseHeaders: commonNames(a.responseHeaders, b.responseHeaders),
      }));
}

function commonNames(a: Names, b: Names): Names {
  if (a === "all") return b;
  if (b === "all") return a;
  return new Set([...a].filter((name) => b.has(name)));
}
