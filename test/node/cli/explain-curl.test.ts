import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { DescribedRequest } from "../../../src/explain/explanation.ts";
import { type FakeApi, startFakeApi, TOKEN } from "./fake-api.ts";
import { callWeir, temporaryFolder } from "./run-weir.ts";

// The options of curl. The expected requests were compared with requests of curl 7.88. Each case has the words without
// quotes, as the shell passes them.

const URL_A = "https://api.example.com/a";

const EXPLANATION = {
  outcome: "unmatched",
  request: {
    method: "GET",
    sentMethod: "GET",
    isPreflight: false,
    host: "a",
    path: "/",
    variants: ["/"],
    isUnambiguous: true,
    client: "203.0.113.7",
  },
  rules: [],
  response: { headers: [] },
};

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi({ "POST explain": EXPLANATION });
});
afterAll(() => api[Symbol.asyncDispose]());

/** Returns the request that a command describes, and its notes. */
async function describedBy(args: readonly string[]) {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, "body.json"), "{}");
  const command = ["explain", ...args, "--against", api.url];
  const env = { WEIR_ADMIN_TOKEN: TOKEN, WEIR_ADMIN_READ_TOKEN: undefined };
  const { code, stdout, stderr } = await callWeir(command, folder.path, env);
  const request = code === 0 ? (api.sent.at(-1)?.body as DescribedRequest) : undefined;
  return { request, stdout, stderr, code };
}

interface Expected extends Partial<DescribedRequest> {
  /** Header fields that are not sent. */
  readonly without?: readonly string[];
  readonly note?: RegExp;
}

const CASES: Readonly<Record<string, readonly [args: readonly string[], expected: Expected]>> = {
  "a browser's Copy as cURL": [
    [
      "https://api.example.com/graphql?x=%21",
      ...["-H", "accept: */*", "-H", "accept-language: de,en;q=0.9"],
      ...["-b", "session=abc; theme=it's", "-H", "x-note: wow! it's"],
      ...["--data-raw", '{"query":"!\n"}', "--compressed", "--insecure"],
    ],
    {
      method: "POST",
      url: "https://api.example.com/graphql?x=%21",
      headers: {
        accept: "*/*",
        "accept-language": "de,en;q=0.9",
        cookie: "session=abc; theme=it's",
        "x-note": "wow! it's",
        "content-type": "application/x-www-form-urlencoded",
        "content-length": "14",
      },
      body: '{"query":"!\n"}',
    },
  ],
  "a short one": [[URL_A], { method: "GET", url: URL_A, without: ["content-length"] }],
  "-d": [
    [URL_A, "-d", "a=1", "--data", "b= 2"],
    { method: "POST", body: "a=1&b= 2", headers: { "content-length": "8" } },
  ],
  "-d without text": [["-d", "", URL_A], { method: "POST", headers: { "content-length": "0" } }],
  "-d with a method": [["-XDELETE", URL_A, "-d", "a"], { method: "DELETE", body: "a" }],
  "-d with the method as a word": [["PUT", URL_A, "-d", "ä"], { method: "PUT", body: "ä" }],
  "--data-raw, which reads no file": [[URL_A, "--data-raw", "@a"], { body: "@a" }],
  "a body with GET": [[URL_A, "-X", "GET", "-d", "a"], { method: "GET", note: /with GET, none/ }],
  "a long body": [[URL_A, "-d", "a".repeat(65_537)], { note: /more than 64 KiB/ }],
  "a file as the body": [
    [URL_A, "-d", "@body.json"],
    {
      method: "POST",
      headers: { "transfer-encoding": "chunked" },
      without: ["content-length"],
      note: /files are not read/,
    },
  ],
  "-I": [["-I", URL_A], { method: "HEAD" }],
  "-u": [["-sSu", "me:pw", URL_A], { headers: { authorization: "Basic bWU6cHc=" } }],
  "a field that replaces -u": [
    ["-u", "me:pw", "-H", "Authorization: Bearer x", URL_A],
    { headers: { authorization: "Bearer x" } },
  ],
  "-b twice, and a file": [
    ["-b", "a=1", "-b", "b=2", "-b", "jar.txt", URL_A],
    { headers: { cookie: "a=1; b=2" }, note: /Cookies in a file/ },
  ],
  "empty, removed and repeated fields": [
    ["-H", "X-E;", "-d", "a", "-H", "Content-Type:", "-H", "x-a: 1", "-H", "X-A: 2", URL_A],
    { headers: { "x-e": "", "x-a": "1, 2" }, without: ["content-type"] },
  ],
  "a text that is not Latin-1": [
    ["-H", "x-a: €", URL_A],
    { headers: { "x-a": Buffer.from("€").toString("latin1") } },
  ],
  "options in one word": [
    ["-kLXPATCH", "--header=x-a: 1", "-Hx-b:2", URL_A],
    { method: "PATCH", headers: { "x-a": "1", "x-b": "2" } },
  ],
  "the field Host": [
    ["-H", "Host: www.example.com", "http://127.0.0.1:8787/a"],
    { url: "http://www.example.com/a", without: ["host"] },
  ],
  "escaped brackets": [
    [String.raw`https://api.example.com/a?b\[\]=1`],
    { url: "https://api.example.com/a?b[]=1" },
  ],
  "--url": [["--url", URL_A, "-XPOST"], { method: "POST", url: URL_A }],
  "--url with =": [[`--url=${URL_A}`, "PUT"], { method: "PUT", url: URL_A }],
  "-A and -e": [
    ["-A", "one", "-Atwo", "-e", "https://example.org/;auto", URL_A],
    { headers: { "user-agent": "two", referer: "https://example.org/" } },
  ],
  "empty -A and -e": [
    ["-A", "", "-e", ";auto", URL_A],
    { url: URL_A, without: ["user-agent", "referer"] },
  ],
  "a field that replaces -A": [
    ["-A", "one", "-H", "User-Agent: two", URL_A],
    { headers: { "user-agent": "two" } },
  ],
  "--oauth2-bearer, which goes before -u": [
    ["--oauth2-bearer", "t", "-u", "me:pw", URL_A],
    { headers: { authorization: "Bearer t" } },
  ],
  "--data-urlencode": [
    [
      URL_A,
      ...["a=1 2", "=x=y", "just text", "b=c!'()*~é/"].flatMap((each) => [
        "--data-urlencode",
        each,
      ]),
    ],
    {
      method: "POST",
      body: "a=1+2&x%3Dy&just+text&b=c%21%27%28%29%2A~%C3%A9%2F",
      headers: { "content-type": "application/x-www-form-urlencoded" },
    },
  ],
  "--data-urlencode with a file": [
    ["--data-urlencode", "a@body.json", URL_A],
    { method: "POST", without: ["content-length"], note: /files are not read/ },
  ],
  "-G": [
    ["-G", `${URL_A}?z=1#f`, "--data-urlencode", "q=a b", "-d", "x=1"],
    { method: "GET", url: `${URL_A}?z=1&q=a+b&x=1`, without: ["content-type", "content-length"] },
  ],
  "-G with a method": [["-sGXPOST", URL_A, "-d", "a"], { method: "POST", url: `${URL_A}?a` }],
  "-G with -I": [["-GI", `${URL_A}?`, "-d", "a"], { method: "HEAD", url: `${URL_A}?a` }],
  "-G without data": [["--get", URL_A], { method: "GET", url: URL_A }],
  "-G with a file": [
    ["-G", URL_A, "-d", "@body.json", "-d", "a"],
    { method: "GET", url: `${URL_A}?a`, note: /query lacks the data of files/ },
  ],
  "--json of curl": [
    ["--json", '{"a":1}', "--compressed", URL_A],
    {
      method: "POST",
      body: '{"a":1}',
      headers: {
        accept: "application/json",
        "content-type": "application/json",
        "content-length": "7",
      },
    },
  ],
  "--json of curl with a field and a file": [
    [URL_A, "--json", "@body.json", "-H", "Content-Type: application/ld+json"],
    { headers: { "content-type": "application/ld+json" }, note: /files are not read/ },
  ],
  "-F": [
    ["-F", "a=1", "--form", "b=@body.json", URL_A],
    { method: "POST", headers: { "content-type": "multipart/form-data" }, note: /no forms \(-F\)/ },
  ],
  "names of HTTP/2's pseudo fields": [["-H", ":authority: x", URL_A], { url: URL_A }],
  "options that do not change the request": [
    [
      ...[
        "-sSfkLivg4#",
        "-o",
        "/dev/null",
        "-w%{http_code}",
        "-m",
        "9",
        "--retry=2",
        URL_A,
        "-JORN",
      ],
      ...[
        "-c",
        "jar",
        "-D",
        "-",
        "-x",
        "http://localhost:1",
        "--cacert",
        "a.pem",
        "-E",
        "me",
        "--key",
        "k",
      ],
      ...[
        "--connect-to",
        "a:1:b:2",
        "--max-redirs",
        "3",
        "--tlsv1.2",
        "--no-keepalive",
        "--http1.1",
      ],
      ...["--limit-rate", "1k", "--proto", "=https", "--fail-with-body", "--no-progress-meter"],
    ],
    { method: "GET", url: URL_A },
  ],
};

it.each(Object.entries(CASES))("describes what curl sends: %s", async (_, [args, expected]) => {
  const { request, stdout, stderr } = await describedBy(args);
  expect(stderr).toBe("");
  const { without = [], note, ...fields } = expected;
  expect(request).toMatchObject(fields);
  for (const name of without) expect(request?.headers ?? {}).not.toHaveProperty(name);
  const notes = stdout.slice(stdout.indexOf("•")).replace(/\s+/g, " ");
  if (note) expect(notes).toMatch(note);
  else expect(stdout).not.toContain("•");
});

const FAULTS: Readonly<Record<string, readonly [args: readonly string[], message: RegExp]>> = {
  "no URL": [["-X", "POST"], /There is no request/],
  "two methods": [["-X", "PUT", "POST", URL_A], /given twice: -X PUT and POST/],
  "two URLs": [["--url", URL_A, URL_A], /several URLs/],
  "two URLs as words": [[URL_A, "/b"], /several URLs/],
  "a method and two URLs": [["GET", URL_A, "--url", URL_A], /several URLs/],
  "a file with fields": [["-H", "@fields.txt", URL_A], /-H names a file, but files are not read/],
  "a URL of another scheme": [["ftp://example.com/a"], /begins with ftp:/],
  "an unknown option": [["--frobnicate", URL_A], /unknown option '--frobnicate'/],
  "a field without a colon": [[URL_A, "-H", "secret-value"], /^(?!.*secret-value).*has no colon/],
  "a name with a space": [[URL_A, "-H", "x a: 1"], /not the name of a header/],
  "a line break": [[URL_A, "-H", "x-a: secret\r\nx: 1"], /^(?!.*secret).*line break/],
  "a line break in a token": [
    [URL_A, "-H", "authorization: Bearer secret\n1"],
    /^-H(?!.*secret).*line break/,
  ],
  "a method in lower case": [["-X", "get", URL_A], /"get" is answered with 400/],
};

it.each(Object.entries(FAULTS))("exits with 1 for %s", async (_, [args, message]) => {
  const { code, stderr, stdout } = await describedBy(args);
  expect(code).toBe(1);
  expect(stderr + stdout).toMatch(message);
});
