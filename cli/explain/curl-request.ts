import { wrongOptions } from "../admin/admin-error.ts";
import { cmdWords, isForCmd } from "./cmd-words.ts";
import { type CurlBody, encodedPair, readBody } from "./curl-body.ts";
import { type CurlArgument, type CurlOption, curlArguments } from "./curl-options.ts";
import { HeaderFields, readField } from "./header-fields.ts";
import type { ReadRequest } from "./read-request.ts";
import { shellWords } from "./shell-words.ts";

/** The maximum length of a command, in characters. Browsers also copy the bodies of uploads. */
const MAX_LENGTH = 1024 * 1024;

/** The version is unknown. Rules seldom read it. */
const USER_AGENT = "curl/8.0.0";

/**
 * Reads a curl command, such as a browser's "Copy as cURL". Nothing is executed, sent or read from files.
 *
 * @throws {AdminError} if the text is no curl command, or if its request is unclear
 */
export function readCurl(command: string): ReadRequest {
  if (command.length > MAX_LENGTH) {
    throw wrongOptions(
      `The curl command has more than ${MAX_LENGTH} characters. Remove its body (--data-raw …).`,
    );
  }
  const { words, endsAtAmpersand } = isForCmd(command) ? cmdWords(command) : shellWords(command);
  const read = curlArguments(wordsAfterCurl(words, command));
  const notes: string[] = [];
  if (endsAtAmpersand) {
    notes.push(
      "The curl command was read up to an & that is not quoted. If it is part of the URL, quote the URL.",
    );
  }
  const fields = new HeaderFields();
  const removed = new Set<string>();
  for (const field of valuesOf(read, "header")) {
    if (field.startsWith("@")) notes.push("Header fields in a file (-H @file) were not read.");
    else readField(field, "The option -H of curl", fields, (name) => removed.add(name));
  }
  const body = readBody(read, notes);
  const url = requestUrl(read, body);
  const host = fields.take("host");
  if (host !== undefined) {
    notes.push("The field Host of the curl command replaces the host of its URL.");
    replaceHost(url, host);
  }
  addOwnFields(read, url, body, notes, (name, value) => {
    if (!removed.has(name)) fields.addMissing(name, value, "The curl command");
  });
  const text = body.isSent && !body.isInUrl ? body.text : undefined;
  return { method: methodOf(read, body), url: url.href, fields, body: text, notes };
}

/** Leaves out a prompt, variables before the command, and the name of the program. */
function wordsAfterCurl(words: readonly string[], command: string): readonly string[] {
  const start = words.findIndex((word) => !/^(?:[$%>]|\w+=.*)$/s.test(word));
  if (/(?:^|[\\/])curl(?:\.exe)?$/i.test(words[start] ?? "")) return words.slice(start + 1);
  // The text is not printed: it may have secrets.
  const cure = /^\s*(?:await\s+)?fetch\(/.test(command)
    ? "This is a call of fetch. In the browser, choose Copy as cURL."
    : /^\s*(?:\$session|Invoke-(?:WebRequest|RestMethod))\b/.test(command)
      ? "This is a command for PowerShell. In the browser, choose Copy as cURL."
      : "It must begin with curl.";
  throw wrongOptions(`--curl has no curl command. ${cure}`);
}

function valuesOf(read: readonly CurlArgument[], name: CurlOption): string[] {
  return read.filter(({ option }) => option === name).map(({ value }) => value);
}

function lastOf(read: readonly CurlArgument[], name: CurlOption): string | undefined {
  return valuesOf(read, name).at(-1);
}

function methodOf(read: readonly CurlArgument[], { isInUrl, isSent }: CurlBody): string {
  const given = lastOf(read, "request");
  if (given !== undefined && given !== "") return given;
  if (lastOf(read, "head") !== undefined) return "HEAD";
  if (lastOf(read, "upload-file") !== undefined) return "PUT";
  return isSent && !isInUrl ? "POST" : "GET";
}

function requestUrl(read: readonly CurlArgument[], { isInUrl, text }: CurlBody): URL {
  const [given, ...others] = valuesOf(read, "url");
  if (given === undefined || others.length > 0) {
    throw wrongOptions(
      given === undefined
        ? "The curl command has no URL."
        : `The curl command has ${others.length + 1} URLs. Leave only one; if a URL has spaces or &, quote it.`,
    );
  }
  const url = URL.parse(withScheme(withoutGlobs(given, lastOf(read, "globoff") !== undefined)));
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw wrongOptions("The URL of the curl command is not an http or https URL.");
  }
  const search = [
    url.search.slice(1),
    ...valuesOf(read, "url-query").map(urlQuery),
    isInUrl ? (text ?? "") : "",
  ];
  url.search = search.filter(Boolean).join("&");
  return url;
}

/** curl takes a URL without a scheme for http. */
function withScheme(url: string): string {
  return /^[a-z][a-z\d+.-]*:\/\//i.test(url) ? url : `http://${url}`;
}

/** Browsers write `\[` for a bracket, because curl takes brackets and braces for several URLs. */
function withoutGlobs(url: string, isLiteral: boolean): string {
  if (isLiteral) return url;
  if (/(?<!\\)(?:\{[^{}]*\}|\[(?:\d+-\d+|[a-z]-[a-z])(?::\d+)?\])/i.test(url)) {
    throw wrongOptions(
      "curl takes the braces or brackets in the URL for a pattern of several URLs. Write one URL, or add the option -g to the command.",
    );
  }
  return url.replace(/\\([[\]{}])/g, "$1");
}

/** Returns a parameter of `--url-query`; `+` at the start means that it is already encoded. */
function urlQuery(value: string): string {
  return value.startsWith("+") ? value.slice(1) : (encodedPair(value) ?? "");
}

function replaceHost(url: URL, host: string): void {
  if (!URL.canParse(`http://${host}/`)) {
    throw wrongOptions("The field Host of the curl command is not a host.");
  }
  url.port = "";
  url.host = host;
}

/** Adds the fields that curl sends for its options, and those that it always sends. */
function addOwnFields(
  read: readonly CurlArgument[],
  url: URL,
  body: CurlBody,
  notes: string[],
  add: (name: string, value: string) => void,
): void {
  const addOption = (option: CurlOption, name: string, format = (value: string) => value) => {
    const value = lastOf(read, option);
    if (value !== undefined && value !== "") add(name, format(value));
  };
  addOption("oauth2-bearer", "authorization", (token) => `Bearer ${token}`);
  addOption("user", "authorization", basic);
  if (url.username || url.password) {
    add("authorization", basic(`${decoded(url.username)}:${decoded(url.password)}`));
    url.username = "";
    url.password = "";
  }
  addCookies(valuesOf(read, "cookie"), notes, add);
  addOption("referer", "referer", (value) => value.replace(/;auto$/, ""));
  addOption("range", "range", (value) => `bytes=${value}`);
  addOption("user-agent", "user-agent");
  if (lastOf(read, "user-agent") === undefined) add("user-agent", USER_AGENT);
  if (lastOf(read, "compressed") !== undefined) add("accept-encoding", "deflate, gzip, br, zstd");
  if (body.contentType !== undefined) add("content-type", body.contentType);
  add("accept", body.accept ?? "*/*");
  if (body.isInUrl || !body.isSent) return;
  if (body.text !== undefined) add("content-length", String(Buffer.byteLength(body.text)));
  // A Worker cannot know the length of such a body either.
  else add("transfer-encoding", "chunked");
}

/** Decodes a user or a password of a URL. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function basic(user: string): string {
  const pair = user.includes(":") ? user : `${user}:`;
  return `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
}

function addCookies(
  values: readonly string[],
  notes: string[],
  add: (name: string, value: string) => void,
): void {
  const cookies = values.filter((value) => value.includes("="));
  if (cookies.length < values.length) notes.push("Cookies in a file (-b file) were not read.");
  if (cookies.length > 0) add("cookie", cookies.join(";"));
}
