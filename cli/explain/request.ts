import { parseAddress } from "../../src/config/address.ts";
import { parseHeaderName } from "../../src/config/key.ts";
import { BODYLESS, MAX_BODY } from "../../src/explain/described-request.ts";
import { ALLOWED_METHODS, type DescribedRequest, METHODS } from "../../src/explain/explanation.ts";
import { wrongOptions } from "../admin/connection.ts";
import { wrongIp } from "../admin/selector.ts";
import { quoted } from "../print/text.ts";

/** The options that describe a request. Most are options of curl, with curl's meaning. */
export interface RequestOptions {
  /** The method and the URL, or only the URL. */
  readonly words: readonly string[];
  /** The parts of the body in their order; undefined for a file, which is not read. */
  readonly body: readonly (string | undefined)[];
  /** Whether the body has the header fields of curl's --json. */
  readonly isJsonData?: boolean;
  /** Whether the body is a form of several parts, which is unknown. */
  readonly form?: true;
  /** Whether the data belong to the query. */
  readonly get?: true;
  readonly request?: string;
  readonly header?: readonly string[];
  readonly head?: true;
  readonly cookie?: readonly string[];
  readonly user?: string;
  readonly oauth2Bearer?: string;
  readonly userAgent?: string;
  readonly referer?: string;
  readonly ip?: string;
  readonly cf?: readonly string[];
  readonly host?: string;
}

/** A request, with sentences about assumptions and omissions. */
export interface Described {
  readonly request: DescribedRequest;
  readonly notes: readonly string[];
}

/** The host for a request that only a path describes. */
export interface DefaultHost {
  readonly host: string;
  /** The reason for this host, as a sentence for the user. */
  readonly note: string;
}

/** A request as the arguments and curl's options describe it. */
interface Source {
  readonly method: string;
  /** The text that the user gave as a URL. */
  readonly url: string;
  readonly headers: Headers;
  /** Undefined for a request without a body, or with an unknown one. */
  readonly body: string | undefined;
}

/**
 * Reads the request that the options describe. Sends nothing.
 *
 * @param defaultHost returns the host for a path without a host, or throws
 * @throws {CommandFailure} if the options describe no request, or contradict each other
 */
export async function describeRequest(
  options: RequestOptions,
  defaultHost: () => Promise<DefaultHost>,
): Promise<Described> {
  const notes: string[] = [];
  const { own, removed } = readHeaderOptions(options.header);
  const { method, url: given, headers, body } = curlRequest(options, notes);
  for (const name of removed) headers.delete(name);
  const host = options.host ?? own.get("host") ?? undefined;
  own.delete("host");
  for (const [name, value] of own) headers.set(name, value);
  if (options.ip !== undefined) {
    if (own.has("cf-connecting-ip")) {
      throw wrongOptions("The client's address is given twice: --ip and -H cf-connecting-ip.");
    }
    headers.set("cf-connecting-ip", readIp(options.ip));
  }
  const cf = readFacts(options.cf);
  const url = await parseUrl(given.trim(), host, defaultHost, notes);
  if (host !== undefined) setHost(url, host, options.host === undefined ? "-H host" : "--host");
  if (url.username || url.password) {
    throw wrongOptions("The URL has a user or a password. Write them as -u 'user:password'.");
  }
  // Browsers and curl do not send the fragment.
  url.hash = "";
  const request = {
    method: checkedMethod(method),
    url: url.href,
    ...([...headers].length > 0 && { headers: Object.fromEntries(headers) }),
    ...(cf && { cf }),
    ...carried(body, method, notes),
  };
  return { request, notes };
}

/** @param notes receives the reason if the body is left out */
function carried(body: string | undefined, method: string, notes: string[]): { body?: string } {
  if (body === undefined) return {};
  const cause = BODYLESS.includes(method)
    ? `with ${method}, none is explained`
    : Buffer.byteLength(body) > MAX_BODY && `it has more than ${MAX_BODY / 1024} KiB`;
  if (!cause) return { body };
  notes.push(
    `The body is left out, because ${cause}. Functions in custom that read the body find none.`,
  );
  return {};
}

/** Returns the request that curl would send for these options, without curl's own user-agent and accept. */
function curlRequest(options: RequestOptions, notes: string[]): Source {
  const { words, request, head, get, body: parts, isJsonData } = options;
  const [word, given] = wordsOf(options);
  if (word !== undefined && request !== undefined) {
    throw wrongOptions(`The method is given twice: -X ${quoted(request)} and ${words[0]}.`);
  }
  const isSent = parts.length > 0 && !get;
  const isKnown = !parts.includes(undefined);
  const headers = fieldsOf(options, notes);
  if (isJsonData) {
    headers.set("content-type", "application/json");
    headers.set("accept", "application/json");
  } else if (isSent) {
    const type = options.form ? "multipart/form-data" : "application/x-www-form-urlencoded";
    headers.set("content-type", type);
  }
  const known = parts.filter((part) => part !== undefined).join(isJsonData ? "" : "&");
  if (isSent && isKnown) headers.set("content-length", String(Buffer.byteLength(known)));
  // The length of an unknown body is unknown too.
  else if (isSent) headers.set("transfer-encoding", "chunked");
  if (!isKnown) notes.push(get ? NO_QUERY : NO_BODY);
  const method = word ?? request ?? (head ? "HEAD" : isSent ? "POST" : "GET");
  // Browsers copy a bracket as `\[`, because curl expands brackets and braces into several URLs.
  const url = given.replace(/\\([[\]{}])/g, "$1");
  return {
    method,
    url: get && known !== "" ? withQuery(url, known) : url,
    headers,
    body: isSent && isKnown ? known : undefined,
  };
}

/** Returns the header fields of options other than `-H`. */
function fieldsOf(options: RequestOptions, notes: string[]): Headers {
  const { user, oauth2Bearer, userAgent, referer, cookie = [] } = options;
  const headers = new Headers();
  if (oauth2Bearer !== undefined) {
    addHeader(headers, "authorization", `Bearer ${oauth2Bearer}`, "--oauth2-bearer");
  } else if (user !== undefined) {
    const pair = Buffer.from(user.includes(":") ? user : `${user}:`, "utf8").toString("base64");
    addHeader(headers, "authorization", `Basic ${pair}`, "-u");
  }
  if (userAgent) addHeader(headers, "user-agent", userAgent, "-A");
  // curl follows redirects with `;auto`, and does not send it.
  const from = referer?.replace(/;auto$/, "");
  if (from) addHeader(headers, "referer", from, "-e");
  for (const pairs of cookie) {
    if (pairs.includes("=")) addHeader(headers, "cookie", pairs, "-b");
    else notes.push("Cookies in a file (-b file) were not read.");
  }
  return headers;
}

function withQuery(url: string, query: string): string {
  const [base = ""] = url.split("#", 1);
  const separator = /[?&]$/.test(base) ? "" : base.includes("?") ? "&" : "?";
  return base + separator + query;
}

const NO_QUERY = "The query lacks the data of files, because files are not read.";

const NO_BODY =
  "The body is unknown, because files are not read, and no forms (-F). Only functions in custom that read it and rules with a cost of body:bytes depend on it.";

/** @returns the method, if there is one, and the URL */
function wordsOf({ words }: RequestOptions): [string | undefined, string] {
  const [first, second, ...others] = words;
  if (first === undefined) {
    throw wrongOptions(
      "There is no request. Write METHOD URL, such as POST https://api.example.com/login; weir explain --help has examples.",
    );
  }
  if (second === undefined && /^[A-Z]{3,10}$/.test(first)) {
    throw wrongOptions(
      `The URL is missing. Write it after the method: ${first} https://api.example.com/login`,
    );
  }
  if (others.length > 0 || (second !== undefined && isUrl(first) && isUrl(second))) {
    throw wrongOptions("There are several URLs. Explain one request at a time.");
  }
  if (second !== undefined && isUrl(first)) {
    throw wrongOptions("Write the method before the URL: weir explain POST https://…");
  }
  return second === undefined ? [undefined, first] : [first.toUpperCase(), second];
}

function isUrl(word: string): boolean {
  return /^(?:https?:\/\/|\/)/i.test(word);
}

/** Reads the options `-H`: `name: value`, `name;` for an empty value, or `name:` to remove a field. */
function readHeaderOptions(options: readonly string[] = []) {
  const own = new Headers();
  const removed: string[] = [];
  for (const option of options) {
    // HTTP/2 sends the method and the URL in fields such as `:authority: example.com`.
    if (/^:[a-z]+:/.test(option)) continue;
    if (option.startsWith("@")) {
      throw wrongOptions(
        "-H names a file, but files are not read. Write each field: -H 'name: value'",
      );
    }
    const colon = option.indexOf(":");
    if (colon === -1 && !option.trim().endsWith(";")) {
      // The text is not printed: it may be a credential whose name is missing.
      throw wrongOptions("-H has no colon. Write 'name: value', or 'name;' for an empty value.");
    }
    const name = (colon === -1 ? option.trim().slice(0, -1) : option.slice(0, colon)).trim();
    const value = colon === -1 ? "" : option.slice(colon + 1).trim();
    if (colon !== -1 && value === "" && parseHeaderName(name)) removed.push(name);
    else addHeader(own, name, value, "-H");
  }
  return { own, removed };
}

/**
 * Adds a header. Several fields of one name are joined, as a Worker reads them.
 *
 * @param origin names the place of the field in messages, such as `-H`
 * @throws {CommandFailure} if no request can have such a field
 */
function addHeader(headers: Headers, name: string, value: string, origin: string): void {
  const parsed = parseHeaderName(name);
  if (parsed === undefined) {
    throw wrongOptions(
      `${origin}: "${quoted(name).slice(0, 40)}" is not the name of a header. Write 'name: value', such as 'x-api-key: abc'.`,
    );
  }
  try {
    // A program sends the bytes of UTF-8, and a Worker reads each byte as one character.
    const isLatin1 = Buffer.from(value, "latin1").toString("latin1") === value;
    headers.append(parsed, isLatin1 ? value : Buffer.from(value, "utf8").toString("latin1"));
  } catch {
    throw wrongOptions(
      `${origin}: the value of ${parsed} has a line break or another control character.`,
    );
  }
}

interface Fact {
  /** The value that is allowed, for messages. */
  readonly allowed: string;
  readonly form: RegExp;
  readonly read: (text: string) => unknown;
}

const FACTS: Readonly<Record<string, Fact>> = {
  country: {
    allowed: "two letters such as DE, T1 for Tor, or XX for an unknown country",
    form: /^(?:[a-z]{2}|t1)$/i,
    read: (text) => text.toUpperCase(),
  },
  asn: {
    allowed: "a number such as 64496",
    form: /^(?:as)?\d{1,10}$/i,
    read: (text) => Number(text.replace(/^as/i, "")),
  },
  verifiedBotCategory: {
    allowed: 'a category such as "Search Engine Crawler"; an empty text for any other client',
    form: /^.{0,64}$/,
    read: (text) => text,
  },
  "botManagement.ja4": {
    allowed: "a fingerprint of letters, digits and underscores",
    form: /^\w{1,64}$/,
    read: (text) => text,
  },
  "botManagement.verifiedBot": {
    allowed: "true or false",
    form: /^(?:true|false)$/,
    read: (text) => text === "true",
  },
};

/**
 * Reads the options `--cf name=value`.
 *
 * @returns Cloudflare's data in the form of `request.cf`; undefined without options
 */
function readFacts(options: readonly string[] = []): Record<string, unknown> | undefined {
  const facts: Record<string, unknown> = {};
  const bots: Record<string, unknown> = {};
  for (const option of options) {
    const [, given = "", value = ""] = /^([^=]*)(?:=(.*))?$/s.exec(option) ?? [];
    const found = Object.entries(FACTS).find(
      ([name]) => name.toLowerCase() === given.trim().toLowerCase(),
    );
    if (!found) {
      throw wrongOptions(
        `--cf has the name "${quoted(given).slice(0, 40)}". Allowed: ${Object.keys(FACTS).join(", ")}.`,
      );
    }
    const [name, { allowed, form, read }] = found;
    if (!option.includes("=") || !form.test(value.trim())) {
      throw wrongOptions(`--cf ${name} must be ${allowed}. Write --cf ${name}=VALUE.`);
    }
    const [field = name, ofBots] = name.split(".");
    const target = ofBots === undefined ? facts : bots;
    if (Object.hasOwn(target, ofBots ?? field)) throw wrongOptions(`--cf ${name} is given twice.`);
    target[ofBots ?? field] = read(value.trim());
  }
  if (Object.keys(bots).length > 0) facts.botManagement = bots;
  return options.length === 0 ? undefined : facts;
}

function readIp(ip: string): string {
  const text = ip.trim();
  if (parseAddress(text)) return text;
  throw wrongIp();
}

async function parseUrl(
  given: string,
  host: string | undefined,
  defaultHost: () => Promise<DefaultHost>,
  notes: string[],
): Promise<URL> {
  if (given.startsWith("/")) {
    const found = host === undefined ? await defaultHost() : { host: "host.invalid", note: "" };
    if (found.note !== "") notes.push(found.note);
    // The path is not resolved against a base, because //example.com/x would become another host.
    const url = URL.parse(`https://${found.host}${given}`);
    if (url) return url;
    throw wrongOptions("The path is not valid. Write a path such as /login.");
  }
  const url = URL.parse(given);
  if (/^https?:\/\//i.test(given) && url) return url;
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(given)) {
    throw wrongOptions(
      url
        ? `The URL begins with ${quoted(`${url.protocol}//`)}, but a request to Weir begins with https:// or http://.`
        : "The URL is not valid. Write a URL such as https://api.example.com/login.",
    );
  }
  const place = quoted(given.split(/[?#]/, 1)[0] ?? "").slice(0, 80);
  throw wrongOptions(
    /^(?:localhost\b|[^\s/@.]+\.)/i.test(place)
      ? `The URL has no https://. Write https://${place}`
      : `"${place}" is not a URL. Write a URL such as https://api.example.com/login, or a path that begins with a slash.`,
  );
}

function setHost(url: URL, host: string, origin: string): void {
  const parsed = /[/?#@\\\s]/.test(host) ? null : URL.parse(`https://${host}/`);
  if (!parsed) {
    throw wrongOptions(`${origin} is not a host. Write a name such as api.example.com.`);
  }
  url.port = "";
  url.host = parsed.host;
}

function checkedMethod(method: string): string {
  if (METHODS.includes(method)) return method;
  if (method.toLowerCase() === "curl") {
    throw wrongOptions("Leave out the word curl: its options follow after npx weir explain.");
  }
  throw wrongOptions(
    `The method "${quoted(method).slice(0, 40)}" is answered with 400 before a Worker receives it. Write ${ALLOWED_METHODS}.`,
  );
}
