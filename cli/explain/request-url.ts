import { wrongOptions } from "../admin/admin-error.ts";
import { quoted } from "../doctor/finding.ts";

/** The host of a request that is described by a path only. */
export interface DefaultHost {
  readonly host: string;
  /** Why this host was taken, for the user. */
  readonly note: string;
}

/**
 * Returns the URL of a request.
 *
 * @param given a URL or a path
 * @param host replaces the host of the URL
 * @param origin the option that gives `host`, for messages
 * @param defaultHost returns the host for a path without a host, or throws
 * @param notes receives what was assumed
 * @throws {AdminError} if it is unclear which URL is meant
 */
export async function requestUrl(
  given: string,
  host: string | undefined,
  origin: string,
  defaultHost: () => Promise<DefaultHost>,
  notes: string[],
): Promise<URL> {
  const url = await parseUrl(given.trim(), host, defaultHost, notes);
  if (host !== undefined) setHost(url, host, origin);
  // Browsers do not send it.
  url.hash = "";
  return url;
}

async function parseUrl(
  given: string,
  host: string | undefined,
  defaultHost: () => Promise<DefaultHost>,
  notes: string[],
): Promise<URL> {
  if (given.startsWith("/")) {
    if (host !== undefined) return pathUrl(given, "host.invalid");
    const found = await defaultHost();
    notes.push(found.note);
    return pathUrl(given, found.host);
  }
  const url = URL.parse(given);
  if (/^https?:\/\//i.test(given) && url) return url;
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(given)) {
    throw wrongOptions(
      url
        ? `The URL begins with ${quoted(url.protocol)}// Weir's requests begin with https:// or http://.`
        : "The URL is not valid. Write a URL such as https://api.example.com/login.",
    );
  }
  const place = given.split(/[?#]/, 1)[0] ?? "";
  const isHost = /^(?:localhost\b|[^\s/@.]+\.)/i.test(place) && URL.canParse(`https://${given}`);
  throw wrongOptions(
    isHost
      ? `The URL has no https://. Write https://${quoted(place)}`
      : `"${quoted(place).slice(0, 80)}" is not a URL. Write a URL such as https://api.example.com/login, or a path that begins with a slash.`,
  );
}

function pathUrl(path: string, host: string): URL {
  // The path is not resolved against a base, because //example.com/x would become another host.
  const url = URL.parse(`https://${host}${path}`);
  if (url) return url;
  throw wrongOptions("The path is not valid. Write a path such as /login.");
}

function setHost(url: URL, host: string, origin: string): void {
  const parsed = /[/?#@\\\s]/.test(host) ? null : URL.parse(`https://${host}/`);
  if (!parsed) {
    throw wrongOptions(`${origin} is not a host. Write a name such as api.example.com.`);
  }
  url.port = "";
  url.host = parsed.host;
}
