import { createReadStream } from "node:fs";
import { parseAddress } from "../../src/config/address.ts";
import { parseHeaderName } from "../../src/config/key.ts";
import { wrongOptions } from "../admin/connection.ts";
import { printable, quoted } from "../doctor/findings.ts";

/** The maximum size of a file, in bytes. */
const MAX_BYTES = 128 * 1024 * 1024;

/**
 * Reads a file.
 *
 * @param file a path, or `-` for the standard input
 * @param content describes the content, for messages
 * @throws {AdminError} if it cannot be read or is too large
 */
export async function readText(file: string, content: string): Promise<string> {
  const isStandardInput = file === "-";
  if (isStandardInput && process.stdin.isTTY) {
    process.stderr.write(
      `Paste the ${content}, then press Ctrl-D (on Windows Ctrl-Z and Enter).\n`,
    );
  }
  const name = isStandardInput ? "the standard input" : printable(file).slice(0, 200);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of isStandardInput ? process.stdin : createReadStream(file)) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_BYTES) break;
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw wrongOptions(
      code === "ENOENT"
        ? `There is no file ${name}.`
        : `${name} could not be read${code === undefined ? "" : ` (${code})`}.`,
    );
  }
  if (bytes > MAX_BYTES) {
    throw wrongOptions(
      `${name} has more than ${MAX_BYTES / 1024 / 1024} MiB. Copy only the one request into a file.`,
    );
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Control characters, which no header field can have. A tab is allowed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const FORBIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/** The header fields of a described request, by their names in lower case. */
export class HeaderFields {
  readonly #values = new Map<string, string[]>();

  /**
   * Adds a field. Several fields of one name are joined when they are read.
   *
   * @param origin names the place of the field in messages, such as `-H`
   * @throws {AdminError} if no request can have such a field
   */
  add(name: string, value: string, origin: string): void {
    const parsed = parseHeaderName(name);
    if (parsed === undefined) {
      throw wrongOptions(
        `${origin}: ${name === "" ? "the name of a header field is missing" : `"${quoted(name).slice(0, 40)}" is not the name of a header field`}. Write ${origin === "-H" ? "-H " : ""}'name: value', such as 'x-api-key: abc'.`,
      );
    }
    const trimmed = value.trim();
    if (FORBIDDEN.test(trimmed)) {
      throw wrongOptions(
        `${origin}: the value of ${parsed} has a line break or another control character.`,
      );
    }
    const text = isByteString(trimmed) ? trimmed : utf8Bytes(trimmed);
    const values = this.#values.get(parsed);
    if (values) values.push(text);
    else this.#values.set(parsed, [text]);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** Removes all fields of a name. */
  delete(name: string): void {
    this.#values.delete(name.toLowerCase());
  }

  /** Adds a field unless there is one of this name. */
  addMissing(name: string, value: string, origin: string): void {
    if (!this.has(name)) this.add(name, value, origin);
  }

  /** Removes the fields of a name. @returns the first value */
  take(name: string): string | undefined {
    const [value] = this.#values.get(name) ?? [];
    this.#values.delete(name);
    return value;
  }

  /** Replaces the fields whose names the other fields have. */
  replaceBy(others: HeaderFields): void {
    for (const [name, values] of others.#values) this.#values.set(name, values);
  }

  /** Returns the fields as a Worker reads them: those of one name joined. Browsers join cookies by `;`. */
  toRecord(): Record<string, string> {
    return Object.fromEntries(
      [...this.#values].map(([name, values]) => [
        name,
        values.join(name === "cookie" ? "; " : ", "),
      ]),
    );
  }
}

/**
 * Reads the option `-H`: `name: value`, or `name;` for an empty value.
 *
 * @param remove is called for `name:` without a value, with which curl removes a field
 */
export function readField(
  field: string,
  origin: string,
  fields: HeaderFields,
  remove: (name: string) => void,
): void {
  // HTTP/2 sends the method and the URL in pseudo fields, such as `:authority: example.com`.
  if (/^:[a-z]+:/.test(field)) return;
  const colon = field.indexOf(":");
  const name = (colon === -1 ? field : field.slice(0, colon)).trim();
  const value = colon === -1 ? "" : field.slice(colon + 1).trim();
  if (colon === -1 && !name.endsWith(";")) {
    // The text is not printed: it may be a credential whose name is missing.
    throw wrongOptions(
      `${origin} has no colon. Write 'name: value', or 'name;' for an empty value.`,
    );
  }
  if (colon === -1) fields.add(name.slice(0, -1), "", origin);
  else if (value === "" && parseHeaderName(name)) remove(name.toLowerCase());
  else fields.add(name, value, origin);
}

/** Whether each character stands for one byte, as in the values that a Worker reads. */
function isByteString(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters of one byte
  return /^[\u0000-\u00ff]*$/.test(text);
}

/** Returns the bytes that a program sends for a text, each as one character. */
function utf8Bytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** A request as an option describes it, before `--ip` and `--cf` are added. */
export interface ReadRequest {
  readonly method: string;
  /** A URL, or what the user wrote instead. */
  readonly url: string;
  readonly fields: HeaderFields;
  /** Undefined if there is none, or if it is unknown. */
  readonly body?: string | undefined;
  /** What was assumed or left out, as sentences. */
  readonly notes: readonly string[];
}

/** The maximum number of entries that a message lists. */
const MAX_LISTED = 30;
/** The maximum length of a listed URL, in characters. */
const MAX_LISTED_URL = 90;

type Table = Readonly<Record<string, unknown>>;

/**
 * Reads one request of a HAR file, or a single entry of one.
 *
 * @param number the number of the entry; the first is 1
 * @throws {AdminError} if the text has no such entry. If it has several, the message lists them
 */
export function readHar(text: string, number: number | undefined): ReadRequest {
  const document = parse(text);
  const entries = entriesOf(document);
  const selected = number ?? (entries.length === 1 ? 1 : undefined);
  if (entries.length === 0) throw wrongOptions("The HAR file has no entries.");
  if (selected === undefined) {
    throw wrongOptions(
      `The HAR file has ${entries.length} entries. Choose one with --entry:\n${list(entries)}`,
    );
  }
  if (selected < 1 || selected > entries.length) {
    throw wrongOptions(
      `--entry is ${selected}, but the HAR file has the entries 1 to ${entries.length}:\n${list(entries)}`,
    );
  }
  const request = requestOf(entries[selected - 1]);
  if (typeof request?.method !== "string" || typeof request.url !== "string") {
    throw wrongOptions(
      `Entry ${selected} of the HAR file has no request with the texts method and url.`,
    );
  }
  const fields = readFields(request, selected);
  const { postData, bodySize } = request;
  const body = isTable(postData) && typeof postData.text === "string" ? postData.text : undefined;
  const lacksBody = body === undefined && (isTable(postData) || Number(bodySize) > 0);
  return {
    method: request.method,
    url: request.url,
    fields,
    body,
    notes: [...(isSanitized(document, fields) ? [SANITIZED] : []), ...(lacksBody ? [NO_BODY] : [])],
  };
}

const NO_BODY =
  "The HAR entry lacks the text of its body, so functions in custom that read the body find none.";

const SANITIZED =
  "The HAR entry has neither Cookie nor Authorization. Browsers leave them out unless the export includes sensitive data; add them with -H if a rule reads them.";

function parse(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    // The message of the parser quotes the file, which may have credentials.
    throw wrongOptions(
      "The HAR file is not JSON. Save all as HAR in the browser, or copy one entry.",
    );
  }
}

/** Returns the entries of a whole file, of a list of entries, or of one entry or one request. */
function entriesOf(document: unknown): readonly unknown[] {
  if (Array.isArray(document)) return document;
  if (isTable(document)) {
    const { log } = document;
    if (isTable(log) && Array.isArray(log.entries)) return log.entries;
    if (Array.isArray(document.entries)) return document.entries;
    if (requestOf(document)) return [document];
  }
  throw wrongOptions("The HAR file has no log.entries. A single entry needs the object request.");
}

/** @returns the request of an entry, or the value itself if it is a request */
function requestOf(entry: unknown): Table | undefined {
  if (!isTable(entry)) return undefined;
  if (isTable(entry.request)) return entry.request;
  return "method" in entry && "url" in entry ? entry : undefined;
}

function readFields({ headers, bodySize, postData }: Table, number: number): HeaderFields {
  const fields = new HeaderFields();
  const origin = `Entry ${number} of the HAR file`;
  for (const field of Array.isArray(headers) ? headers : []) {
    if (!isTable(field) || typeof field.name !== "string" || typeof field.value !== "string") {
      throw wrongOptions(`${origin} has a header field without the texts name and value.`);
    }
    // HTTP/2 sends the method and the URL in such fields. The URL has the host.
    if (field.name.startsWith(":") || /^host$/i.test(field.name)) continue;
    fields.add(field.name, field.value, origin);
  }
  const hasLength = fields.has("content-length") || fields.has("transfer-encoding");
  if (!hasLength && Number.isSafeInteger(bodySize) && (bodySize as number) > 0) {
    fields.add("content-length", String(bodySize), origin);
  } else if (!hasLength && isTable(postData) && typeof postData.text === "string") {
    fields.add("content-length", String(Buffer.byteLength(postData.text)), origin);
  }
  return fields;
}

function isSanitized(document: unknown, fields: HeaderFields): boolean {
  if (fields.has("cookie") || fields.has("authorization")) return false;
  const log = isTable(document) ? document.log : undefined;
  const creator = isTable(log) ? log.creator : undefined;
  return isTable(creator) && creator.name === "WebInspector";
}

function list(entries: readonly unknown[]): string {
  const width = String(Math.min(entries.length, MAX_LISTED)).length;
  const lines = entries
    .slice(0, MAX_LISTED)
    .map((entry, index) => `  ${String(index + 1).padStart(width)}  ${summaryOf(entry)}`);
  const more = entries.length - lines.length;
  return [...lines, ...(more > 0 ? [`  … and ${more} more`] : [])].join("\n");
}

/** Describes an entry without its query, which may have credentials. */
function summaryOf(entry: unknown): string {
  const { method, url } = requestOf(entry) ?? {};
  if (typeof method !== "string" || typeof url !== "string") return "(no request)";
  const [place = ""] = url.slice(0, 2 * MAX_LISTED_URL).split(/[?#]/, 1);
  const withoutUser = place.replace(/\/\/[^/@]*@/, "//");
  const shown =
    withoutUser.length > MAX_LISTED_URL ? `${withoutUser.slice(0, MAX_LISTED_URL)}…` : withoutUser;
  return printable(`${method.slice(0, 20)} ${shown}`);
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Cloudflare's data about a client, in the form of `request.cf`. */
type ClientFacts = Readonly<Record<string, unknown>>;

interface Fact {
  /** The value that is allowed, for messages. */
  readonly allowed: string;
  /** Returns undefined for a value that is not allowed. */
  parse(text: string): unknown;
}

const FACTS: Readonly<Record<string, Fact>> = {
  country: {
    allowed: "two letters such as DE, T1 for Tor, or XX for an unknown country",
    parse: (text) => (/^(?:[a-z]{2}|t1)$/i.test(text) ? text.toUpperCase() : undefined),
  },
  asn: {
    allowed: "a number such as 64496",
    parse: (text) => {
      const [, digits] = /^(?:as)?(\d{1,10})$/i.exec(text) ?? [];
      return digits !== undefined && Number(digits) < 2 ** 32 ? Number(digits) : undefined;
    },
  },
  verifiedBotCategory: {
    allowed: 'a category such as "Search Engine Crawler"; an empty text for any other client',
    parse: (text) => (text.length <= 64 ? text : undefined),
  },
  "botManagement.ja4": {
    allowed: "a fingerprint of letters, digits and underscores",
    parse: (text) => (/^\w{1,64}$/.test(text) ? text : undefined),
  },
  "botManagement.verifiedBot": {
    allowed: "true or false",
    parse: (text) => (/^(?:true|false)$/.test(text) ? text === "true" : undefined),
  },
};

/**
 * Reads the options `--cf name=value`.
 *
 * @returns undefined without options
 * @throws {AdminError} for another name or value
 */
export function readFacts(options: readonly string[] = []): ClientFacts | undefined {
  const facts: Record<string, unknown> = {};
  const bots: Record<string, unknown> = {};
  for (const option of options) {
    const equals = option.indexOf("=");
    const given = option.slice(0, equals === -1 ? undefined : equals).trim();
    const name = Object.keys(FACTS).find((each) => each.toLowerCase() === given.toLowerCase());
    const fact = name === undefined ? undefined : FACTS[name];
    if (name === undefined || !fact) {
      throw wrongOptions(
        `--cf has the name "${quoted(given).slice(0, 40)}". Allowed: ${Object.keys(FACTS).join(", ")}.`,
      );
    }
    const value = equals === -1 ? undefined : fact.parse(option.slice(equals + 1).trim());
    if (value === undefined) {
      throw wrongOptions(`--cf ${name}= must be ${fact.allowed}.`);
    }
    const [first, second] = name.split(".");
    const target = second === undefined ? facts : bots;
    const field = second ?? first ?? name;
    if (Object.hasOwn(target, field)) throw wrongOptions(`--cf ${name} is given twice.`);
    target[field] = value;
  }
  if (Object.keys(bots).length > 0) facts.botManagement = bots;
  return Object.keys(facts).length === 0 ? undefined : facts;
}

/** Checks the option `--ip`. @throws {AdminError} if it is no address */
export function readIp(ip: string): string {
  const text = ip.trim();
  if (parseAddress(text)) return text;
  // The value is not printed: a key that was written here by mistake would be in logs.
  throw wrongOptions(
    "--ip is not an IP address. Allowed: an address without a port and without a prefix length, such as 203.0.113.7 or 2001:db8::7.",
  );
}

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
