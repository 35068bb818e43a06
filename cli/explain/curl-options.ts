import { wrongOptions } from "../admin/admin-error.ts";
import { quoted } from "../doctor/finding.ts";

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

export type CurlOption = keyof typeof READ;

/** An option of a command, or a URL, in the order of the command. */
export interface CurlArgument {
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
export function curlArguments(words: readonly string[]): CurlArgument[] {
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
