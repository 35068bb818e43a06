import { BODYLESS, MAX_BODY } from "../../src/explain/described-request.ts";
import { ALLOWED_METHODS, type DescribedRequest, METHODS } from "../../src/explain/explanation.ts";
import { wrongOptions } from "../admin/connection.ts";
import { quoted } from "../doctor/findings.ts";
import { readCurl } from "./curl.ts";
import {
  type DefaultHost,
  HeaderFields,
  type ReadRequest,
  readFacts,
  readField,
  readHar,
  readIp,
  readText,
  requestUrl,
} from "./request.ts";

/** The options that describe a request. */
export interface RequestOptions {
  /** The method and the URL, or only the URL. */
  readonly words: readonly string[];
  readonly header?: readonly string[];
  readonly ip?: string;
  readonly cf?: readonly string[];
  readonly host?: string;
  readonly curl?: string;
  readonly har?: string;
  readonly entry?: number;
}

/** A request, and what was assumed or left out, as sentences. */
export interface Described {
  readonly request: DescribedRequest;
  readonly notes: readonly string[];
}

/**
 * Reads the request that the options describe. Sends nothing.
 *
 * @param defaultHost returns the host for a path without a host, or throws
 * @throws {AdminError} if the options describe no request, or contradict each other
 */
export async function describeRequest(
  options: RequestOptions,
  defaultHost: () => Promise<DefaultHost>,
): Promise<Described> {
  const { method, url: given, fields, body, notes: read } = await readSource(options);
  const notes = [...read];
  const own = ownFields(options, fields);
  const field = own.take("host");
  const host = options.host ?? field;
  fields.replaceBy(own);
  if (options.ip !== undefined) {
    if (own.has("cf-connecting-ip")) {
      throw wrongOptions("The client's address is given twice: --ip and -H cf-connecting-ip.");
    }
    fields.delete("cf-connecting-ip");
    fields.add("cf-connecting-ip", readIp(options.ip), "--ip");
  }
  const cf = readFacts(options.cf);
  const url = await requestUrl(
    given,
    host,
    options.host === undefined ? "-H host" : "--host",
    defaultHost,
    notes,
  );
  if (url.username || url.password) {
    throw wrongOptions(
      "The URL has a user or a password. Write them as a field: -H 'authorization: Basic …'.",
    );
  }
  const headers = fields.toRecord();
  const hasHeaders = Object.keys(headers).length > 0;
  const request = { method: checkedMethod(method), url: url.href };
  const optional = { ...(hasHeaders && { headers }), ...(cf && { cf }) };
  return { request: { ...request, ...optional, ...carried(body, method, notes) }, notes };
}

/** @param notes receives why the body is left out, if it is */
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

async function readSource({ words, curl, har, entry }: RequestOptions): Promise<ReadRequest> {
  const sources = [
    words.length > 0 && "a URL",
    curl !== undefined && "--curl",
    har !== undefined && "--har",
  ];
  const given = sources.filter(Boolean);
  if (given.length !== 1) {
    throw wrongOptions(
      given.length === 0
        ? "There is no request. Write METHOD URL, such as POST https://api.example.com/login, or --curl or --har; weir explain --help has examples."
        : `The request is described twice: by ${given.join(" and by ")}. Use one of them.`,
    );
  }
  if (entry !== undefined && har === undefined) {
    throw wrongOptions("--entry is only for --har.");
  }
  if (curl !== undefined)
    return readCurl(curl === "-" ? await readText("-", "curl command") : curl);
  if (har !== undefined) return readHar(await readText(har, "HAR"), entry);
  return readWords(words);
}

function readWords(words: readonly string[]): ReadRequest {
  const [first = "", second] = words;
  if (second === undefined && /^[A-Z]{3,10}$/.test(first)) {
    throw wrongOptions(
      `The URL is missing. Write it after the method: ${first} https://api.example.com/login`,
    );
  }
  if (second !== undefined && /^(?:https?:\/\/|\/)/i.test(first)) {
    throw wrongOptions("Write the method before the URL: weir explain POST https://…");
  }
  const [method, url] = second === undefined ? ["GET", first] : [first.toUpperCase(), second];
  return { method, url, fields: new HeaderFields(), notes: [] };
}

/** Reads the options `-H`, which replace the fields of `--curl` and `--har`. */
function ownFields({ header = [] }: RequestOptions, fields: HeaderFields): HeaderFields {
  const own = new HeaderFields();
  for (const field of header) readField(field, "-H", own, (name) => fields.delete(name));
  return own;
}

function checkedMethod(method: string): string {
  if (METHODS.includes(method)) return method;
  throw wrongOptions(
    `The method "${quoted(method).slice(0, 40)}" is answered with 400 before a Worker receives it. Write ${ALLOWED_METHODS}.`,
  );
}
