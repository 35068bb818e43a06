import fc from "fast-check";

/** Texts with a meaning for a reader of logs, which appear here in wrong places. */
const PARTS = [
  ...[
    '"',
    '\\"',
    "\\\\",
    "\\",
    "\\x22",
    "\\xC3\\xA9",
    "\\x",
    " ",
    "  ",
    "-",
    "[",
    "]",
    '] "',
    "\t",
  ],
  ...[
    "\r",
    "\0",
    "\x1b[31m",
    "\xff",
    "\xc3\xa9",
    "\xef\xbb\xbf",
    "{",
    "}",
    "]}",
    "[[",
    ",",
    ":",
    "?",
  ],
  ...["%00", "__proto__", "1e999", "null", "\\ud800", "\\u0000", "-1", "99999999999999999999"],
];

/** Any bytes, each as a character. */
function bytes(maxLength: number): fc.Arbitrary<string> {
  const unit = fc.nat(255).map((byte) => String.fromCharCode(byte));
  return fc.string({ unit, maxLength });
}

const noise = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...PARTS) },
  { weight: 2, arbitrary: bytes(12) },
  { weight: 1, arbitrary: fc.constantFrom(...PARTS).map((part) => part.repeat(300)) },
);

/** A change in a text: it replaces some characters by noise. */
const change = fc.record({ at: fc.nat(400), length: fc.nat(6), noise });

/** A text, usually with no change, sometimes with several. Characters are bytes. */
export function changed(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const changes = fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 3 }) },
  );
  return fc.tuple(text, changes).map(([before, all]) =>
    all.reduce((line, { at, length, noise }) => {
      const from = at % (line.length + 1);
      return line.slice(0, from) + noise + line.slice(from + length);
    }, before),
  );
}

const ADDRESSES = [
  "192.0.2.1",
  "198.51.100.200",
  "2001:db8::1",
  "::ffff:192.0.2.7",
  "192.0.2.9:80",
];
const address = fc.constantFrom(
  ...ADDRESSES,
  ...ADDRESSES,
  "host.example.com",
  "-",
  "256.1.1.1",
  "",
);
const second = fc.oneof(fc.nat(90), fc.nat(90), fc.nat(4_000_000));
const BEGIN = Date.UTC(2026, 10, 22, 8);
const method = fc.constantFrom("GET", "GET", "POST", "OPTIONS", "CONNECT", "get", "\x16\x03", "");
const path = fc.oneof(
  fc.constantFrom("/", "/a?b=c", "//", "*", "http://example.com/x", "example.com", "/caf\xc3\xa9"),
  fc.webPath().map((text) => `/${text}`),
);
const status = fc.constantFrom(200, 404, 429, 0, 1000, "-", "");
const agent = fc.constantFrom(
  "curl/8",
  "-",
  "",
  'a \\"b\\"',
  "Mozilla/5.0 (X11; Linux)",
  "x".repeat(600),
);

function accessTime(seconds: number): string {
  const [, day, month, year, time] = new Date(BEGIN + seconds * 1000).toUTCString().split(" ");
  return `${day}/${month}/${year}:${time} +0000`;
}

const access = fc
  .record({
    host: fc.constantFrom("", "", "example.com:443 "),
    address,
    second,
    method,
    path,
    status,
    agent,
  })
  .map(
    ({ host, address, second, method, path, status, agent }) =>
      `${host}${address} - - [${accessTime(second)}] "${method} ${path} HTTP/1.1" ${status} 5 "-" "${agent}"`,
  );

/** A value of JSON that is no more than a few levels deep. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(null, true, -1, 0.5, 1e300, "", "-", [], {}, [["a"]], "\ud800", "\0"),
  fc.jsonValue({ maxDepth: 2 }),
);
const or = <Value>(usual: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: odd });

const time = second.map((seconds) => BEGIN + seconds * 1000);
const anyTime = fc.oneof(
  time.map((at) => new Date(at).toISOString()),
  time,
  time.map((at) => at / 1000),
  time.map((at) => `${at}000000`),
);
const headers = fc.dictionary(fc.constantFrom("accept", "X-Key", "__proto__"), or(agent), {
  maxKeys: 3,
  noNullPrototype: true,
});

const logpush = fc
  .record(
    {
      EdgeStartTimestamp: or(anyTime),
      EdgeEndTimestamp: or(anyTime),
      ClientRequestMethod: or(method),
      ClientRequestHost: or(fc.constantFrom("example.com", "a b", "")),
      ClientRequestURI: or(path),
      ClientIP: or(address),
      EdgeResponseStatus: or(status),
      ClientRequestUserAgent: or(agent),
      ClientCountry: or(fc.constantFrom("de", "T1", "")),
      ClientASN: or(fc.nat(70_000)),
      JA4: or(agent),
      VerifiedBotCategory: or(fc.constantFrom("", "Search Engine Crawler")),
      RequestHeaders: or(headers),
      Cookies: or(headers),
    },
    { requiredKeys: ["EdgeStartTimestamp", "ClientRequestMethod", "ClientRequestURI"] },
  )
  .map((record) => JSON.stringify(record));

const json = fc
  .record(
    {
      time: or(anyTime),
      request_method: or(method),
      request_uri: or(path),
      remote_addr: or(address),
      status: or(status),
      http_host: or(fc.constantFrom("example.com", "")),
      http_user_agent: or(agent),
      request_time: or(fc.double({ min: 0, max: 9 })),
      request: or(fc.constantFrom("GET / HTTP/1.1", "GET /")),
    },
    { requiredKeys: [] },
  )
  .map((record) => JSON.stringify(record));

const random = fc.oneof(
  bytes(60),
  fc.constantFrom("", " ", "\t\r", "x".repeat(65_536), "x".repeat(65_537), "x".repeat(200_000)),
);

/** Lines of each format. Each character is a byte. */
export const LOG_LINES = {
  combined: line(access),
  json: line(fc.oneof(json, logpush)),
} as const satisfies Record<string, fc.Arbitrary<string>>;

function line(usual: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.oneof({ weight: 30, arbitrary: changed(usual) }, { weight: 1, arbitrary: random });
}
