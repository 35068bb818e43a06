import { wrongOptions } from "../admin/admin-error.ts";
import { printable } from "../doctor/finding.ts";
import { HeaderFields } from "./header-fields.ts";
import type { ReadRequest } from "./read-request.ts";

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
