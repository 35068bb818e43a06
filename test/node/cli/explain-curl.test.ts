import { expect, it } from "vitest";
import { readCurl } from "../../../cli/explain/curl.ts";

// Curl commands as people paste them. The expectations were compared with what curl 7.88 sends.

const URL_A = "https://api.example.com/a";

interface Expected {
  readonly method?: string;
  readonly url?: string;
  /** These fields, among others. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields that are not sent. */
  readonly without?: readonly string[];
  readonly notes?: readonly RegExp[];
}

/** A request that Chrome has copied for bash. */
const CHROME_BASH = String.raw`curl 'https://api.example.com/graphql?x=%21' \
  -H 'accept: */*' \
  -H 'accept-language: de,en;q=0.9' \
  -b 'session=abc; theme=it'\''s' \
  -H $'x-note: wow\u0021 it\'s' \
  -H 'user-agent: Mozilla/5.0 (X11; Linux x86_64)' \
  --data-raw $'{"query":"\u0021\n"}' ;
curl 'https://api.example.com/next'`;

/** The same kind of request, copied for cmd.exe. */
const CHROME_CMD = String.raw`curl ^"https://api.example.com/graphql?x=^%^21^&y=1^" ^
  -H ^"accept: */*^" ^
  -H ^"sec-ch-ua: ^\^"Chromium^\^";v=^\^"140^\^"^" ^
  -b ^"session=abc^" ^
  --data-raw ^"^{^\^"query^\^":^\^"a^|b^\^"^}^"`;

const FIREFOX_CMD = 'curl "https://api.example.com/a" ^\r\n  -X PUT ^\r\n  -H "x-a: say ""hi"""';

const COMMANDS: Readonly<Record<string, readonly [command: string, expected: Expected]>> = {
  "Chrome's, for bash": [
    CHROME_BASH,
    {
      method: "POST",
      url: "https://api.example.com/graphql?x=%21",
      headers: {
        cookie: "session=abc; theme=it's",
        "x-note": "wow! it's",
        "user-agent": "Mozilla/5.0 (X11; Linux x86_64)",
        "content-length": "14",
        "accept-language": "de,en;q=0.9",
      },
    },
  ],
  "Chrome's, for cmd.exe": [
    CHROME_CMD,
    {
      method: "POST",
      url: "https://api.example.com/graphql?x=%21&y=1",
      headers: { "sec-ch-ua": '"Chromium";v="140"', cookie: "session=abc", "content-length": "15" },
    },
  ],
  "Firefox's, for cmd.exe": [FIREFOX_CMD, { method: "PUT", headers: { "x-a": 'say "hi"' } }],
  "a short one": [
    `curl ${URL_A}`,
    {
      method: "GET",
      url: URL_A,
      headers: { accept: "*/*", "user-agent": "curl/8.0.0" },
      without: ["content-length", "content-type"],
    },
  ],
  "a prompt, a variable and a path before curl": [
    `$ TZ=UTC /usr/bin/curl ${URL_A}`,
    { url: URL_A },
  ],
  "a pipe behind it": [`curl -s ${URL_A} 2>/dev/null | jq .`, { method: "GET", url: URL_A }],
  "a redirection before the URL": [`curl -s > out.json ${URL_A}`, { url: URL_A }],
  "a comment": [`curl ${URL_A} # -X POST`, { method: "GET" }],
  "lines without a backslash": [
    `curl ${URL_A}\n  -H 'x-a: 1'\necho done`,
    { headers: { "x-a": "1" } },
  ],
  "-d": [
    `curl ${URL_A} -d a=1 --data 'b= 2'`,
    {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "content-length": "8",
      },
    },
  ],
  "-d without text": [
    `curl -d '' ${URL_A}`,
    { method: "POST", headers: { "content-length": "0" } },
  ],
  "-d with a method": [`curl -XDELETE ${URL_A} -d a`, { method: "DELETE" }],
  "--data-raw, which reads no file": [
    `curl ${URL_A} --data-raw @a`,
    { headers: { "content-length": "2" } },
  ],
  "--json": [
    `curl ${URL_A} --json '{"a":"ä"}'`,
    {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        "content-length": "10",
      },
    },
  ],
  "a file as the body": [
    `curl ${URL_A} -d @body.json`,
    {
      headers: { "transfer-encoding": "chunked" },
      without: ["content-length"],
      notes: [/files are not read/],
    },
  ],
  "-F": [
    `curl ${URL_A} -F a=1`,
    {
      method: "POST",
      headers: {
        "content-type": `multipart/form-data; boundary=${"-".repeat(24)}${"0".repeat(16)}`,
      },
      notes: [/forms are not built/],
    },
  ],
  "-T": [`curl -T file ${URL_A}`, { method: "PUT", notes: [/files are not read/] }],
  "-G": [
    `curl -G '${URL_A}?x=1' -d a=1 --data-urlencode 'q=ä b&c!' --url-query 'r=1'`,
    { method: "GET", url: `${URL_A}?x=1&r=1&a=1&q=%C3%A4+b%26c%21`, without: ["content-type"] },
  ],
  "-I": [`curl -I ${URL_A}`, { method: "HEAD" }],
  "-u": [`curl -sSu me:pw ${URL_A}`, { headers: { authorization: "Basic bWU6cHc=" } }],
  "a user in the URL": [
    "curl https://me:p%77@api.example.com/a",
    { url: URL_A, headers: { authorization: "Basic bWU6cHc=" } },
  ],
  "a field that replaces -u": [
    `curl -u me:pw -H 'Authorization: Bearer x' ${URL_A}`,
    { headers: { authorization: "Bearer x" } },
  ],
  "--oauth2-bearer": [
    `curl --oauth2-bearer x ${URL_A}`,
    { headers: { authorization: "Bearer x" } },
  ],
  "-A, -e, -r and --compressed": [
    `curl -A me -e 'https://r.example/;auto' -r 0-9 --compressed ${URL_A}`,
    {
      headers: {
        "user-agent": "me",
        referer: "https://r.example/",
        range: "bytes=0-9",
        "accept-encoding": "deflate, gzip, br, zstd",
      },
    },
  ],
  "-b twice, and a file": [
    `curl -b a=1 -b b=2 -b jar.txt ${URL_A}`,
    { headers: { cookie: "a=1;b=2" }, notes: [/Cookies in a file/] },
  ],
  "empty, removed and repeated fields": [
    `curl -H 'X-E;' -H 'Accept:' -H 'User-Agent:' -H 'x-a: 1' -H 'X-A: 2' ${URL_A}`,
    { headers: { "x-e": "", "x-a": "1, 2" }, without: ["accept", "user-agent"] },
  ],
  "options in one word": [
    `curl -kLXPATCH --header='x-a: 1' -H'x-b:2' --url ${URL_A}`,
    {
      method: "PATCH",
      headers: { "x-a": "1", "x-b": "2" },
    },
  ],
  "the field Host": [
    `curl -H 'Host: www.example.com' http://127.0.0.1:8787/a`,
    { url: "http://www.example.com/a", notes: [/Host/], without: ["host"] },
  ],
  "escaped brackets": [
    String.raw`curl 'https://api.example.com/a?b\[\]=1'`,
    { url: "https://api.example.com/a?b[]=1" },
  ],
  "a URL without a scheme": ["curl api.example.com/a", { url: "http://api.example.com/a" }],
  "an & without quotes": [
    `curl ${URL_A}?x=1&y=2`,
    { url: `${URL_A}?x=1`, notes: [/quote the URL/] },
  ],
  "names of HTTP/2's pseudo fields": [`curl -H ':authority: x' ${URL_A}`, { url: URL_A }],
};

it.each(Object.entries(COMMANDS))("reads a curl command: %s", (_, [command, expected]) => {
  const { method, url, fields, notes } = readCurl(command);
  const headers = fields.toRecord();
  if (expected.method) expect(method).toBe(expected.method);
  if (expected.url) expect(url).toBe(expected.url);
  expect(headers).toMatchObject(expected.headers ?? {});
  for (const name of expected.without ?? []) expect(headers).not.toHaveProperty(name);
  expect(notes).toEqual((expected.notes ?? []).map((note) => expect.stringMatching(note)));
});

const FAULTS: Readonly<Record<string, readonly [command: string, message: RegExp]>> = {
  "an empty text": ["", /must begin with curl/],
  "another program": ["wget https://example.com", /must begin with curl/],
  "a call of fetch": ['fetch("https://example.com")', /Copy as cURL/],
  "a command for PowerShell": ['Invoke-WebRequest -Uri "https://example.com"', /PowerShell/],
  "no URL": ["curl -X POST", /has no URL/],
  "two URLs": [`curl ${URL_A} ${URL_A}`, /has 2 URLs/],
  "a URL of another scheme": ["curl ftp://example.com/a", /not an http or https URL/],
  "several URLs in one": [`curl '${URL_A}/{b,c}'`, /several URLs/],
  "a variable": [`curl -H "authorization: Bearer $TOKEN" ${URL_A}`, /\$TOKEN that only your shell/],
  "a variable in braces": [`curl ${URL_A}/\${ID}`, /that only your shell/],
  "a dollar sign in a password": [
    `curl -u "me:pa$Secret1" ${URL_A}`,
    /^(?!.*Secret).*a \$ that only your shell/,
  ],
  "a command in a command": [`curl ${URL_A}/$(rm x)`, /that only your shell/],
  backticks: [`curl "${URL_A}/\`id\`"`, /a backtick that only your shell/],
  "an open quote": [`curl '${URL_A}`, /' without the quote that closes it/],
  "an open double quote": [`curl "${URL_A}`, /" without the quote/],
  "an open ANSI-C quote": [String.raw`curl $'${URL_A}\'`, /\$' without the quote/],
  "an open quote for cmd.exe": [`curl ^"${URL_A}`, /" without the quote/],
  "an unknown option": [
    `curl --frobnicate ${URL_A}`,
    /--frobnicate, which weir explain cannot read/,
  ],
  "an unknown letter": [`curl -sQx ${URL_A}`, /option -Q/],
  "an option without its value": [`curl ${URL_A} -H`, /ends after -H/],
  "a field without a colon": [
    `curl ${URL_A} -H 'secret-value'`,
    /^(?!.*secret-value).*has no colon/,
  ],
  "a name with a space": [`curl ${URL_A} -H 'x a: 1'`, /not the name of a header field/],
  "a line break in a value": [
    `curl ${URL_A} -H $'x-a: secret\\r\\nx: 1'`,
    /^(?!.*secret).*line break/,
  ],
  "too many characters": [`curl ${URL_A} -d ${"a".repeat(1024 * 1024)}`, /more than 1048576 char/],
};

it.each(Object.entries(FAULTS))("refuses a curl command with %s", (_, [command, message]) => {
  expect(() => readCurl(command)).toThrow(message);
});
