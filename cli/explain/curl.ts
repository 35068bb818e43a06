import type { Explanation } from "../../src/explain/explanation.ts";
import { wrongOptions } from "../admin/connection.ts";
import { quoted } from "../doctor/findings.ts";
import { HeaderFields, type ReadRequest, readField } from "./request.ts";

/** The characters of the escapes with one letter in `$'…'`. */
const LETTERS: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  e: "\x1b",
  E: "\x1b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

const ESCAPE =
  /(?:\\(?:x[\dA-Fa-f]{1,2}|[0-7]{1,3}))+|\\(?:u[\dA-Fa-f]{1,4}|U[\dA-Fa-f]{1,8}|c[\s\S]|[\s\S])/g;
const BYTE = /\\(?:x([\dA-Fa-f]{1,2})|([0-7]{1,3}))/g;

/**
 * Returns the text of bash's quotes `$'…'`. Browsers use them for a request with line breaks or `!`.
 *
 * @param body the text between the quotes
 */
function ansiText(body: string): string {
  return body.replace(ESCAPE, (sequence) => {
    const kind = sequence.charAt(1);
    if (/[x0-7]/.test(kind) && sequence.length > 2) return bytesText(sequence);
    if (kind === "u" || kind === "U") return characterOf(Number.parseInt(sequence.slice(2), 16));
    if (kind === "c" && sequence.length > 2) {
      return String.fromCharCode(sequence.charCodeAt(2) & 0x1f);
    }
    if (/[0-7]/.test(kind)) return String.fromCharCode(Number(kind));
    return LETTERS[kind] ?? (/["'?\\]/.test(kind) ? kind : sequence);
  });
}

/** Decodes escaped bytes as UTF-8 or, if they are not, as Latin-1, as some browsers write them. */
function bytesText(escapes: string): string {
  const bytes = [...escapes.matchAll(BYTE)].map(
    ([, hex, octal]) => Number.parseInt(hex ?? octal ?? "0", hex === undefined ? 8 : 16) & 0xff,
  );
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(bytes),
    );
  } catch {
    return bytes.map((byte) => String.fromCharCode(byte)).join("");
  }
}

function characterOf(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
}

/** The words of a command. */
interface CommandWords {
  readonly words: readonly string[];
  /** Whether the command ends at an `&` with a text behind it, as in an unquoted URL with two parameters. */
  readonly endsAtAmpersand: boolean;
}

/**
 * Splits a command for a POSIX shell into words, and removes the quotes. Nothing is executed or expanded.
 * shell-quote is not used: it drops an unclosed quote without an error, and it returns an empty word for each
 * continued line, as for `-d ''`.
 *
 * @throws {AdminError} if a quote is not closed, or if only the shell of the user knows a part of the text
 */
function shellWords(text: string): CommandWords {
  return new Reader(text).read();
}

const BLANK = /[ \t\r\n]/;
/** Characters that end a command or redirect it, if they are not quoted. */
const OPERATOR = /[|&;()<>]/;
/** Matches what begins an expansion after `$`. */
const EXPANSION = /[A-Za-z_0-9{(@*#?$!-]/;

class Reader {
  readonly #text: string;
  readonly #words: string[] = [];
  #at = 0;
  /** Undefined between two words. */
  #word: string | undefined;
  #isQuoted = false;
  /** Whether the next word is the file of a redirection. */
  #skipsWord = false;

  constructor(text: string) {
    this.#text = text;
  }

  read(): CommandWords {
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at);
      if (BLANK.test(char)) {
        this.#endWord();
        this.#at++;
        if (char === "\n" && !this.#continues()) break;
      } else if (char === "#" && this.#word === undefined) {
        const end = this.#text.indexOf("\n", this.#at);
        this.#at = end === -1 ? this.#text.length : end;
      } else if (OPERATOR.test(char)) {
        if (this.#isEnd(char)) break;
      } else {
        this.#add(this.#piece(char));
      }
    }
    this.#endWord();
    const rest = this.#text.slice(this.#at, this.#at + 2);
    return { words: this.#words, endsAtAmpersand: /^&[^\s&>]/.test(rest) };
  }

  /** Whether the command continues on the next line, although the line before it has no backslash at its end. */
  #continues(): boolean {
    if (this.#words.length === 0) return true;
    while (BLANK.test(this.#text.charAt(this.#at))) this.#at++;
    return this.#text.charAt(this.#at) === "-";
  }

  /** Reads an operator. @returns whether it ends the command; a redirection does not */
  #isEnd(operator: string): boolean {
    if (operator !== "<" && operator !== ">") return true;
    // In `2>file`, the number is no word.
    if (!this.#isQuoted && /^\d$/.test(this.#word ?? "")) this.#word = undefined;
    this.#endWord();
    while (/[<>&|]/.test(this.#text.charAt(this.#at))) this.#at++;
    this.#skipsWord = true;
    return false;
  }

  /** Reads one character or one quoted text. @param char the current character */
  #piece(char: string): string {
    if (char === "'") return this.#singleQuoted();
    if (char === '"') return this.#doubleQuoted(this.#at + 1);
    if (char === "\\") return this.#escaped();
    if (char === "`") throw notExpanded("a backtick");
    if (char === "$") {
      const next = this.#text.charAt(this.#at + 1);
      if (next === "'") return this.#ansiQuoted();
      if (next === '"') return this.#doubleQuoted(this.#at + 2);
      this.#refuseExpansion(this.#at);
    }
    this.#at++;
    return char;
  }

  #escaped(): string {
    const lineEnd = this.#lineEnd(this.#at + 1);
    if (lineEnd > 0) {
      this.#at += 1 + lineEnd;
      return "";
    }
    this.#isQuoted = true;
    const char = this.#text.charAt(this.#at + 1);
    this.#at += 2;
    return char;
  }

  /** @returns the number of characters of the line's end at this place; 0 if there is none */
  #lineEnd(at: number): number {
    if (this.#text.startsWith("\n", at)) return 1;
    return this.#text.startsWith("\r\n", at) ? 2 : 0;
  }

  #doubleQuoted(start: number): string {
    this.#isQuoted = true;
    let result = "";
    let at = start;
    for (; at < this.#text.length; at++) {
      const char = this.#text.charAt(at);
      if (char === '"') {
        this.#at = at + 1;
        return result;
      }
      if (char === "`") throw notExpanded("a backtick");
      if (char === "$") this.#refuseExpansion(at);
      if (char !== "\\") {
        result += char;
        continue;
      }
      const lineEnd = this.#lineEnd(at + 1);
      const next = this.#text.charAt(at + 1);
      if (lineEnd === 0) result += /["\\$`]/.test(next) ? next : char + next;
      at += lineEnd || 1;
    }
    throw notClosed('"');
  }

  #ansiQuoted(): string {
    this.#isQuoted = true;
    const start = this.#at + 2;
    for (let at = start; at < this.#text.length; at++) {
      const char = this.#text.charAt(at);
      if (char === "\\") at++;
      else if (char === "'") {
        this.#at = at + 1;
        return ansiText(this.#text.slice(start, at));
      }
    }
    throw notClosed("$'");
  }

  #singleQuoted(): string {
    this.#isQuoted = true;
    const start = this.#at + 1;
    const end = this.#text.indexOf("'", start);
    if (end === -1) throw notClosed("'");
    this.#at = end + 1;
    return this.#text.slice(start, end);
  }

  #refuseExpansion(at: number): void {
    // A name is short, so only this many characters are examined.
    const rest = this.#text.slice(at + 1, at + 41);
    if (!EXPANSION.test(rest.charAt(0))) return;
    // Other texts may be a part of a password in the wrong quotes.
    const name = /^\{?([A-Z_][A-Z0-9_]*)(?![a-z0-9])/.exec(rest)?.[1];
    throw notExpanded(name === undefined ? "a $" : `$${name}`);
  }

  #add(piece: string): void {
    // A continued line begins no word.
    if (piece === "" && !this.#isQuoted) return;
    this.#word = (this.#word ?? "") + piece;
  }

  #endWord(): void {
    if (this.#word !== undefined && !this.#skipsWord) this.#words.push(this.#word);
    if (this.#word !== undefined) this.#skipsWord = false;
    this.#word = undefined;
    this.#isQuoted = false;
  }
}

function notClosed(quote: string) {
  return wrongOptions(
    `The curl command has a ${quote} without the quote that closes it. Copy the whole command; to avoid the quotes of your shell, pass it on standard input: weir explain --curl - < command.txt`,
  );
}

function notExpanded(text: string) {
  return wrongOptions(
    `The curl command has ${text} that only your shell can replace. Write the value itself, or put the text into single quotes if it is meant literally.`,
  );
}

/**
 * Whether a command is written for cmd.exe, as browsers copy it on Windows: lines that end with `^`, and
 * `^"` as quotes.
 */
function isForCmd(text: string): boolean {
  const first = /'|\^?"|\^\r?\n|\\\r?\n/.exec(text)?.[0] ?? "";
  return first.startsWith("^") || (first === '"' && /\^\r?\n/.test(text) && !/\\\r?\n/.test(text));
}

/** Splits a command for cmd.exe into words. Variables (`%NAME%`) are kept as text. */
function cmdWords(text: string): CommandWords {
  const { line, rest } = cmdLine(text);
  return { words: argumentsOf(line), endsAtAmpersand: /^&[^\s&]/.test(rest) };
}

/** Returns the line that cmd.exe passes to a program, without escapes such as `^&`, and the text after its end. */
function cmdLine(text: string): { line: string; rest: string } {
  let line = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '"') isQuoted = !isQuoted;
    if (isQuoted || !/[\^&|<>\r\n]/.test(char)) {
      line += char;
      continue;
    }
    if (char !== "^") return { line, rest: text.slice(at, at + 2) };
    // `^` at the end of a line joins it with the next line, whose first character is escaped then.
    if (text.startsWith("\r\n", at + 1)) at += 2;
    else if (text.startsWith("\n", at + 1)) at++;
    at++;
    line += text.charAt(at);
  }
  return { line, rest: "" };
}

/** Splits a line as programs for Windows do. A backslash escapes only a quote. */
function argumentsOf(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let isQuoted = false;
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (!isQuoted && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    word ??= "";
    if (char === "\\") {
      let end = at + 1;
      while (line.charAt(end) === "\\") end++;
      const count = end - at;
      const isBeforeQuote = line.charAt(end) === '"';
      word += "\\".repeat(isBeforeQuote ? Math.floor(count / 2) : count);
      const escapesQuote = isBeforeQuote && count % 2 === 1;
      if (escapesQuote) word += '"';
      at = escapesQuote ? end : end - 1;
    } else if (char !== '"') {
      word += char;
    } else if (isQuoted && line.charAt(at + 1) === '"') {
      word += '"';
      at++;
    } else {
      isQuoted = !isQuoted;
    }
  }
  if (isQuoted) {
    throw wrongOptions(
      'The curl command has a " without the quote that closes it. Copy the whole command.',
    );
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** The options of curl that change a request, and whether they take a value. */
const READ = {
  compressed: false,
  cookie: true,
  data: true,
  "data-ascii": true,
  "data-binary": true,
  "data-raw": true,
  "data-urlencode": true,
  form: true,
  "form-string": true,
  get: false,
  globoff: false,
  head: false,
  header: true,
  json: true,
  "oauth2-bearer": true,
  range: true,
  referer: true,
  request: true,
  "upload-file": true,
  url: true,
  "url-query": true,
  user: true,
  "user-agent": true,
} as const;

type CurlOption = keyof typeof READ;

/** An option of a command, or a URL, in the order of the command. */
interface CurlArgument {
  readonly option: CurlOption;
  /** Empty for an option without a value. */
  readonly value: string;
}

/** Options without a value that do not change the request. */
const IGNORED = new Set(
  `anyauth append basic buffer ca-native cert-status clobber compressed-ssh create-dirs crlf disable
  disallow-username-in-url doh-cert-status doh-insecure fail fail-early fail-with-body false-start http0.9
  http1.0 http1.1 http2 http2-prior-knowledge http3 http3-only ignore-content-length include insecure ipv4
  ipv6 junk-session-cookies keepalive location location-trusted alpn npn mptcp sessionid parallel
  parallel-immediate path-as-is post301 post302 post303 progress-bar progress-meter proxy-anyauth proxy-basic
  proxy-digest proxy-http2 proxy-insecure proxytunnel raw remote-header-name remote-name remote-name-all
  remote-time remove-on-error retry-all-errors retry-connrefused show-error show-headers silent
  skip-existing ssl ssl-allow-beast ssl-no-revoke ssl-reqd ssl-revoke-best-effort sslv2 sslv3
  styled-output suppress-connect-headers tcp-fastopen tcp-nodelay tls-earlydata tlsv1 tlsv1.0 tlsv1.1
  tlsv1.2 tlsv1.3 trace-ids trace-time use-ascii verbose xattr`.split(/\s+/),
);

/** Options with a value that do not change the request. */
const IGNORED_WITH_VALUE = new Set(
  `abstract-unix-socket alt-svc cacert capath cert cert-type ciphers connect-timeout connect-to
  cookie-jar create-file-mode crlfile curves dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url
  dump-header ech engine etag-save expect100-timeout happy-eyeballs-timeout-ms hsts interface ip-tos
  keepalive-cnt keepalive-time key key-type libcurl limit-rate local-port max-filesize max-redirs max-time
  noproxy output output-dir parallel-max pass pinnedpubkey preproxy proto proto-redir proxy proxy-cacert
  proxy-cert proxy-header proxy-key proxy-pass proxy-user proxy1.0 rate resolve retry retry-delay
  retry-max-time socks4 socks4a socks5 socks5-hostname speed-limit speed-time stderr tls-max tls13-ciphers
  trace trace-ascii trace-config unix-socket write-out`.split(/\s+/),
);

/** The long names of the options with one letter. */
const SHORT: Readonly<Record<string, string>> = {
  ...{
    0: "http1.0",
    1: "tlsv1",
    2: "sslv2",
    3: "sslv3",
    4: "ipv4",
    6: "ipv6",
    "#": "progress-bar",
  },
  ...{ a: "append", A: "user-agent", b: "cookie", B: "use-ascii", c: "cookie-jar", d: "data" },
  ...{ D: "dump-header", e: "referer", E: "cert", f: "fail", F: "form", g: "globoff", G: "get" },
  ...{ H: "header", i: "include", I: "head", j: "junk-session-cookies", J: "remote-header-name" },
  ...{ k: "insecure", L: "location", m: "max-time", N: "no-buffer", o: "output", O: "remote-name" },
  ...{ p: "proxytunnel", q: "disable", r: "range", R: "remote-time", s: "silent", S: "show-error" },
  ...{ T: "upload-file", u: "user", U: "proxy-user", v: "verbose", w: "write-out", x: "proxy" },
  ...{ X: "request", y: "speed-time", Y: "speed-limit", Z: "parallel" },
};

/**
 * Reads the arguments of a curl command. Options that do not change the request are left out.
 *
 * @param words the words after `curl`
 * @throws {AdminError} for an option whose effect on the request is unknown
 */
function curlArguments(words: readonly string[]): CurlArgument[] {
  const read: CurlArgument[] = [];
  let isAfterOptions = false;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (isAfterOptions || !word.startsWith("-") || word === "-") {
      read.push({ option: "url", value: word });
    } else if (word === "--") {
      isAfterOptions = true;
    } else {
      const option = word.startsWith("--") ? longOption(word) : shortOptions(word, read);
      if (option.needsValue) {
        const value = option.value ?? words[++index];
        if (value === undefined) {
          throw wrongOptions(`The curl command ends after ${option.shown}, which needs a value.`);
        }
        if (isRead(option.name)) read.push({ option: option.name, value });
      } else if (isRead(option.name)) read.push({ option: option.name, value: "" });
    }
  }
  return read;
}

interface Option {
  readonly name: string;
  /** The option as the command has it. */
  readonly shown: string;
  readonly needsValue: boolean;
  /** The value, if it is in the same word. */
  readonly value?: string;
}

function longOption(word: string): Option {
  const equals = word.indexOf("=");
  const name = word.slice(2, equals === -1 ? undefined : equals);
  const shown = `--${name}`;
  const needsValue = takesValue(name, shown);
  const value = equals !== -1 && needsValue && { value: word.slice(equals + 1) };
  return { name, shown, needsValue, ...value };
}

/**
 * Reads a word such as `-sSL` or `-XPOST`.
 *
 * @param read receives all options but the last one
 * @returns the last option
 */
function shortOptions(word: string, read: CurlArgument[]): Option {
  for (let at = 1; ; at++) {
    const letter = word.charAt(at);
    const shown = `-${letter}`;
    const name = SHORT[letter] ?? letter;
    const needsValue = takesValue(name, shown);
    const isLast = at === word.length - 1;
    if (needsValue)
      return { name, shown, needsValue, ...(!isLast && { value: word.slice(at + 1) }) };
    if (isLast) return { name, shown, needsValue };
    if (isRead(name)) read.push({ option: name, value: "" });
  }
}

function isRead(name: string): name is CurlOption {
  return Object.hasOwn(READ, name);
}

/** @throws {AdminError} for an unknown option */
function takesValue(name: string, shown: string): boolean {
  if (isRead(name)) return READ[name];
  if (IGNORED_WITH_VALUE.has(name)) return true;
  if (IGNORED.has(name.replace(/^no-/, ""))) return false;
  throw wrongOptions(
    `The curl command has the option ${quoted(shown).slice(0, 40)}, which weir explain cannot read. Remove it if it does not change the request; otherwise describe the request with METHOD URL and -H.`,
  );
}

/** The body of a curl command. */
interface CurlBody {
  readonly isSent: boolean;
  /** Undefined if it is unknown, because it comes from a file or because curl invents a part of it. */
  readonly text: string | undefined;
  /** Whether curl adds the text to the URL (`-G`). */
  readonly isInUrl: boolean;
  readonly contentType: string | undefined;
  readonly accept: string | undefined;
}

const DATA: ReadonlySet<CurlOption> = new Set([
  "data",
  "data-ascii",
  "data-binary",
  "data-raw",
  "data-urlencode",
  "json",
]);
const FORM = "application/x-www-form-urlencoded";

/** Reads the body of a request. Files are not read. @param notes receives what was left out */
function readBody(read: readonly CurlArgument[], notes: string[]): CurlBody {
  const data = read.filter(({ option }) => DATA.has(option));
  const isJson = data.some(({ option }) => option === "json");
  const isForm = read.some(({ option }) => option === "form" || option === "form-string");
  const isUpload = read.some(({ option }) => option === "upload-file");
  const isInUrl = read.some(({ option }) => option === "get");
  let text: string | undefined = isForm || isUpload ? undefined : "";
  for (const { option, value } of data) {
    const piece = textOf(option, value);
    if (piece === undefined) text = undefined;
    else if (text !== undefined) {
      text += text !== "" && option !== "json" ? `&${piece}` : piece;
    }
  }
  const isSent = data.length > 0 || isForm || isUpload;
  if (isSent && text === undefined) {
    notes.push(
      isInUrl
        ? "The data of a file (@file) is missing in the URL, because files are not read."
        : "The body is unknown, because files are not read and forms are not built. Only functions in custom that read it and rules with a cost of body:bytes depend on it.",
    );
  }
  return {
    isSent,
    text,
    isInUrl,
    contentType: contentTypeOf(isJson, isForm, data.length > 0 && !isInUrl),
    accept: isJson ? "application/json" : undefined,
  };
}

function contentTypeOf(isJson: boolean, isForm: boolean, isData: boolean): string | undefined {
  if (isJson) return "application/json";
  if (isForm) return "multipart/form-data; boundary=------------------------0000000000000000";
  return isData ? FORM : undefined;
}

/** @returns undefined for the content of a file */
function textOf(option: CurlOption, value: string): string | undefined {
  if (option === "data-raw") return value;
  if (option === "data-urlencode") return encodedPair(value);
  return value.startsWith("@") ? undefined : value;
}

/**
 * Encodes a parameter as `--data-urlencode` does: `text`, `=text`, `name=text`, or the name of a file after
 * `@` or `name@`.
 *
 * @returns undefined for the content of a file
 */
function encodedPair(value: string): string | undefined {
  const at = /[=@]/.exec(value);
  if (!at) return encode(value);
  if (at[0] === "@") return undefined;
  const name = value.slice(0, at.index);
  return `${name}${name && "="}${encode(value.slice(at.index + 1))}`;
}

function encode(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}

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

/** Returns how to complete the description of a request that lacks what rules depend on, as sentences. */
export function hintsFor({ request, rules }: Explanation): string[] {
  const hints: string[] = [];
  if (request.client === "unknown") {
    hints.push(
      "The client's address is unknown: add --ip 203.0.113.7. Weir reads it only from CF-Connecting-IP, never from X-Forwarded-For.",
    );
  }
  const isUnknown = (name: RegExp) =>
    rules.some(({ conditions }) =>
      conditions.some(({ field, result }) => result === "unknown" && name.test(field)),
    );
  const facts = [
    isUnknown(/countries$/) && "--cf country=DE",
    isUnknown(/asns$/) && "--cf asn=64496",
    isUnknown(/bots$/) && '--cf verifiedBotCategory="Search Engine Crawler" (or empty)',
  ].filter(Boolean);
  if (facts.length > 0) {
    hints.push(`Cloudflare's data about the client is unknown: add ${facts.join(", ")}.`);
  }
  return hints;
}
